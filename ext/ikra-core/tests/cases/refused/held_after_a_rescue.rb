# An array that was handed on before something was raised has other holders in the rescue clause.
#
# elements = [0, 1]
# refused: << changes the length of an array that others may hold

class Box
  attr_accessor :list
end

elements.pmap do |x|
  box = Box.new
  list = []
  begin
    box.list = list
    raise "no"
  rescue StandardError
    list << x
  end
  [list.size, box.list.size]
end
