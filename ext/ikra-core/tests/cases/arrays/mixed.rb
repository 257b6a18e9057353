# An array of numbers, nil and objects.
#
# things = [1, nil, 2.5, Thing(n: 4), :x]
# elements = [0, 1, 2, 3, 4, 5]
# gives: [2, 0, 5.0, 4, :x, 0]

class Thing
  attr_reader :n
end

elements.pmap do |i|
  thing = things[i]
  case thing
  when Thing then thing.n
  when Symbol then thing
  else thing ? thing * 2 : 0
  end
end
