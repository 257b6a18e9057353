# What kernels do not compare: the place is that of the comparison.
#
# elements = [Odd()]
# refused: comparisons/refused.rb:11:23: kernels know <=> that gives Integers, Floats and nil only

class Odd
  include Comparable
  def <=>(_other) = "more"
end

elements.pmap { |a| a < a }
