# frozen_string_literal: true

# The oracle: what a block does when plain Ruby runs it, and what it does when Ikra runs it.
#
#   expect { |x| x.abs }.to be_same_as_ruby.over(-1, 0, 1)
#   expect { |run| run.peach(cars = make_cars, 10) { |car| car.move } }.to be_same_as_ruby
#
# The first form maps a block over values. Values for which Ruby raises run one at a time, after two of the others. They
# must raise the same: class, message, line, index and tick. A result beyond 64 bits must be an IntegerOverflow, and a
# Rational or Complex a RangeError.
#
#   expect([-1, 0, 1]).to map_same_as_ruby { |x| x.abs }
#   expect { make_cars }.to each_same_as_ruby(ticks: 10) { |car| car.move }
#
# are such stories of one section, on every backend present.
#
# The second form is a story that runs twice, each time with objects of its own. First `run` stands for plain Ruby, and
# then for Ikra. The story's value must be the same, and so must the value of each section. So must the final state of
# its elements, and of the variables that its block captures, to the last reference. Where a section raises, Ikra must
# leave all of that as it was.
module SameAsRuby
  # The contents of an exception. `ikra` is where it was raised.
  Raised = Struct.new(:class_name, :message, :place, :index, :tick) do
    def self.of(error, index, tick)
      message = error.respond_to?(:original_message) ? error.original_message : error.message
      place = error.backtrace&.find { |line| !line.start_with?("<internal:") }.to_s[/\A.+?:\d+/]
      new(error.class.name, Graph.without_address(message), place, index, tick)
    end

    def to_s = "#{class_name} at #{place}, index #{index.inspect}, tick #{tick.inspect}: #{message}"
  end

  # The effects of one section. `before` and `after` are graphs of what it could reach.
  Section = Struct.new(:outcome, :before, :after)

  # Runs sections and records their effects. Subclasses say how, and where an exception came from (`raised`).
  class Runner
    attr_reader :sections

    def initialize
      @sections = []
    end

    def pmap(array, **options, &block)
      section(array, block) { map(array, block, **options) }
    end

    def peach(array, ticks = 1, **options, &block)
      section(array, block) { each(array, ticks, block, **options) }
    end

    # `pmap` without a record.
    def bare(array, &block) = map(array, block)

    private

    def section(array, block)
      scene = -> { Graph.of(array, block_self(block), *captured(block)) }
      outcome = :left # by `break`
      before = scene.call
      result = yield
      outcome = Graph.of(result, array)
      result
    rescue StandardError, SystemStackError => e
      outcome = raised(e)
      raise
    ensure
      @sections << Section.new(outcome, before, scene.call)
    end

    # The block's self, unless it is an example of RSpec, which holds far more than a story.
    def block_self(block)
      object = binding_of(block)&.receiver
      object unless object.is_a?(RSpec::Core::ExampleGroup)
    end

    def captured(block)
      within = binding_of(block) or return []
      within.local_variables.map { |name| within.local_variable_get(name) }.reject { |value| value.is_a?(Runner) }
    end

    # nil for `&:name`.
    def binding_of(block)
      block.binding
    rescue ArgumentError
      nil
    end
  end

  # Plain Ruby, element by element.
  class Sequential < Runner
    def raised(error) = Raised.of(error, @index, @tick)

    private

    def map(array, block, **)
      @tick = 0
      array.each_with_index.map do |element, index|
        @index = index
        block.call(element)
      end
    end

    def each(array, ticks, block, **)
      ticks.times do |tick|
        @tick = tick
        array.each_with_index do |element, index|
          @index = index
          block.call(element)
        end
      end
      array
    end

  end

  # Ikra on one backend.
  class Parallel < Runner
    def initialize(backend)
      super()
      @backend = backend
    end

    def raised(error)
      where = error.respond_to?(:ikra) ? error.ikra : nil
      Raised.of(error, where&.index, where&.tick)
    end

    private

    def map(array, block, **options) = array.pmap(backend: @backend, **options, &block)

    def each(array, ticks, block, **options) = array.peach(ticks, backend: @backend, **options, &block)
  end

  # See the module.
  class Matcher
    def initialize(backend)
      @backend = backend
    end

    # The values to map over. A Range stays a Range.
    def over(*values)
      @values = values.size == 1 && values.first.is_a?(Enumerable) ? values.first : values
      self
    end

    def matches?(block)
      @difference = @values ? difference_over_values(block) : difference_of_story(block)
      @difference.nil?
    end

    def supports_block_expectations? = true

    def description = "do on #{@backend} what it does in Ruby"

    def failure_message = @difference

    def failure_message_when_negated = "expected the block to do something else than in Ruby"

    private

    def difference_over_values(block)
      outcomes = @values.map { |value| outcome(Sequential.new) { |run| run.bare([value], &block) } }
      good, bad = @values.zip(outcomes).partition { |_, outcome| fits?(outcome) }
      message = compare_good(block, bad.empty? ? @values : good.map(&:first), good) and return message

      few = good.first(2).map(&:first)
      bad.each do |value, expected|
        got = outcome(Parallel.new(@backend)) { |run| run.bare([*few, value], &block) }
        expected = adapt(expected, few.size)
        return "for #{value.inspect}\n  Ruby: #{expected}\n  Ikra: #{got}" unless agree?(expected, got)
      end
      nil
    end

    def compare_good(block, values, good)
      got = outcome(Parallel.new(@backend)) { |run| run.bare(values, &block) }
      return "expected results, got #{got}" if got.is_a?(Raised)

      good.each_with_index do |(value, expected), index|
        same = Graph.of(got[index]) == Graph.of(expected.first)
        return "for #{value.inspect}\n  Ruby: #{expected.first.inspect}\n  Ikra: #{got[index].inspect}" unless same
      end
      nil
    end

    # The value that Ruby gave, or Raised.
    def outcome(run)
      yield run
    rescue StandardError, SystemStackError => e
      raise if e.is_a?(Ikra::CompileError)

      run.raised(e)
    end

    def fits?(outcome) = !outcome.is_a?(Raised) && !beyond(outcome.first)

    # The exception for a result that kernels cannot hold.
    def beyond(value)
      case value
      when Integer then "Ikra::IntegerOverflow" if value.bit_length > 63
      when Rational, Complex then "RangeError"
      end
    end

    def adapt(expected, index)
      return expected.dup.tap { |raised| raised.index = index } if expected.is_a?(Raised)

      Raised.new(beyond(expected.first), nil, nil, index, 0)
    end

    def agree?(expected, got)
      return false unless got.is_a?(Raised)
      return expected == got if expected.message

      expected.class_name == got.class_name && expected.index == got.index
    end

    def difference_of_story(block)
      ruby, ikra = [Sequential.new, Parallel.new(@backend)].map { |run| [run, tell(run, block)] }
      sections = ruby.first.sections.zip(ikra.first.sections)
      sections.each_with_index do |(expected, got), number|
        message = section_difference(expected, got) and return "section #{number + 1}: #{message}"
      end
      "the story ends differently#{first_difference(ruby.last, ikra.last)}" unless ruby.last == ikra.last
    end

    def section_difference(expected, got)
      return "Ikra did not come here" unless got
      # Ikra's methods give the value of `break`.
      same = expected.outcome == got.outcome || expected.outcome == :left && got.outcome.is_a?(Array)
      return "outcomes differ#{first_difference(expected.outcome, got.outcome)}" unless same
      return unchanged_difference(got) if expected.outcome.is_a?(Raised)

      "objects differ#{first_difference(expected.after, got.after)}" unless expected.after == got.after
    end

    # The first different lines of two graphs, or the complete exceptions.
    def first_difference(expected, got)
      if expected.is_a?(Array) && got.is_a?(Array)
        size = [expected.size, got.size].max
        at = (0...size).find { |i| expected[i] != got[i] }
        expected, got = [expected, got].map { |lines| (lines[at] || "nothing more").inspect }
      end
      "\n  Ruby: #{expected.is_a?(Array) ? "no exception" : expected}\n  Ikra: #{got.is_a?(Array) ? "no exception" : got}"
    end

    def unchanged_difference(got)
      "it raised, but changed#{first_difference(got.before, got.after)}" unless got.before == got.after
    end

    def tell(run, block)
      Graph.of(block.call(run))
    rescue StandardError, SystemStackError => e
      raise unless run.sections.last&.outcome.is_a?(Raised)

      e.class.name
    end
  end

  # A story of one section, on several backends. Its elements are the expected object, or the value of its block.
  class Sections
    def initialize(backends, &section)
      @matchers = backends.map { |backend| Matcher.new(backend) }
      @section = section
    end

    def matches?(actual)
      make = actual.is_a?(Proc) ? actual : -> { actual }
      section = @section
      @failed = @matchers.reject { |matcher| matcher.matches?(->(run) { section.call(run, make.call) }) }
      @failed.empty?
    end

    def supports_block_expectations? = true

    def supports_value_expectations? = true

    def description = "be done as in Ruby"

    def failure_message = @failed.map { |matcher| "#{matcher.description}: #{matcher.failure_message}" }.join("\n")
  end

  # For examples. The first works within `on_every_backend`.
  module Examples
    def be_same_as_ruby = Matcher.new(backend)

    def map_same_as_ruby(on: backends, **options, &block)
      Sections.new(Array(on)) { |run, base| run.pmap(base, **options, &block) }
    end

    def each_same_as_ruby(ticks: 1, on: backends, **options, &block)
      Sections.new(Array(on)) { |run, base| run.peach(base, ticks, **options, &block) }
    end
  end
end
