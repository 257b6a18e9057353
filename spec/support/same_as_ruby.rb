# frozen_string_literal: true

# Ruby is the oracle: the same block through +map+ and +pmap+, +each+ and +peach+, on every backend.
#
#   expect([1, 2, 3]).to map_same_as_ruby { |x| x + 1 }
#   expect { [Car.new, Bus.new] }.to each_same_as_ruby(ticks: 3) { |actor| actor.move }
#
# What the block raises is part of the answer: its class and message, and which element raised it. `expect { … }` makes the
# objects anew for each run; their state afterwards is compared, who is who included.
module SameAsRuby
  # A graph of objects as plain data: Floats by their bits, references by the order in which objects are met.
  class Snapshot
    def self.of(value) = new.take(value)

    def initialize
      @numbers = {}.compare_by_identity
      @pending = []
    end

    # Without recursion, so that lists of any length can be taken.
    def take(value)
      taken = [word(value)]
      while (object = @pending.shift)
        taken << (object.is_a?(Array) ? object.map { |element| word(element) } : ivars(object))
      end
      taken
    end

    private

    def word(value)
      case value
      when Float then [:float, value.nan? ? "NaN" : [value].pack("G")]
      when Integer, Symbol, String, Range, Module, true, false, nil then value
      else reference(value)
      end
    end

    def reference(object)
      number = @numbers.fetch(object) do
        @pending << object
        @numbers[object] = @numbers.size
      end
      [object.class, number, object.frozen?]
    end

    def ivars(object)
      object.instance_variables.sort.map { |name| [name, word(object.instance_variable_get(name))] }
    end
  end

  # How a run ended: with a value, or an exception.
  def self.answer
    { value: Snapshot.of(yield) }
  rescue Ikra::Error, StandardError, SystemStackError => error
    { error: error.class, message: words(error.message), position: (error.ikra.to_a if error.respond_to?(:ikra)) }
  end

  # Without addresses, and without the source line that Ruby 3.1 shows where it raised.
  def self.words(message)
    message.sub(/:0x\h+/, ":0x…").sub(/\n\n.*\n *\^+(?=\n|\z)/, "")
  end

  class Matcher
    include RSpec::Matchers::Composable

    def initialize(backends, run, &block)
      @backends = backends
      @run = run
      @block = block
    end

    def supports_block_expectations? = true
    def supports_value_expectations? = true

    def matches?(actual)
      make = actual.is_a?(Proc) ? actual : -> { actual }
      @expected = SameAsRuby.answer { @run.ruby(make.call, @block) }
      @actual = @backends.to_h { |backend| [backend, SameAsRuby.answer { @run.ikra(make.call, backend, @block) }] }
      @wrong = @actual.reject { |_, answer| same?(answer) }
      @wrong.empty?
    end

    def failure_message
      "Ruby gives #{shown(@expected)}\n#{@wrong.map { |backend, answer| "#{backend} gives #{shown(answer)}" }.join("\n")}"
    end

    private

    # Plain Ruby does not say which element raised.
    def same?(answer) = answer.except(:position) == @expected.except(:position)

    def shown(answer) = answer.map { |key, value| "#{key}: #{value.inspect}" }.join(", ")
  end

  Map = Struct.new(:options) do
    def ruby(base, block) = base.map(&block)
    def ikra(base, backend, block) = base.pmap(backend: backend, **options, &block)
  end

  Each = Struct.new(:ticks, :options) do
    def ruby(base, block) = ticks.times { base.each(&block) }.then { base }
    def ikra(base, backend, block) = base.peach(ticks, backend: backend, **options, &block)
  end

  def map_same_as_ruby(on: backends, **options, &block)
    Matcher.new(Array(on), Map.new(options), &block)
  end

  def each_same_as_ruby(ticks: 1, on: backends, **options, &block)
    Matcher.new(Array(on), Each.new(ticks, options), &block)
  end
end

RSpec.configure { |config| config.include SameAsRuby }
