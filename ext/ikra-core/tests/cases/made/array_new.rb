# Array.new, with a length that only the element knows.
#
# elements = [0, 1, 5]
# gives: [[], [0], [0, 1, 1, 2, 3]]
#
# elements = [2, -1]
# raises: ArgumentError at line 10, index 1, tick 0: negative array size

elements.pmap do |n|
  list = Array.new(n, 0)
  i = 1
  while i < n
    list[i] = i == 1 ? 1 : list[i - 1] + list[i - 2]
    i += 1
  end
  list
end
