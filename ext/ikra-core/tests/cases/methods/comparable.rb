# Operators that a class defines itself.
#
# elements = [Money(cents: 5), Money(cents: -20)]
# gives: [3031, 2906]

class Money
  attr_reader :cents

  def +(other) = @cents + (other.is_a?(Money) ? other.cents : other)
  def -@ = -@cents
  def [](i) = @cents * i
  def ==(other) = other.is_a?(Money) && @cents == other.cents
  def coerced? = !!@cents
  def !~(other) = 7
end

elements.pmap { |m| (m + m) + (m + 1) + -m + m[3] + (m == m ? 1000 : 0) + (m != m ? 1 : 2000) + (m.coerced? ? 5 : 6) }
