# frozen_string_literal: true

# Objects whose methods for equality, and for keys of Hashes, are called.
module Asked
  Equal = Struct.new(:answer) do
    def ==(_other) = answer
  end

  # Equal to a String, which calls its method.
  class Text
    def to_str = "q"
    def ==(_other) = true
  end

  # Defines only `hash`.
  class Other
    attr_reader :v

    def initialize(v) = @v = v
    def hash = 1
  end

  # Defines both.
  class Both < Other
    def eql?(other) = v == other.v
  end

  # Compares what it holds.
  class Holding
    attr_accessor :list

    def ==(other) = list == other.list
  end

  # Defines only `eql?`.
  class Alone
    attr_reader :v

    def initialize(v) = @v = v
    def eql?(_other) = true
  end
end

RSpec.describe "Comparisons" do
  on_every_backend do
    it "ask the object on the right where the left one does not know it" do
      expect { |x| o = Asked::Equal.new(x); [1i == o, 1i != o, Rational(1, 2) == o, 1 == o, 1.5 == o, [1i] == [o], nil == o, :a == o, "q" == o] }
        .to be_same_as_ruby.over(true, false)
      expect { [1].pmap(backend: backend) { |_| "q" == Asked::Text.new } }.to raise_error(Ikra::CompileError, /to_str/)
      expect { [1].pmap(backend: backend) { |_| (case Asked::Text.new when "q" then 1 else 2 end) } }.to raise_error(Ikra::CompileError, /to_str/)
    end

    it "by eql? are made where hash belongs to it" do
      expect { |x| [Asked::Other.new(x), Asked::Other.new(1)].uniq.map { |o| o.v } }.to be_same_as_ruby.over(1, 2)
      expect { |x| [Asked::Both.new(x), Asked::Both.new(1)].uniq.map { |o| o.v } }.to be_same_as_ruby.over(1, 2)
      expect { |x| ([Asked::Both.new(x)] - [Asked::Both.new(1)]).map { |o| o.v } }.to be_same_as_ruby.over(1, 2)
      expect { [1].pmap(backend: backend) { |x| [Asked::Alone.new(x), Asked::Alone.new(2)].uniq.size } }.to raise_error(Ikra::CompileError, /no hash/)
      expect { [1].pmap(backend: backend) { |x| [x, 2].uniq { |y| Asked::Alone.new(y) } } }.to raise_error(Ikra::CompileError, /no hash/)
    end
  end

  integers = Values.pairs(Values::INTEGERS)
  floats = Values.pairs(Values::FLOATS)

  on_every_backend do
    it "comes to an end where arrays and Structs contain themselves" do
      node = Struct.new(:value, :next)
      pair = Struct.new(:next, :list)
      lists = Array.new(2) { [1].tap { |list| list << list } }
      nodes = Array.new(2) { node.new(1).tap { |one| one.next = one } }
      longer = [[1, [1]], [1, [1, [1]]], [1, [1, [2]]]].each { |list| (list[1][1] || list[1]) << list }
      mixed = Array.new(2) { node.new(1).tap { |one| one.next = [pair.new(one, [one, 2])] } }
      expect { |a, b| [a == b, a != b, a.eql?(b), a <=> b, b == a, [a] == [b]] }
        .to be_same_as_ruby.over(lists, [lists[0], longer[0]], *longer.combination(2), [longer[1], lists[1]])
      expect { |a, b| [[a].include?(b), [1, b].index(a), [a, b].uniq.size, ([a] - [b]).size, ([a] & [b]).size, [a, b, a].count(b)] }
        .to be_same_as_ruby.over(lists, *longer.combination(2))
      expect { |a, b| [a == b, a != b, a.eql?(b), a.next == b.next, [a] <=> [a]] }.to be_same_as_ruby.over(nodes, mixed)
      expect { |a, b| case a when b then 1 else 2 end }.to be_same_as_ruby.over(lists, [lists[0], longer[2]])
      expect { |x| a, b = node.new(x), node.new(1); a.next = a; b.next = b; [a == b, a.eql?(b)] }.to be_same_as_ruby.over(1, 2)
      expect { |one| one[0] == one[0] }.to be_same_as_ruby.over([lists], [nodes])
      # They differ in their first parts.
      lists[1][0] = 2
      nodes[1].value = 2
      expect { |a, b| [a == b, a <=> b] }.to be_same_as_ruby.over([lists, lists])
      expect { |a, b| [a == b, a.eql?(b)] }.to be_same_as_ruby.over([nodes, nodes])
      # Doubly linked, so that each leads back to the one before.
      link = Struct.new(:before, :after, :value)
      chain = lambda do |count, last|
        links = Array.new(count) { |i| link.new(nil, nil, i) }
        links.each_cons(2) { |one, two| (one.after = two) && two.before = one }
        links.each { |one| one.value = last if one.after.nil? }.first
      end
      expect { |a, b| [a == b, a.eql?(b)] }.to be_same_as_ruby.over([chain.(30, 1), chain.(30, 1)], [chain.(30, 1), chain.(30, 2)], [chain.(30, 1), chain.(31, 1)])
      # Across a method of the program's own it is not known what is being compared.
      others = Array.new(2) { Asked::Holding.new.tap { |other| other.list = [other] } }
      expect { [others].pmap(backend:) { |a, b| a == b } }.to raise_error(Ikra::CompileError, /:\d+:\d+: kernels do not compare what nests so deep/)
      tree = node.new(1, node.new(2, node.new(3)))
      expect { |one| one == tree }.to be_same_as_ruby.over([node.new(1, node.new(2, node.new(3))), node.new(1, node.new(2, node.new(4)))])
    end

    it "orders Integers" do
      expect { |a, b| a < b }.to be_same_as_ruby.over(integers)
      expect { |a, b| a <= b }.to be_same_as_ruby.over(integers)
      expect { |a, b| a > b }.to be_same_as_ruby.over(integers)
      expect { |a, b| a >= b }.to be_same_as_ruby.over(integers)
      expect { |a, b| a <=> b }.to be_same_as_ruby.over(integers)
    end

    it "orders Floats, and NaN not at all" do
      expect { |a, b| a < b }.to be_same_as_ruby.over(floats)
      expect { |a, b| a <= b }.to be_same_as_ruby.over(floats)
      expect { |a, b| a > b }.to be_same_as_ruby.over(floats)
      expect { |a, b| a >= b }.to be_same_as_ruby.over(floats)
      expect { |a, b| a <=> b }.to be_same_as_ruby.over(floats)
    end

    it "knows equality of Integers" do
      expect { |a, b| a == b }.to be_same_as_ruby.over(integers)
      expect { |a, b| a != b }.to be_same_as_ruby.over(integers)
      expect { |a, b| a.eql?(b) }.to be_same_as_ruby.over(integers)
      expect { |a, b| a.equal?(b) }.to be_same_as_ruby.over(integers.select { |pair| pair.all? { |x| x.bit_length < 63 } })
    end

    it "knows equality of Floats" do
      expect { |a, b| a == b }.to be_same_as_ruby.over(floats)
      expect { |a, b| a != b }.to be_same_as_ruby.over(floats)
      expect { |a, b| a.eql?(b) }.to be_same_as_ruby.over(floats)
    end

    it "tells Integers from Floats by eql?" do
      expect { |a, b| a.eql?(b) }.to be_same_as_ruby.over([1, 1], [1, 1.0], [1.0, 1.0], [1.0, 1], [1, nil], [nil, nil])
    end

    it "knows equality of values of any kind" do
      values = [0, 1, 1.0, -0.0, Float::NAN, nil, true, false, :a, :b]
      expect { |a, b| a == b }.to be_same_as_ruby.over(Values.pairs(values))
      expect { |a, b| a != b }.to be_same_as_ruby.over(Values.pairs(values))
    end

    it "cannot order what has no order" do
      expect { |x| x < 1 }.to be_same_as_ruby.over(0, 2.0, nil)
      expect { |x| 1 < x }.to be_same_as_ruby.over(0, 2.0, nil, true, :a)
      expect { |x| 1.5 >= x }.to be_same_as_ruby.over(0, 2.0, nil, true, :a)
      expect { |x| 1 <=> x }.to be_same_as_ruby.over(0, 2.0, Float::NAN, nil, true, :a)
    end

    it "has between? and clamp" do
      expect { |x| x.between?(-1, 2) }.to be_same_as_ruby.over(Values::INTEGERS)
      expect { |x| x.between?(-1, 2.5) }.to be_same_as_ruby.over(Values::FLOATS)
      expect { |x| x.clamp(-2, 10) }.to be_same_as_ruby.over(Values::INTEGERS)
      expect { |x| x.clamp(-2.5, 10.5) }.to be_same_as_ruby.over(Values::FLOATS - [Float::NAN])
      expect { |x| x.clamp(1..5) }.to be_same_as_ruby.over(Values::INTEGERS)
      expect { |a, b| 3.clamp(a, b) }.to be_same_as_ruby.over([1, 2], [4, 9], [2, 3], [5, 1])
    end
  end
end
