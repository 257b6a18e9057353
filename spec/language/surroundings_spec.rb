# frozen_string_literal: true

require "tmpdir"

# The surroundings of a block other than variables and self: the block of its method, and refinements in force.
module Surroundings
  class << self
    def over(run, list) = run.pmap(list) { |x| yield x }
    def pairs(run, list) = run.pmap(list) { |x| yield(x, x * 10) }
    def given(run) = run.pmap([1, 2]) { |x| block_given? ? x : -x }
    def inner(run, list) = run.pmap(list) { |x| [1, 2].map { |y| yield x, y }.sum }
    def passed(run, list, &block) = over(run, list, &block)
    def sum(run, list) = [0].tap { |all| all[0] = total(run, list) { |x| yield x } }.first

    def total(run, list)
      total = 0
      run.peach(list) { |x| total += yield(x) }
      total
    end

    def by_proc(run, list)
      code = proc { |x| yield x }
      run.pmap(list) { |x| code.call(x) }
    end

    def by_lambda(run, list)
      code = ->(x) { block_given? ? yield(x) : 0 }
      run.pmap(list) { |x| code.call(x) }
    end

    def rescued(run, list)
      run.pmap(list) do |x|
        yield x
      rescue LocalJumpError
        -1
      end
    end

    def added(run, list) = run.pmap(list) { |x| yield x } + run.pmap(list) { |x| block_given? ? 1 : x }
    def hidden(list) = list.pmap { |_| send(:block_given?) }
    def maker(name) = define_singleton_method(name) { |x| yield x }
    def ten = 10
    def by_ten(run, list) = over(run, list) { |x| x * ten }
    def reduced(list) = list.preduce { |a, b| yield a, b }
    def chosen(list) = list.pselect { |x| yield x }
    def plain(x) = x + 1
  end

  class Point
    def value = 1
  end

  module Doubled
    refine Point do
      def value = 2
      def other = 3
    end
  end

  module Sent
    send(:using, Doubled) if Doubled
    BINDING = binding
    PROC = proc { |point| point.value }
    IRRELEVANT = proc { |x| x + 1 }
    def self.value(point) = point.value
    def self.add(x) = x + 1
    define_singleton_method(:defined) { |point| point.value }
    def self.symbol(points) = points.pmap(&:value)
  end

  module Line; using Doubled; PROC = proc { |point| point.value }; end # rubocop:disable Style/Semicolon

  TEXT = <<~TEXT
    using Doubled
  TEXT
  module Unrefined
    PROC = proc { |point| point.value }
  end
end

RSpec.describe "What is around a block" do
  on_every_backend do
    it "yields to the block of the method around it" do
      expect { |run| Surroundings.over(run, [1, 2]) { |x| x + 1 } }.to be_same_as_ruby
      k = 3
      expect { |run| Surroundings.over(run, [1, 2.5]) { |x| x * k } }.to be_same_as_ruby
      expect { |run| Surroundings.inner(run, [1, 2]) { |x, y| x * y } }.to be_same_as_ruby
      expect { |run| Surroundings.passed(run, [1, 2]) { |x| -x } }.to be_same_as_ruby
      expect { |run| Surroundings.by_ten(run, [1, 2]) }.to be_same_as_ruby
      expect { |run| Surroundings.by_proc(run, [1, 2]) { |x| x - k } }.to be_same_as_ruby
      expect { |run| Surroundings.by_lambda(run, [1, 2]) { |x| x - k } }.to be_same_as_ruby
      expect { |run| Surroundings.total(run, [1, 2, 3]) { |x| x * k } }.to be_same_as_ruby
      expect { |run| Surroundings.sum(run, [1, 2, 3]) { |x| x * k } }.to be_same_as_ruby
      expect { |run| Surroundings.added(run, [1, 2]) { |x| x * k } }.to be_same_as_ruby
    end

    it "takes what the block takes" do
      expect { |run| Surroundings.pairs(run, [1, 2]) { |x| x } }.to be_same_as_ruby
      expect { |run| Surroundings.pairs(run, [1, 2]) { |x, y, z| [x, y, z] } }.to be_same_as_ruby
      expect { |run| Surroundings.pairs(run, [1, 2]) { |x, *rest, z| [x, rest, z] } }.to be_same_as_ruby
      expect { |run| Surroundings.pairs(run, [1, 2]) { |x, y = 5, z| [x, y, z] } }.to be_same_as_ruby
      expect { |run| Surroundings.pairs(run, [1, 2], &:+) }.to be_same_as_ruby
      expect { |run| Surroundings.over(run, [1, 2], &:succ) }.to be_same_as_ruby
      expect { |run| Surroundings.over(run, [1, 2], &->(x) { return x + 100 }) }.to be_same_as_ruby
      expect { |run| Surroundings.over(run, [1, 2]) { |x| next 9 if x == 2; x } }.to be_same_as_ruby
    end

    it "sees another block, or none, at the next call" do
      code = ->(run, &block) { Surroundings.given(run, &block) }
      stories = [nil, proc { 1 }, nil, :succ.to_proc, proc { 2 }]
      stories.each { |block| expect { |run| code.call(run, &block) }.to be_same_as_ruby }
      stories.each { |block| expect { |run| Surroundings.by_lambda(run, [1, 2], &block) }.to be_same_as_ruby }
      [1, 2].each { |k| expect { |run| Surroundings.over(run, [1, 2]) { |x| x * k } }.to be_same_as_ruby }
      expect { |run| Surroundings.over(run, [1, 2]) }.to be_same_as_ruby
      expect { |run| Surroundings.rescued(run, [1, 2]) }.to be_same_as_ruby
      expect { |run| Surroundings.rescued(run, [1, 2]) { |x| x } }.to be_same_as_ruby
    end

    it "obeys refinements where they are in force, or is refused" do
      points = [Surroundings::Point.new]
      refused = raise_error(Ikra::CompileError, /refinements/)
      expect { points.pmap(backend:, &Surroundings::Sent::PROC) }.to refused
      expect { points.pmap(backend:) { |point| Surroundings::Sent.value(point) } }.to refused
      expect { points.pmap(backend:) { |point| Surroundings::Sent.defined(point) } }.to refused
      expect { points.pmap(backend:, &Surroundings::Line::PROC) }.to refused
      code = Surroundings::Sent::PROC
      expect { points.pmap(backend:) { |point| code.call(point) } }.to refused
      evaluated = Surroundings::Sent::BINDING.eval("proc { |point| point.value }")
      expect { points.pmap(backend:, &evaluated) }.to refused
      expect { Surroundings::Sent.symbol(points) }.to raise_error(Ikra::CompileError, /refined/)
      expect(points.pmap(backend:, &Surroundings::Unrefined::PROC)).to eq([1])
      expect(points.pmap(backend:) { |point| point.value }).to eq([1])
      expect([1].pmap(backend:, &Surroundings::Sent::IRRELEVANT)).to eq([2])
      expect([1].pmap(backend:) { |x| Surroundings::Sent.add(x) }).to eq([2])
    end
  end

  it "works in what pselect and preduce are given" do
    expect(Surroundings.reduced([1, 2, 3]) { |a, b| a + b }).to eq(6)
    expect(Surroundings.reduced([1, 2, 3], &:*)).to eq(6)
    expect(Surroundings.chosen([1, 2, 3]) { |x| x > 1 }).to eq([2, 3])
  end

  it "refuses what cannot be told" do
    refused = ->(pattern, &code) { expect(&code).to raise_error(Ikra::CompileError, pattern) }
    run = Class.new { def pmap(list, &block) = list.pmap(&block) }.new
    refused.(/block_given\? as a plain call only/) { Surroundings.hidden([1]) { 1 } }
    refused.(/would leave the method/) { Surroundings.over(run, [1]) { |x| break x } }
    refused.(/take the array apart/) { Surroundings.over(run, [[1, 2]]) { |x, y| x + y } }
    Surroundings.maker(:made) { |x| x + 1 }
    refused.(/is a block that yields to a block from around it/) { [1].pmap { |x| Surroundings.made(x) } }
  end

  it "takes a Method object as the block of the method around it" do
    run = Class.new { def pmap(list, &block) = list.pmap(&block) }.new
    expect(Surroundings.over(run, [1], &Surroundings.method(:plain))).to eq([2])
  end

  it "asks for refinements at each call: the same block may have others in force later" do
    file = File.join(Dir.mktmpdir, "later.rb")
    File.write(file, <<~RUBY)
      code = proc { |point| point.value }
      sum = proc { |x| x + 1 }
      points = [Surroundings::Point.new]
      answers = [points.pmap(&code), [1].pmap(&sum)]
      using Surroundings::Doubled
      answers << code.call(points[0])
      begin
        points.pmap(&code)
      rescue Ikra::CompileError => error
        answers << error.message[/refinements/]
      end
      Surroundings.const_set(:ANSWERS, answers << [1].pmap(&sum))
    RUBY
    load(file)
    expect(Surroundings::ANSWERS).to eq([[1], [2], 2, "refinements", [2]])
  end
end
