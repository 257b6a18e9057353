# The usual methods of Integers.
#
# elements = [0, 1, -7, 12, 100]
# gives: [29, 30, 48, 256, 10627]

elements.pmap do |x|
  quotient, remainder = x.divmod(5)
  x.abs + x.succ * 2 + x.pred + x.clamp(-3, 50) + (x.even? ? 1 : 0) + (x.zero? ? 10 : 20) + x.gcd(18) +
    quotient + remainder + (x <=> 5) + x.to_f.to_i + x.bit_length + x.pow(2) + x.fdiv(4).floor
end
