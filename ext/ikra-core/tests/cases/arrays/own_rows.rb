# Sums in rows that no other element touches are plain ones, in a register while the loop runs. `counts` is no such
# case: each of its rows is of several elements.
#
# sums = [0.5, 0.25, 1.0]
# counts = [0, 0, 0]
# values = [1.0, 2.0, 3.0, 4.0]
# elements = [4, 0, 2]
# after: sums => [10.5, 0.25, 4.0]
# after: counts => [2, 1, 0]
# shows: after:register_promotion

elements.peach do |limit|
  (0...limit).each { |k| sums[Ikra.index] += values[k] }
  counts[limit / 3] += 1
end
