# No ticks: nothing runs.
#
# elements = [Counter(n: 0)]
# gives: [Counter#1]
# after: elements[0].n => 0

class Counter
  def up
    @n += 1 / 0
  end
end

elements.peach(0) { |counter| counter.up }
