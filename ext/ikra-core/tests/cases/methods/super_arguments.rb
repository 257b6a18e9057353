# `super` with and without arguments, through a module.
#
# elements = [Child(n: 5)]
# gives: [650]

class Parent
  def compute(a, b = 2) = a * 10 + b
end

module Doubling
  def compute(a, b = 3) = super * 2
end

class Child < Parent
  include Doubling

  def compute(a, b = 4)
    super + super(a) + super(1, 1) + @n
  end
end

elements.pmap { |child| child.compute(7) + child.compute(7, 8) }
