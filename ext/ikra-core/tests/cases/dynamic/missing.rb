# method_missing, respond_to_missing?, instance variables and methods by name.
#
# a = Ghost(x: 3, list: [4, 5, 6])
# elements = [1, 5]
# gives: [116, 256]
# after: a.x => 3
#
# a = Ghost(x: 3, list: [4, 5, 6])
# elements = [100]
# raises: NoMethodError at line 19, index 0, tick 0: undefined method `other' for #<Ghost>

class Ghost
  attr_reader :x

  def method_missing(name, n = 0)
    case name
    when :double then n * 2
    when :triple then n * 3
    else super
    end
  end

  def respond_to_missing?(name, all)
    name == :double || name == :triple
  end

  def hidden(n) = n + 1
  private :hidden

  def first_last((a, *, c), n) = a + c + n
  def list = @list
end

elements.pmap do |x|
  a.other(x) if x == 100
  sum = a.double(x) + a.triple(x) * 10
  sum += 50 if a.respond_to?(:double) && !a.respond_to?(:quadruple)
  sum += a.instance_variable_get(:@x) + a.send(:hidden, x) + a.public_send(:x)
  sum += a.first_last(a.list, x)
  (p, *), q = a.list, x
  *, r = a.list
  sum += p + q + r
  a.list.then { |m, *| sum += m.is_a?(Integer) ? m : 1 }
  sum
end
