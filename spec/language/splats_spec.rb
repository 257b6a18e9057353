# frozen_string_literal: true

module Splats
  Point = Struct.new(:x, :y)

  class << self
    def three(a, b, c) = [a, b, c]
    def optional(a, b = 5, c = 6) = [a, b, c]
    def rest(a, *others) = [a, others]
    def behind(*others, z) = [others, z]
    def keyword(a, b, by: 1) = [a, b, by]
    def gives(list) = yield(*list)
    def gives_more(x, list) = yield(x, *list)
    def added(a, b) = yield(a + b)
    def through(*list) = rest(*list)
    def changed(*list) = rest(*list.map { |x| x + 1 })

    def replaced(*list)
      list = [0, 1] if list.size > 2
      rest(*list)
    end
  end

  class Base
    attr_reader :a, :b

    def initialize(a, b)
      @a = a
      @b = b
    end

    def sum(*list) = list.sum
    def product(x, y) = x * y
  end

  class Derived < Base
    def sum(*list) = super(*list) + 100
    def product(*list) = super(*list) + 1
  end
end

RSpec.describe "A splat in a call" do
  on_every_backend do
    let(:lists) { [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4], []] }

    it "gives the elements of a list, as many as there are" do
      pair = [7, 8]
      expect { |list| Splats.three(*list) }.to be_same_as_ruby.over(*lists)
      expect { |list| Splats.optional(0, *list) }.to be_same_as_ruby.over(*lists)
      expect { |list| [Splats.rest(*list), Splats.behind(*list)] }.to be_same_as_ruby.over([1], [1, 2, 3, 4, 5, 6, 7, 8], [])
      expect { |x| [Splats.three(x, *pair), Splats.three(*pair, x), Splats.keyword(*pair, by: x), Splats.three(*[x], *pair)] }.to be_same_as_ruby.over(1, 2.5)
    end

    it "gives what to_a makes of other values" do
      expect { |x| [Splats.rest(0, *x), Splats.three(*1..3)] }.to be_same_as_ruby.over(nil, 4, [5, 6])
    end

    it "gives elements to blocks and lambdas, which take one array apart" do
      expect { |list| Splats.gives(list) { |a, b| [a, b] } }.to be_same_as_ruby.over([], [1], [1, 2, 3], [[1, 2]], [[1, 2], 3])
      expect { |list| Splats.gives_more(0, list) { |a, b, *c| [a, b, c] } }.to be_same_as_ruby.over([], [1], [1, 2, 3], [[1, 2]])
      expect { |list| Splats.added(*list) { |x| x * 10 } + Splats.added(*list, &:succ) }.to be_same_as_ruby.over([1, 2], [1, 2, 3])
      expect do |list|
        difference = ->(a, b) { a - b }
        [difference.call(*list), difference.(*list), difference[*list]]
      end.to be_same_as_ruby.over([1, 2], [5, 3])
    end

    it "goes with super, send, new, operators of lists and Ruby's own methods" do
      object = Splats::Derived.new(1, 2)
      expect { |list| [object.sum(*list), object.product(*list), object.send(:product, *list)] }.to be_same_as_ruby.over([1, 2], [1, 2, 3])
      expect { |list| [Splats::Base.new(*list).b, Splats::Point.new(*list)] }.to be_same_as_ruby.over([1, 2], [3, 4])
      expect { |list| [[5, 6, 7, 8][*list], 50.clamp(*list), Math.hypot(*list)] }.to be_same_as_ruby.over([1, 2], [3, 4])
      expect { |list| Math.hypot(*list) }.to be_same_as_ruby.over([1, 2], [1], [1, 2, 3])
      expect do |list|
        out = [0]
        out.push(*list)
        out
      end.to be_same_as_ruby.over([1, 2], [])
    end

    it "passes on what a splat parameter has collected" do
      expect { |x| [Splats.through(x), Splats.through(x, 2, 3), Splats.changed(x, 5), Splats.replaced(x, 2), Splats.replaced(x, 2, 3)] }.to be_same_as_ruby.over(1)
      expect { |list| [Splats.through(*list), Splats.replaced(*list)] }.to be_same_as_ruby.over([1], [1, 2], [1, 2, 3], [])
    end

    it "evaluates arguments from left to right, once" do
      expect do |list|
        n = 0
        [Splats.rest((n += 1), *(n += 10; list), (n += 100)), n] # rubocop:disable Style/Semicolon
      end.to be_same_as_ruby.over([1, 2], [3, 4])
    end

    it "stands in a call that nil skips, with its arguments" do
      expect do |list|
        n = 0
        object = list.size > 1 ? Splats : nil
        [object&.rest(*list, (n += 1)), n, list.first&.+(*list.drop(1).take(1)), (object&.rest(*list, *list) { |x| x })] # rubocop:disable Style/Semicolon
      end.to be_same_as_ruby.over([1, 2], [3, 4, 5])
      expect { |list| n = 0; object = list.size > 9 ? Splats : nil; [object&.rest(*list, (n += 1)), n] }.to be_same_as_ruby.over([1, 2], [1])
    end

    it "is refused where a list turns out to be longer than kernels know" do
      expect { [[1] * 8, [1] * 9].pmap(backend:) { |list| Splats.rest(*list) } }.to raise_error(Ikra::CompileError, /splats of up to 8 elements/)
    end
  end
end
