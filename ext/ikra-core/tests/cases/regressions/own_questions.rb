# A class answers nil?, ==, != and is_a? as it likes: nothing follows from it for the kind of a variable's value.
#
# elements = [Absent(), Equal(), Liar(), nil, 3]
# gives: [[true, :absent, 1, 1], [false, 0, :none, 2], [false, 3, 3, :integer], [true, :absent, :none, 0], [false, 0, 0, :integer]]

class Absent
  def nil? = true
  def v = 1
end

class Equal
  def ==(_other) = true
  def v = 2
end

class Liar
  def is_a?(_class) = true
  def v = 3
end

class Odd
  def self.===(other) = other.nil? || other == 3
end

def kind(x)
  return :odd if x && x == 3.5

  case x
  when Odd then x ? x.v : 0
  else 9
  end
end

elements.pmap do |x|
  absent = x.nil? ? :absent : x == 3 ? 0 : x.v
  none = x == nil ? :none : x == 3 ? 0 : x.v
  number = x.is_a?(Integer) ? :integer : x ? x.v : 0
  [x.nil?, absent, none, number]
end
