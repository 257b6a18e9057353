# A program's own methods may have the names that the prelude's primitives have; nobody else reaches those.
#
# elements = [Pair(a: 1, b: 2), Pair(a: -1, b: nil)]
# gives: [[6, 77, 3, :put, 1, [2, 3]], [4, 77, 3, :put, -1, [0, 1]]]
# checks: 6

class Pair
  attr_reader :a, :b

  def __at(i) = a + i
  def __size = 77
  def __list?() = 3
  def __keys?(_key = nil) = false
  def __doubt(_answer) = true
  def __hash = 0
  def __put(*) = :put
  def __member(name) = raise("no #{name}")
end

class Point < Struct.new(:x, :__at)
  def __member(_name) = 9
end

elements.pmap do |pair|
  found = case Point.new(pair.a, 1)
          in Point[x, at] if at == 1 then x
          end
  list = [found + 1].each_with_index.map { |x, i| x + i } + [found + 2]
  [pair.__at(5), pair.__size, pair.__list?, pair.__put(1), found, list]
end
