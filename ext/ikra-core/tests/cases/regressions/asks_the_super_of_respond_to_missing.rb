# What a class does not answer for, Ruby's own `respond_to_missing?` denies.
#
# elements = [1, 2]
# gives: [[true, false, 3], [true, false, 4]]

class Ghost
  def initialize(n)
    @n = n
  end

  def respond_to_missing?(name, private = false)
    name == :ghost || super
  end

  def method_missing(name, *args)
    name == :ghost ? @n + args.size : super
  end
end

elements.pmap do |n|
  ghost = Ghost.new(n)
  [ghost.respond_to?(:ghost), ghost.respond_to?(:other), ghost.ghost(7, 8)]
end
