# The usual methods of Floats.
#
# elements = [0.0, -2.75, 1.0, 1e10]
# gives: [676.0, 672.0625, 618.25, 32500000617.0]

elements.pmap do |x|
  quotient, remainder = x.divmod(0.5)
  x.abs + x.clamp(-1.0, 2.0) + quotient + remainder + x.fdiv(4) + (x.zero? ? 1 : 2) + (x.finite? ? 4 : 8) +
    (x.nan? ? 16 : 32) + (x <=> 1) + x.floor + -x + (x.positive? ? 64 : 128) + (x.integer? ? 256 : 512)
end
