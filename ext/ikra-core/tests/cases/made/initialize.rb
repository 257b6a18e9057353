# Constructors: defaults, keywords, super, none at all; ivars that some path leaves unset are nil.
#
# elements = [0, 1, 2, 3]
# gives: [125, 128, 1131, 134]

class Plain
  attr_accessor :late
end

class Base
  attr_reader :a, :b, :c

  def initialize(a, b = a * 2, c: 3)
    @a = a
    @b = b
    @c = c
  end
end

class Derived < Base
  attr_reader :d, :e

  def initialize(a)
    super(a, c: 100)
    @d = a if a == 2
    setup
  end

  def setup
    @e = @a + 10
  end
end

elements.pmap do |i|
  plain = Plain.new
  first = plain.late.nil? ? 1 : 0
  plain.late = i
  base = Base.new(i, 4)
  derived = Derived.new(i)
  rare = derived.d
  extra = rare.nil? ? 0 : rare * 500
  first + plain.late - i + base.b + base.c + derived.b + derived.c + derived.e + base.a - i + extra + 7
end
