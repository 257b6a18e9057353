# A number that is not negative is shifted to divide it by `1 << n`, and masked for the remainder.
#
# powers = [0, 3, 30]
# elements = [0, 77, -5]
# gives: [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [77, 0, 1, 0, 9, 5, 0, 1, 0, 77, 0, 1], [-5, 0, 2, 0, -1, 3, 0, 2, -1, 1073741819, 0, 2]]
# shows: after:ranges

elements.pmap do |x|
  powers.flat_map do |n|
    power = 1 << (n & 31)
    [x / power, x % power, Ikra.index / power, Ikra.index % power]
  end
end
