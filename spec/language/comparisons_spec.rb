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
    it "refuses arrays and Structs that contain themselves, where it would go round" do
      node = Struct.new(:value, :next)
      lists = Array.new(2) { [1].tap { |list| list << list } }
      nodes = Array.new(2) { node.new(1).tap { |one| one.next = one } }
      refused = raise_error(Ikra::CompileError, /:\d+:\d+: kernels do not compare what contains itself/)
      [lists, nodes].each do |pair|
        expect { [pair].pmap(backend:) { |a, b| a == b } }.to refused
        expect { [pair].pmap(backend:) { |a, b| a != b rescue false } }.to refused
        expect { [pair].pmap(backend:) { |a, b| a.eql?(b) } }.to refused
        expect { [pair].pmap(backend:) { |a, b| [a].include?(b) } }.to refused
        expect { |one| one[0] == one[0] }.to be_same_as_ruby.over([pair])
      end
      expect { [lists].pmap(backend:) { |a, b| a <=> b } }.to refused
      # They differ in their first parts.
      lists[1][0] = 2
      nodes[1].value = 2
      expect { |a, b| [a == b, a <=> b] }.to be_same_as_ruby.over([lists, lists])
      expect { |a, b| [a == b, a.eql?(b)] }.to be_same_as_ruby.over([nodes, nodes])
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
