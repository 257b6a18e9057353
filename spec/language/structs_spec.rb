# frozen_string_literal: true

module Structs
  Point = Struct.new(:x, :y) do
    def length2 = x * x + y * y
    def grow(n) = self.x += n
  end

  Named = Struct.new(:name, :size, keyword_init: true)

  class Pixel < Point
    attr_accessor :color

    def initialize(x, y, color)
      super(x, y)
      @color = color
    end

    def x = super + 1000
  end

  class Cell < Struct.new(:value, :below)
    def depth = below ? below.depth + 1 : 0
  end

  # More members than fit within the object, in every Ruby.
  Wide = Struct.new(*("a".."z").map(&:to_sym))

  class Own
    attr_accessor :point

    def initialize(point) = @point = point
    def shift = @point.x += 1
  end
end

RSpec.describe "Structs" do
  point = ->(x, y) { Structs::Point.new(x, y) }

  on_every_backend do
    it "are elements, whose members are read by name and by index" do
      expect do |run|
        run.pmap([Structs::Point.new(1, 2.5), Structs::Pixel.new(3, nil, 7), Structs::Point.new(-1, 0)]) do |p|
          p.x * 100 + (p[:y] || 5) + p[0] + (p.is_a?(Structs::Pixel) ? p.color : 0) + p.size
        end
      end.to be_same_as_ruby
    end

    it "are indexed by Integers that are known when it runs" do
      s = Structs::Point.new(5, 2.5)
      expect { |i| s[i] }.to be_same_as_ruby.over(0, 1, -1, -2, 2, -3, nil)
    end

    it "are made with keywords as well" do
      expect do |run|
        run.pmap([Structs::Named.new(name: :a, size: 1), Structs::Named.new(name: :b)]) { |n| n.name == :a ? n.size : n.name }
      end.to be_same_as_ruby
    end

    it "are written by name and by index" do
      expect do |run|
        points = [point[1, 2], point[1.5, nil], Structs::Pixel.new(1, 2, 3)]
        run.peach(points, 3) do |p|
          p.x += 1
          p[:y] = p.y ? p[0] * 2 : 0
          p[-1] -= 1
          p.grow(2)
        end
        points
      end.to be_same_as_ruby
    end

    it "have many members" do
      expect do |run|
        wide = Array.new(3) { |i| Structs::Wide.new(*(1..26).map { |n| n * i }) }
        run.peach(wide) { |w| w.z += w.a + w[13]; w.m = nil; w[3] = 2.5 }
        wide
      end.to be_same_as_ruby
    end

    it "are made, with what is left out nil" do
      expect { |run| run.pmap([point[1, 2.5], point[-1, 0]]) { |p| [Structs::Point.new(p.y, p), Structs::Point.new(3), Structs::Cell[p.x, nil]] } }.to be_same_as_ruby
      expect do |run|
        owners = [Structs::Own.new(point[0, 0]), Structs::Own.new(point[5, 5])]
        run.peach(owners, 3) { |o| o.point = Structs::Pixel.new(o.point.x + 1, o.point, nil) }
        owners
      end.to be_same_as_ruby
    end

    it "are in ivars, arrays, variables and other Structs" do
      expect do |run|
        grid = [point[1, 2], point[3, 4]]
        nested = Structs::Cell.new(1, Structs::Cell.new(point[7, 8], nil))
        own = [Structs::Own.new(point[0, 0]), Structs::Own.new(point[5, 5])]
        run.peach(own, 2, &:shift)
        run.pmap([0, 1, 2]) { |i| grid[i] ? grid[i].length2 : nested.depth * 100 + nested.below.value.x }
      end.to be_same_as_ruby
    end

    it "come back as the same objects" do
      expect do |run|
        points = [point[1, 2], point[3, 4]]
        run.pmap(points) { |p| p.x > 1 ? p : points[0] }
      end.to be_same_as_ruby
    end

    it "are equal member by member" do
      same = point[1, 2]
      others = [point[1, 2], point[1.0, 2], point[1, nil], Structs::Pixel.new(1, 2, 3), same, nil, 1, Structs::Named.new(name: 1, size: 2)]
      expect { |p| (p == same ? 1 : 0) + (p != same ? 10 : 0) + (same == p ? 100 : 0) + (p.eql?(same) ? 1000 : 0) + (p.equal?(same) ? 10_000 : 0) }.to be_same_as_ruby.over(*others)
    end

    it "of lists are equal all the way down" do
      list = ->(*values) { values.reverse.inject(nil) { |below, value| Structs::Cell.new(value, below) } }
      same = list[1, 2, 3]
      expect { |c| c == same ? 1 : 0 }.to be_same_as_ruby.over(list[1, 2, 3], list[1, 2], list[1, 2, 4], list[1, 2, 3, 4], same)
    end

    it "are walked through, and give arrays" do
      expect { |run| run.pmap([point[1, 2.5], Structs::Pixel.new(3, nil, 7)]) { |p| p.to_a } }.to be_same_as_ruby
      expect { |run| run.pmap([point[1, 2.5], point[3, 4]]) { |p| p.sum + p.count { |v| v > 2 } } }.to be_same_as_ruby
    end

    it "raise for members that they lack" do
      s = point[1, nil]
      expect { |i| i == 0 ? s[:z] : i == 1 ? s[2] : i == 2 ? s[-3] : i == 3 ? s.z : s.y.z }.to be_same_as_ruby.over(0, 1, 2, 3, 4)
    end

    it "raise FrozenError where they are frozen" do
      expect do |run|
        points = [point[1, 2], point[3, 4].freeze]
        run.peach(points) { |p| p.x = 5 }
        points
      end.to be_same_as_ruby
      expect { |run| run.pmap([point[1, 2].freeze]) { |p| p.x + p.y } }.to be_same_as_ruby
    end

    it "keep methods of one object" do
      expect do |run|
        odd = point[1, 2]
        def odd.length2 = -1
        run.pmap([odd, point[1, 2], odd.dup.freeze]) { |p| p.length2 * 10 + (p == odd ? 1 : 0) }
      end.to be_same_as_ruby
    end

    it "are added to by all elements" do
      expect do |run|
        total = point[0, 0.5]
        run.peach((1..100).to_a) { |i| total.x += i }
        total
      end.to be_same_as_ruby
    end

    it "are made from keywords" do
      expect { |x| [Structs::Named.new(size: x), Structs::Named.new(name: x, size: [x]), Structs::Named.new, Structs::Named[name: :a]] }
        .to be_same_as_ruby.over(1, -0.5, nil)
      expect { |x| x == 0 ? Structs::Named.new(1, name: 2) : x == 1 ? Structs::Named.new(:a) : Structs::Named.new(size: 1, nmae: 2, x: 3) }
        .to be_same_as_ruby.over(0, 1, 2)
      expect { |x| x > 1 ? Structs::Point.new(1, 2, 3) : Structs::Point.new(x) }.to be_same_as_ruby.over(1, 2)
    end

    it "may have members that are no words" do
      odd = Struct.new(:"a b", :size, :x?).new(1, 2, 3)
      expect { |i| odd[:"a b"] + odd.size * i + odd[:x?] * 100 }.to be_same_as_ruby.over(1, 5)
    end

    if RUBY_VERSION >= "3.2"
      it "as Data are read, and never written" do
        expect do |run|
          data = Class.new(Data.define(:a, :b)) { def sum = a + b }
          run.pmap([data.new(1, 2), data.new(a: 3.5, b: 4)]) { |d| d.sum * 10 + (d == data.new(1, 2) ? 1 : 0) }
        end.to be_same_as_ruby
      end

      it "as Data are made by position and by name, and come back frozen" do
        data = Data.define(:x, :y)
        lazy = Data.define(:x, :y) { def initialize(x:, y: 7) = super(x: x, y: y) }
        expect { |x| [data.new(x, 2), data.new(y: x, x: data[1, 2]), lazy.new(x), lazy.new(y: x, x: 1), data.new(x, x).with(y: 0.5)] }
          .to be_same_as_ruby.over(1, nil, -0.0)
        expect([1].pmap { |x| data.new(x, [x]) }.first).to be_frozen
        expect { |x| data.new(x, 2) == data.new(1, 2) && data.new(x, 2).eql?(data.new(1, 2)) }.to be_same_as_ruby.over(1, 1.0, 2)
      end

      it "as Data raise what Ruby raises for arguments that do not fit" do
        data = Data.define(:x, :y)
        expect do |i|
          case i
          when 0 then data.new(1)
          when 1 then data.new
          when 2 then data.new(1, 2, 3)
          when 3 then data.new(x: 1, y: 2, z: 3)
          when 4 then data.new(1, y: 2)
          when 5 then data.new(1, 2).with(z: 1)
          when 6 then data.new(1, 2).with(1)
          end
        end.to be_same_as_ruby.over(0, 1, 2, 3, 4, 5, 6)
      end

      it "as Data are taken apart by patterns" do
        data = Data.define(:x, :y)
        expect do |x|
          case data.new(x, [x, 2])
          in { x: Integer => n, y: [_, last] } then n + last
          in { x: nil } then :none
          end
        end.to be_same_as_ruby.over(1, nil)
      end
    else
      it "made by position take no keywords, which Ruby would make a Hash of" do
        expect { [1].pmap { |x| Structs::Point.new(x: x) } }.to raise_error(Ikra::CompileError, /would be a Hash/)
      end
    end
  end

  it "take no Strings as names of members, and no Ranges" do
    expect { [Structs::Point.new(1, 2)].pmap { |p| p.dig("x") } }.to raise_error(Ikra::CompileError, /members of Structs by a String/)
    expect { [Structs::Point.new(1, 2)].pmap { |p| p.values_at(0..1) } }.to raise_error(Ikra::CompileError, /values_at of a Struct with a Range/)
  end

  it "are not written by all elements at once" do
    shared = Structs::Point.new(1, 2)
    expect { [1, 2].peach { |i| shared[:x] = i } }.to raise_error(Ikra::CompileError, /every element writes x of the same/)
  end

  it "give Hashes of their members" do
    points = [Structs::Point.new(1, 2), Structs::Point.new(3, 4)]
    backends.each do |backend|
      expect(points.pmap(backend: backend) { |p| p.to_h }).to eq points.map(&:to_h)
      expect(points.pmap(backend: backend) { |p| p.to_h { |name, value| [value, name] } }).to eq(points.map { |p| p.to_h { |name, value| [value, name] } })
    end
  end
end
