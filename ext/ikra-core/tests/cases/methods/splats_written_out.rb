# Splats of arrays and Hashes that are written out are arguments.
#
# elements = [4, -1]
# gives: [[46, [4, 5, 0], [0, 4, 2], 43, 49, [4, 8]], [-4, [-1, 5, 0], [0, -1, 2], -7, -1, [-1, 8]]]

class Sums
  def self.two(a, b) = a * 10 + b
  def self.three(a, b = 5, *c) = [a, b, c.size]
  def self.named(a:, b: 3) = a * 10 + b
end

elements.pmap do |x|
  sums = Sums
  pair = [*[x], 8]
  [sums.two(*[x, 6]), sums.three(*[x]), sums.three(0, *[x, 1], *[], *[2]), sums.named(**{ a: x }),
   sums.named(b: 9, **{ a: x }), pair]
end
