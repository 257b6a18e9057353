# frozen_string_literal: true

module Patterns
  Triple = Struct.new(:x, :y, :z)

  class Keyed
    def initialize(a) = @a = a

    def deconstruct_keys(_keys) = { a: @a, b: 2 }
  end

  Point = Struct.new(:x, :y)
  Named = Struct.new(:name, :size, keyword_init: true)

  class Plain
    def initialize(v) = @v = v
    attr_reader :v
  end

  # An object with `deconstruct` of its own.
  class Own
    attr_reader :b

    def initialize(a, b)
      @a = a
      @b = b
    end

    def deconstruct = [@a, @b]
    def deconstruct_keys(_keys) = { a: @a, b: b, kind: :own, count: 2 }
    def pinned(x) = x in ^@a
  end

  class Hidden < Own
    private :deconstruct, :deconstruct_keys
  end

  class Odd
    def deconstruct = nil
    def deconstruct_keys(_keys) = { a: 1 + 2 }
  end
end

RSpec.describe "Pattern matching in kernels" do
  it "matches values, classes, alternatives, pins, guards and bindings" do
    pin = 7
    expect([0, 1, 6, 7, 8, 2.5, nil, :a, true]).to map_same_as_ruby { |x|
      case x
      in 0 then 1
      in ^pin | 8 then 2
      in Integer => n if n < 5 then 10 + n
      in Integer | Float then 3
      in nil then 4
      in :a | :b then 5
      in _ then 6
      end
    }
  end

  it "takes arrays apart" do
    lists = [[], [1], [1, 2], [1, 2, 3], [2, 9, 9, 4]]
    expect([0, 1, 2, 3, 4]).to map_same_as_ruby { |i|
      case lists[i]
      in [] then 0
      in [a] then a
      in [1, b] then b * 10
      in [1, *, c] then c * 100
      in [a, *] then a * 1000
      end
    }
  end

  it "matches an array literal that is never made" do
    expect([0, 3, 5, 15]).to map_same_as_ruby { |x|
      case [x % 3, x % 5]
      in [0, 0] then :fizzbuzz
      in [0, _] then :fizz
      in [_, 0] then :buzz
      end
    }
  end

  it "takes Structs apart by position and by name" do
    points = [Patterns::Point.new(1, 2), Patterns::Point.new(0, 5), Patterns::Named.new(name: :n, size: 3)]
    expect(points).to map_same_as_ruby { |p|
      case p
      in Patterns::Point[0, y] then y
      in { x:, y: Integer => y } then (x * 10) + y
      in { name: :n, size: } then size * 100
      end
    }
  end

  it "says in and => alone" do
    pair = [3, 4]
    expect([3, 5]).to map_same_as_ruby { |x|
      pair => [a, b]
      (x in 3 | 4) ? a : b
    }
  end

  it "knows String literals beside array patterns" do
    expect([[1, 2], [3], []]).to map_same_as_ruby { |x| case x; in [_, _] then "two"; in [_] then "one"; in [] then "none"; end }
  end

  on_every_backend do
    it "raises NoMatchingPatternError" do
      expect { |x|
        case x
        in 1 then 1
        in 2 then 2
        end
      }.to be_same_as_ruby.over(1, 3)
    end
  end

  it "matches no object that cannot be taken apart" do
    plain = Patterns::Plain.new(1)
    expect([1]).to map_same_as_ruby { |x| (plain in [*]) || (plain in { v: 1 }) ? x : -x }
  end

  it "takes captured Hashes apart" do
    tables = [{ a: 1, b: 2 }, { a: 2.5 }, {}, { b: 1 }, { b: 1, c: [3, { d: 4 }] }, { "a" => 1 }]
    expect([0, 1, 2, 3, 4, 5]).to map_same_as_ruby { |i|
      case tables[i]
      in { a: Integer => x, b: } then [x, b]
      in { a: } then [a, :a]
      in {} then :empty
      in { b: 1, **nil } then :alone
      in { b:, c: [c, { d: }], ** } then [b, c, d]
      in { zork: } then zork
      in _ then :other
      end
    }
  end

  it "counts the keys of Structs in {} and **nil" do
    expect([Patterns::Point.new(1, 2), Patterns::Point.new(2, 3)]).to map_same_as_ruby { |point|
      case point
      in {} then 1
      in { x: 1, **nil } then 2
      in { x: 2, y:, **nil } then y
      else 9
      end
    }
  end

  it "asks classes of the program's own" do
    objects = [Patterns::Own.new(1, 2), Patterns::Own.new(3, nil), 5, [1, 2], nil, Patterns::Point.new(1, 9), Patterns::Hidden.new(1, 2)]
    expect(objects).to map_same_as_ruby { |object|
      case object
      in [1, b] then [:list, b]
      in { a:, kind: :own } then a
      in Integer then 0
      in nil then 1
      in _ then 2
      end
    }
    expect(objects).to map_same_as_ruby { |object|
      case object
      in Patterns::Own(a, nil) then a
      in { a:, b:, kind:, count:, **nil } then [a, b, kind, count]
      in [*, 9, *rest] then rest
      in [*all] then all
      else 0
      end
    }
  end

  it "pins expressions and instance variables" do
    own = Patterns::Own.new(7, 0)
    expect([1, 2, 7]).to map_same_as_ruby { |x|
      case x
      in ^(1 + 1) then 1
      in ^(own.b + 1) then 2
      else own.pinned(x)
      end
    }
  end

  it "is refused for what it cannot ask" do
    expect { [Patterns::Odd.new].pmap { |x| x in [a] } }.to raise_error(Ikra::CompileError, /deconstruct only where it gives an Array, which Patterns::Odd's may not/)
    expect { [Patterns::Odd.new].pmap { |x| x in { a: 3 } } }.to raise_error(Ikra::CompileError, /Patterns::Odd for deconstruct_keys.*written out/m)
  end

  it "binds the other keys with **rest, which is asked for some" do
    triple = Patterns::Triple.new(1, 2, nil)
    expect([triple, Patterns::Triple.new(3, 4, 5), Patterns::Keyed.new(6), 7]).to map_same_as_ruby { |v|
      case v
      in { x: 1, **rest } if rest[:y] == 3 then :never
      in { x:, **rest } then [x, rest[:y], rest[:x], rest[:w], rest.key?(:z), rest.include?(:x), rest.size, rest.empty?, rest.any?]
      in { a:, **others } then [a, others[:b], others.length]
      else v
      end
    }
    expect([triple]).to map_same_as_ruby { |v|
      v => { x:, y:, z:, **none }
      [x, y, z, none.size, none.empty?, none.any?]
    }
    expect([triple]).to map_same_as_ruby { |v| [(v in { x: Integer, **unread }), (v in { x: 1, **nil }), (v in { x: 1, y: 2, z: nil, **nil })] }
    expect([Patterns::Triple.new(triple, 2, 3)]).to map_same_as_ruby { |v|
      v => { x: { y:, **inner }, **outer }
      [y, inner[:x], inner.size, outer[:z], [1, 2].map { |k| k + outer[:y] }]
    }
    hashes = [{ a: 1, b: 2 }, Hash.new(7).merge!(a: 1, c: 3)]
    expect([0, 1]).to map_same_as_ruby { |i|
      hashes[i] => { a:, **rest }
      [a, rest[:a], rest[:b], rest[:c], rest.key?(:b), rest.size]
    }
  end

  it "has with **rest what was there when the pattern matched" do
    expect { [Patterns::Triple.new(1, 2, 3)] }.to each_same_as_ruby { |v|
      v => { x:, **rest }
      v.y = 9
      v.z = [x, rest[:y], v.y].sum
    }
  end

  it "has nil in **rest where no pattern has matched" do
    expect([Patterns::Triple.new(1, 2, 3), 4]).to map_same_as_ruby { |v|
      case v
      in { x:, **rest } then rest[:y] + x
      else
        begin
          rest[:y]
        rescue NoMethodError
          :none
        end
      end
    }
  end

  it "makes no Hash of **rest" do
    refused = [->(v) { v => { x:, **rest }; rest }, ->(v) { v => { x:, **rest }; rest.to_a }, ->(v) { v => { x:, **rest }; rest[v.x] }] # rubocop:disable Style/Semicolon
    refused.each do |block|
      expect { [Patterns::Triple.new(1, 2, 3)].pmap(&block) }.to raise_error(Ikra::CompileError, /the Hash that `\*\*` of a pattern gives/)
    end
    assigned = lambda do |v|
      rest = v
      v in { x: 1, **rest }
    end
    expect { [Patterns::Triple.new(1, 2, 3)].pmap(&assigned) }.to raise_error(Ikra::CompileError, /`\*\*` of a pattern binds and something else assigns/)
  end
end
