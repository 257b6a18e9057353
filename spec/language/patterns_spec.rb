# frozen_string_literal: true

module Patterns
  Point = Struct.new(:x, :y)
  Named = Struct.new(:name, :size, keyword_init: true)

  class Plain
    def initialize(v) = @v = v
    attr_reader :v
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
end
