# A method of the program's own named select may give an array that others hold.
#
# elements = [0, 1]
# refused: << changes the length of an array that others may hold

class Same
  def select(list) = list
end

elements.pmap do |x|
  list = []
  other = Same.new.select(list)
  other << x
  list.size
end
