# Counts and places are converted by to_int, as Ruby does; slices may lack an end.
#
# list = [1, 2, 3, 4]
# elements = [0.7, 1.2, 2]
# gives: [[[1], [], [], [1, 2, 3, 4], [1, 2, 3, 4], 1, [1], 1, [], [[1], [2], [3], [4]], 0, [9, 2, 3, 4], [2, 3, 4], [1, 2], [3, 4], nil, [0], "a", 0.0, 0.0, -0.0], [[1, 2], [4], [1], [2, 3, 4], [2, 3, 4, 1], 2, [2], 2, [1, 2, 3, 4], [[1, 2], [3, 4]], 4, [1, 9, 3, 4], [2, 3, 4], [1, 2], [3, 4], nil, [0, 1], "b", 0.0, 0.0, -0.0], [[1, 2, 3], [3, 4], [1, 2], [3, 4], [3, 4, 1, 2], 3, [3], 3, [1, 2, 3, 4, 1, 2, 3, 4], [[1, 2, 3], [4]], 8, [1, 2, 9, 4], [2, 3, 4], [1, 2], [3, 4], nil, [0, 1, 2], "c", 0.0, 0.0, -0.0]]
# checks: 156

elements.pmap do |x|
  turns = 0
  list.cycle(x) { turns += 1 }
  copy = list.dup
  copy[x] = 9
  [list.first(x + 1), list.last(x), list.take(x), list.drop(x), list.rotate(x), list[x], list[x, 1.5], list.fetch(x),
   list * x, list.each_slice(x + 1).to_a, turns, copy, list[1..], list[..1], list[-2..], list[5..], Array.new(x + 1) { |i| i },
   "abc"[x], "-".to_f, "-x".to_f, "-0".to_f]
end
