# Where all values are of one class that has an answer of its own, both branches are there.
#
# elements = [Absent(), Absent()]
# gives: [[1, 1, 1, 1], [1, 1, 1, 1]]

class Absent
  def nil? = true
  def ==(_other) = true
  def is_a?(_class) = true
  def v = 1
end

class All
  def self.===(_other) = true
end

elements.pmap do |x|
  a = x.nil? ? x.v : 0
  b = x != nil ? 0 : x.v
  c = x.is_a?(Integer) ? x.v : 0
  d = case x when All then x.v else 0 end
  [a, b, c, d]
end
