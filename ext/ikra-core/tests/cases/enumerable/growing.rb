# Arrays that grow in a local variable: pushed, popped, shifted, cleared, joined, and given back.
#
# list = [3, 1, 4, 1, 5]
# elements = [0, 1, 4, 9]
# gives: [[[0, 0, 0, 0, 0, 1, -1, 2, 7], -2, 1, 1, [3, 1, 4, 1, 5], [:a]], [[3, 4, 5, 0, 0, 1, -1, 2, -2, 3, 7], -3, 2, 1, [3, 1, 4, 1, 5], [:a]], [[12, 16, 20, 0, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, 7], -6, 4, 1, [3, 1, 4, 1, 5], [:a]], [[7], -11, 8, 1, [3, 1, 4, 1, 5], [:a]]]
# checks: 19

elements.pmap do |x|
  out = []
  list.each { |y| out << y * x if y > 1 }
  (x + 3).times { |i| out.push(i, -i) }
  last = out.pop
  stack = [x]
  steps = 0
  until stack.empty?
    top = stack.pop
    steps += 1
    if top > 0
      stack << top / 2
      stack << top / 3 if top > 5
    end
  end
  queue = [1]
  queue.concat(list)
  first = queue.shift
  names = []
  names << :a << :b
  names = []
  names.push(:a)
  out.clear if x == 9
  out << 7
  [out, last, steps, first, queue, names]
end
