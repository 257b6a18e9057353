# frozen_string_literal: true

require "tmpdir"

module Blocks
  class Walk
    include Enumerable

    attr_reader :steps

    def initialize(steps) = @steps = steps

    def each
      i = 0
      while i < @steps.size
        yield @steps[i]
        i += 1
      end
      self
    end

    def twice(n)
      yield(n) + yield(n + 1)
    end

    def pass(n, &block) = twice(n, &block)

    def maybe(n)
      return -n unless block_given?

      yield n
    end

    def keep(n, &block)
      block ? block.call(n) : n
    end

    def first_over(limit)
      each { |x| return x if x > limit }
      nil
    end

    def negative(n) = -n
    def through(n) = twice(n, &method(:negative))
  end

  class Louder < Walk
    def twice(n)
      super(n) { |x| yield(x) * 10 }
    end

    def maybe(n) = super
  end

  class Defined
    define_method(:double) { |x| x * 2 }
    define_method(:add) { |x, y = 3| x + y }
  end

  module Refined
    refine Integer do
      def tripled = self * 3
    end
  end
end

RSpec.describe "Blocks, lambdas and methods that take them" do
  def walk = Blocks::Walk.new([3, 1, 4])

  it "refuses what calls refined methods behind a using, and nothing else of that file" do
    file = File.join(Dir.mktmpdir, "refined.rb")
    # Otherwise the word would be in this file.
    word = "using"
    File.write(file, <<~RUBY)
      module Blocks
        BEFORE = proc { |x| x.abs }
      end
      #{word} Blocks::Refined
      module Blocks
        AFTER = proc { |x| x.tripled }
        OTHER = proc { |x| x.abs }
        def self.refined(x) = x.tripled
      end
    RUBY
    load(file)
    expect([-2].pmap(&Blocks::BEFORE)).to eq([2])
    expect([-2].pmap(&Blocks::OTHER)).to eq([2])
    expect { [-2].pmap(&Blocks::AFTER) }.to raise_error(Ikra::CompileError, /refined.rb:6:.*refinements/)
    expect { [-2].pmap { |x| Blocks.refined(x) } }.to raise_error(Ikra::CompileError, /refined.rb:8:.*refinements/)
  end

  it "yields to a block, once and often, with its variables" do
    w = walk
    expect([0, 1, 5]).to map_same_as_ruby { |x|
      sum = 0
      r = w.twice(x) { |y| sum += y; y * y }
      sum + (r * 100)
    }
  end

  it "passes blocks on, and knows whether there is one" do
    w = walk
    expect([0, 2]).to map_same_as_ruby { |x|
      w.pass(x) { |y| y + 1 } + w.maybe(x) + w.maybe(x) { |y| y * 7 } + w.keep(x) + w.keep(x) { |y| y - 1 }
    }
  end

  it "leaves with break, next and return where Ruby does" do
    w = walk
    expect([0, 2, 3, 4, 9]).to map_same_as_ruby { |x|
      a = w.twice(x) { |y| break 50 if y > 3; y }
      b = w.twice(x) { |y| next 7 if y > 3; y }
      [a, b, w.first_over(x) || -1].max * 100 + a + b
    }
  end

  it "calls super with a block, and hands the method's own on" do
    louder = Blocks::Louder.new([1])
    expect([1, 2]).to map_same_as_ruby { |x| louder.twice(x) { |y| y + 1 } + louder.maybe(x) + louder.maybe(x) { |y| y * 2 } }
  end

  it "takes Symbols, lambdas and Method objects for blocks" do
    w = walk
    expect([1, -4]).to map_same_as_ruby { |x|
      half = ->(y) { y / 2 }
      w.pass(x, &:abs) + w.pass(x, &half) + w.through(x) + w.keep(x, &:succ)
    }
  end

  it "keeps lambdas in variables, and chooses between them" do
    expect([1, 2, 3]).to map_same_as_ruby { |x|
      base = x * 10
      up = ->(n, by = 1) { n + by + base }
      down = lambda { |n, by = 2| return 0 if n == 3; n - by }
      f = x.odd? ? up : down
      f.call(x) + f.(x, 5) + f[x] + up.call(1) + (f.lambda? ? 1 : 0)
    }
  end

  on_every_backend do
    it "raises what Ruby raises for wrong arguments of lambdas, and is lax with procs" do
      expect { |x| ->(a, b) { a + b }.call(x) }.to be_same_as_ruby.over(1)
      expect { |x| proc { |a, b| a + (b || 5) }.call(x) }.to be_same_as_ruby.over(1, 2)
      expect { |x|
        code = lambda do |a, b|
          a + b
        end
        code.call(x)
      }.to be_same_as_ruby.over(1)
    end
  end

  on_every_backend do
    it "raises LocalJumpError where there is no block" do
      w = walk
      expect { |x| w.twice(x) }.to be_same_as_ruby.over(1)
    end
  end

  it "understands define_method" do
    d = Blocks::Defined.new
    expect([1, 2]).to map_same_as_ruby { |x| d.double(x) + d.add(x) + d.add(x, 7) }
  end

  it "evaluates an operand before a block on the right assigns it" do
    w = walk
    expect([1, 2]).to map_same_as_ruby { |x|
      sum = x
      sum += w.twice(1) { |y| sum = y; 5 }
      sum
    }
  end

  it "refuses a lambda that outlives its method" do
    expect { [1].pmap { |x| ->(y) { x + y } } }.to raise_error(Ikra::CompileError, /no blocks or lambdas/)
  end

  it "includes Enumerable in a class with an each of its own" do
    w = walk
    expect([0, 1, 3, 9]).to map_same_as_ruby { |x|
      sum = w.sum + w.count { |y| y > x } + w.inject { |a, b| a * b } + w.max + w.min_by { |y| (y - x).abs }
      sum += 100 if w.include?(x)
      sum += 1000 if w.any? { |y| y == x } && !w.none?(3..4)
      w.each_with_index { |y, i| sum += y * i }
      sum + (w.find { |y| y > x } || 5)
    }
  end
end
