# What `up` returns is not known when the Array of its results is read for the first time. No element of `to` is nil.
#
# elements = [0, 1, 2]
# from = [0.5, 1.5, 2.5]
# to = [0.0, 0.0, 0.0]
# after: to => [1.5, 3.0, 2.5]

def up(cell) = cell == 2 ? 0 : cell + 1

def move(cell, from, to)
  incoming = Array.new(2) { |i| from[i == 0 ? cell : up(cell)] }
  if cell == 1
    to[cell] = incoming[0] * 2
  else
    to[cell] = incoming[cell == 0 ? 1 : 0]
  end
end

elements.peach do |cell|
  move(cell, from, to)
end
