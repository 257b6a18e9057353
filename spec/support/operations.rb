# frozen_string_literal: true

# Operations against Ruby's own methods.
#
#   expect([3, 1]).to do_as_ruby(:sort_by) { |x| -x }
#   expect { make_cars }.to do_as_ruby(:select, on: :cpu) { |car| car.fast? }
#
# runs `sort_by` and `psort_by`, each on the expected object (or on the value of its block). It compares their values,
# to the last reference, or their exceptions. Float keys that are NaN count as one value.
module DoAsRuby
  # A person with attributes to sort by.
  class Person
    attr_reader :name
    attr_accessor :age

    def initialize(name, age)
      @name = name
      @age = age
    end

    def <=>(other) = age <=> other.age
  end

  class Matcher
    def initialize(backends, name, args, block)
      @backends = backends
      @name = name
      @args = args
      @block = block
    end

    def matches?(actual)
      make = actual.is_a?(Proc) ? actual : -> { actual }
      expected = outcome(make.call) { |base| yield_to(base.public_send(@name, *@args, &@block)) }
      @failure = nil
      @backends.each do |backend|
        got = outcome(make.call) { |base| yield_to(base.public_send(parallel, *@args, backend: backend, &@block)) }
        next if expected == got

        @failure = "#{parallel} on #{backend}\n  Ruby: #{shown(expected)}\n  Ikra: #{shown(got)}"
        break
      end
      @failure.nil?
    end

    # Calls methods on the Enumerator that the method gives.
    def with_index(*args, &block)
      @chain = ->(enumerator) { enumerator.with_index(*args, &block) }
      self
    end

    def supports_block_expectations? = true

    def supports_value_expectations? = true

    def description = "do what #{@name} does"

    def failure_message = @failure

    private

    def parallel = { all?: :pall?, any?: :pany?, none?: :pnone?, one?: :pone? }.fetch(@name) { :"p#{@name}" }

    def yield_to(value) = @chain ? @chain.call(value) : value

    # Value and base, so that changes of the elements count, too.
    def outcome(base)
      Graph.of(yield(base), base)
    rescue StandardError => e
      raise if e.is_a?(Ikra::CompileError)

      [e.class.name, e.message]
    end

    def shown(outcome) = outcome.inspect[0, 1000]
  end

  # For examples.
  module Examples
    def do_as_ruby(name, *args, on: backends, &block) = Matcher.new(Array(on), name, args, block)
  end
end

RSpec.configure { |config| config.include DoAsRuby::Examples }
