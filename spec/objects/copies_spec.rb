# frozen_string_literal: true

module Copies
  class Point
    attr_accessor :x, :y, :z

    def initialize(x, y)
      @x = x
      @y = y
    end

    def moved(by) = dup.tap { |copy| copy.x += by }
  end

  class Pixel < Point
    attr_accessor :color
  end

  # Scopes watch its accessors from then on.
  class Watched
    attr_accessor :x, :y, :z

    def initialize(x, y)
      @x = x
      @y = y
    end

    def moved(by) = dup.tap { |copy| copy.x += by }
  end

  class Holder
    attr_accessor :kept
  end

  class Deep
    attr_accessor :list

    def initialize(list) = @list = list

    def initialize_copy(other)
      super
      @list = other.list.dup
    end
  end

  class Told < Point
    def initialize_dup(other)
      super
      @x = 55
    end

    def initialize_clone(other, freeze: nil)
      super
      @y = freeze.nil? ? 1 : 2
    end
  end

  class Bare
    attr_accessor :v

    def initialize_dup(_other) = @v = 3
  end

  class Unique
    def initialize_copy(_other) = raise(TypeError, "not copied")
  end

  class Constant
    attr_reader :value

    def initialize(value)
      @value = value
      freeze
    end

    def with(value) = dup.tap { |copy| copy.set(value) }.freeze

    def set(value) = @value = value
  end

  class Own
    def dup = 7
    def clone(freeze: nil) = freeze ? 8 : 9 # rubocop:disable Lint/UnusedMethodArgument
    def freeze = 10
    def frozen? = 11
  end

  Pair = Struct.new(:a, :b)
  Named = Struct.new(:a, :b, keyword_init: true)

  class Triple < Pair
    attr_accessor :c
  end

  class Choosy < Pair
    def initialize_copy(_other) = self.a = 4
  end

  def self.hidden(object, value = "hidden")
    object.tap { |o| o.instance_variable_set(:@hidden, [value, { a: 1 }]) }
  end

  def self.mixed
    [hidden(Point.new(1, 2)), Pixel.new(3, 4), hidden(Pixel.new(5, 6)), Pair.new(1, [2]), Named.new(a: 1, b: 2),
     hidden(Triple.new(7, 8)).tap { |triple| triple.c = 9 }, Point.allocate, Point.new(1, 2).freeze, Pair.new(3, 4).freeze]
  end
end

RSpec.describe "Copies and frozen objects" do
  on_every_backend do
    it "have what the original has, also what no kernel could hold" do
      expect { |run| run.pmap(Copies.mixed, &:dup) }.to be_same_as_ruby
      expect { |run| run.pmap(Copies.mixed, &:clone) }.to be_same_as_ruby
      expect { |run| run.pmap(Copies.mixed) { |x| [x.dup.dup, x.clone.dup, x, x.dup.clone] } }.to be_same_as_ruby
    end

    it "are objects of their own" do
      expect do |run|
        points = [Copies.hidden(Copies::Point.new(1, [2])), Copies::Point.new(3, nil)]
        run.pmap(points) do |point|
          copy = point.dup
          copy.x = 9
          point.y = :changed if point.y
          [point.x, copy, point.equal?(copy), copy.z]
        end
      end.to be_same_as_ruby
    end

    it "take a nil from the original as what was set, and nothing where nothing was" do
      expect do |run|
        points = [Copies::Point.new(1, nil), Copies::Point.allocate]
        run.pmap(points) do |point|
          copy = point.dup
          copy.x = nil if point.x
          [copy, Copies::Point.new(nil, 2).dup, Copies::Point.new(nil, nil)]
        end
      end.to be_same_as_ruby
    end

    it "are kept in objects, in every tick, and by methods" do
      expect do |run|
        holders = Array.new(3) { Copies::Holder.new }
        points = Array.new(3) { |i| Copies.hidden(Copies::Point.new(i, "s")) }
        run.peach([0, 1, 2], 3) { |i| holders[i].kept = (holders[i].kept || points[i]).moved(10) }
        [holders, points]
      end.to be_same_as_ruby
      expect do |run|
        points = Array.new(300) { |i| Copies.hidden(Copies::Point.new(i, i.to_s)) }
        run.peach(points) do |point|
          copy = point
          5.times { copy = copy.moved(1) }
          point.z = copy
        end
      end.to be_same_as_ruby
    end

    it "of what is captured, one for each element" do
      expect do |run|
        point = Copies.hidden(Copies::Point.new(1, [2]))
        run.pmap([0, 1]) { |i| point.moved(i) }
      end.to be_same_as_ruby
    end

    it "run the class's own initialize_copy, initialize_dup and initialize_clone" do
      expect { |run| run.pmap([Copies.hidden(Copies::Deep.new([1, 2]))]) { |d| [d, d.dup.tap { |e| e.list[0] = 9 }, d.clone] } }
        .to be_same_as_ruby
      expect { |run| run.pmap([Copies::Told.new(1, 2)]) { |t| [t.dup, t.clone, t.clone(freeze: true), t.clone(freeze: false)] } }
        .to be_same_as_ruby
      expect { |run| run.pmap([Copies::Bare.new]) { |b| [b.dup, b.clone] } }.to be_same_as_ruby
      expect { |run| run.pmap([Copies::Unique.new], &:dup) }.to be_same_as_ruby
    end

    it "are frozen as Ruby says" do
      expect do |run|
        run.pmap(Copies.mixed) do |x|
          [x.frozen?, x.dup, x.clone, x.clone(freeze: true), x.clone(freeze: false), x.clone(freeze: nil), x.dup.frozen?]
        end
      end.to be_same_as_ruby
      expect do |run|
        run.pmap([[1, 2], [3].freeze]) { |a| [a.frozen?, a.dup, a.clone, a.clone(freeze: true), a.clone(freeze: false)] }
      end.to be_same_as_ruby
    end

    it "give values that are frozen from the start themselves" do
      values = [1, 2.5, :a, nil, true, Complex(1, 2), 1/3r]
      expect { |x| [x.dup, x.clone, x.clone(freeze: true), x.freeze, x.frozen?] }.to be_same_as_ruby.over(*values)
      expect { |x| x.clone(freeze: false) }.to be_same_as_ruby.over(*values)
    end

    it "of Strings are new Strings" do
      made = %w[añb c].pmap(backend:) { |s| [s.dup, s[0].dup, "x".dup] }
      expect(made).to eq [%w[añb a x], %w[c c x]]
      expect(made.flatten.map(&:frozen?)).to eq [false] * 6
    end

    it "leave objects and arrays frozen that the section froze" do
      expect do |run|
        points = Array.new(4) { |i| Copies::Point.new(i, i) } + [Copies::Pixel.new(2, 0), Copies::Pixel.new(9, 0)]
        run.peach(points, 3) do |point|
          point.x += 1 unless point.frozen?
          point.freeze if point.x > 4
        end
      end.to be_same_as_ruby
      expect { |run| run.peach([[1, 2], [3], []]) { |a| a.size == 1 ? a.freeze : a.fill(0) } }.to be_same_as_ruby
      expect { |run| run.peach([Copies::Point.new(1, 2)] * 2, &:freeze) }.to be_same_as_ruby
    end

    it "come frozen where the section made and froze them" do
      expect { |run| run.pmap([1, 2]) { |i| [Copies::Point.new(i, [i].freeze).freeze, Copies::Point.new(i, [i])] } }.to be_same_as_ruby
      expect { |run| run.pmap([Copies::Constant.new(1)]) { |c| [c.with(5), Copies::Constant.new(2), c.frozen?] } }.to be_same_as_ruby
      expect { |run| run.pmap([[3, 1, 2]]) { |a| [a.sort.freeze, a.select(&:odd?).freeze, a.each_slice(2).map(&:freeze)] } }
        .to be_same_as_ruby
    end

    it "raise FrozenError where they are written, and leave everything as it was" do
      expect { |run| run.peach([Copies::Point.new(1, 2)]) { |p| p.freeze.x = 3 } }.to be_same_as_ruby
      expect { |run| run.pmap([1]) { |i| Copies::Point.new(i, 2).freeze.x = 3 } }.to be_same_as_ruby
      expect { |run| run.pmap([1]) { |i| Copies::Constant.new(i).set(3) } }.to be_same_as_ruby
      expect { |run| run.pmap([Copies.hidden(Copies::Point.new(1, 2))]) { |p| p.dup.freeze.x = 3 } }.to be_same_as_ruby
      expect { |run| run.pmap([Copies::Pair.new(1, 2)]) { |s| s.clone(freeze: true)[:a] = 3 } }.to be_same_as_ruby
      expect { |run| run.pmap([[1, 2]]) { |a| a.freeze[0] = 3 } }.to be_same_as_ruby
      expect { |run| run.pmap([1]) { |i| [i].freeze.map! { |x| x + 1 } } }.to be_same_as_ruby
      expect do |run|
        run.pmap([5]) do |i|
          grown = []
          9.times do |k|
            grown << k
            grown.freeze if k == i
          end
          grown
        end
      end.to be_same_as_ruby
    end

    it "may have that rescued" do
      expect do |run|
        run.pmap([Copies::Point.new(1, 2), Copies::Point.new(3, 4).freeze]) do |point|
          point.x += 1
          point.freeze.x = 9
        rescue FrozenError
          point.x
        end
      end.to be_same_as_ruby
    end

    it "see what Ruby froze between calls, in a scope, too" do
      [->(&block) { block.call }, ->(&block) { Ikra.resident(&block) }].each do |scope|
        points = Array.new(3) { |i| Copies::Watched.new(i, i) }
        lists = Array.new(3) { |i| [i] }
        seen = []
        scope.call do
          3.times do |k|
            seen << points.pmap(backend:, &:frozen?) << lists.pmap(backend:, &:frozen?)
            [points, lists].each { |list| list[k].freeze }
          end
        end
        expect(seen).to eq([0, 1, 2].flat_map { |k| [Array.new(3) { |i| i < k }] * 2 })
      end
    end

    it "work in a scope in which objects stay" do
      points = Array.new(3) { |i| Copies.hidden(Copies::Watched.new(i, i)) }
      Ikra.resident do
        points.peach(backend:) { |point| point.x += 1 }
        points.peach(backend:) { |point| point.z = point.moved(10) }
        points.peach(backend:) { |point| point.z.freeze }
        points.peach(backend:) { |point| point.x += 1 }
      end
      expect(points.map { |point| [point.x, point.z.x, point.z.instance_variable_get(:@hidden), point.z.frozen?] })
        .to eq([0, 1, 2].map { |i| [i + 2, i + 11, ["hidden", { a: 1 }], true] })
    end

    it "are the class's own methods where it has some" do
      expect { |x| [x.dup, x.clone, x.clone(freeze: true), x.freeze, x.frozen?] }.to be_same_as_ruby.over(Copies::Own.new)
    end
  end

  it "are refused where Ruby copies more than kernels know" do
    special = Copies::Point.new(1, 2).tap { |point| def point.own = 1 }
    { ->(x) { x.dup } => [special, Copies::Choosy.new(1, 2), Hash.new { 1 }, 1..2, Object],
      ->(x) { x.clone } => [special],
      ->(x) { x.frozen? } => [{ a: 1 }, 1..2, Object],
      ->(x) { x.freeze } => [+"abc", { a: 1 }, Object],
      ->(x) { x.clone(freeze: x) } => [3] }.each do |block, values|
      values.each { |value| expect { [value].pmap(backend: :reference, &block) }.to raise_error(Ikra::CompileError) }
    end
    shared = Copies::Point.new(1, 2)
    expect { [1, 2].peach(backend: :reference) { shared.freeze } }.to raise_error(Ikra::CompileError, /every element freezes the same/)
  end
end
