# each and each_with_index over arrays of objects of several classes.
#
# elements = [Group(members: [One(), Two(), One()]), Group(members: [])]
# gives: [44, 0]

class One
  def weight = 1
end

class Two
  def weight = 2
end

class Group
  def sum
    total = 0
    @members.each { |m| total += m.weight }
    @members.each_with_index { |m, i| total += m.weight * i * 10 }
    total
  end
end

elements.pmap { |group| group.sum }
