# A Method is called for what it does, not for what it gives.
#
# elements = [Counter(count: 1), Counter(count: 5)]
# gives: [4, 12]
# after: elements[0].count => 4
# after: elements[1].count => 12

class Counter
  attr_accessor :count

  def add(n) = @count += n

  def run
    add = method(:add)
    add.call(1)
    method(:add).call(@count)
    [].each(&add)
    method(:half).call(@count)
    @count - 0
  end

  def half(n) = n / 2
end

elements.pmap do |x|
  x.run
  x.count
end
