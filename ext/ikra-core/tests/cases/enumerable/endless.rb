# An each without an end is left by what needs only its first values.
#
# elements = [1, 5]
# gives: [[1, [1, 2, 3], [1, 2], [1, 2, 3, 4, 5, 6, 7], 7, true, [3, 7, 11, 2, 6, 1, 2, 3], 8, [1, 2], [1, 2, 3, 4, 5, 6, 7]], [5, [5, 6, 7], [5, 6], [5, 6, 7], 7, true, [11, 15, 19, 30, 42, 5, 6, 7], 8, [1, 2], [5, 6, 7]]]
# checks: 18

class Naturals
  include Enumerable

  def initialize(first)
    @first = first
  end

  def each
    i = @first
    while true
      yield i
      i += 1
    end
  end
end

elements.pmap do |x|
  all = Naturals.new(x)
  sums = []
  all.each_slice(2) { |slice| sums << slice.sum; break if sums.size == 3 }
  all.each_cons(2) { |a, b| sums << a * b; break if sums.size == 5 }
  all.zip([7, 8]) { |a, b| sums << a; break if b.nil? }
  found = all.select { |y| break y if y > 7; true }
  [all.first, all.first(3), all.take(2), all.take_while { |y| y < 8 }, all.find { |y| y % 7 == 0 }, all.include?(9), sums, found,
   (1..10**12).first(2), (x..10**12).take_while { |y| y < 8 }]
end
