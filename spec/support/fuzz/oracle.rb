# frozen_string_literal: true

require_relative "../../../ext/ikra-core/tests/cases/oracle"

module Fuzz
  # The answer of plain Ruby for a case without expectations, and the places where it met values that kernels cannot
  # hold.
  class Oracle < Case
    # Raised where the program cannot be set up.
    class NoAnswer < StandardError
    end

    # Records Integers beyond 64 bits, Rationals and Complexes when they are computed.
    module Beyond
      # An Integer that only grows. Its value does not matter.
      class Giant < Exception # rubocop:disable Lint/InheritException
      end

      OPERATORS = {
        Integer => %i[+ - * ** << >> / % div modulo divmod remainder pow abs magnitude -@ ~ & | ^ succ next pred lcm gcd round floor ceil truncate quo],
        Float => %i[floor ceil round truncate to_i to_int div divmod **]
      }.freeze
      PLACES = []

      def self.note(value)
        case value
        when Integer
          return if value.bit_length < 64

          PLACES << [Ikra.tick, Ikra.index]
          raise Giant if value.bit_length > 4_096
        when Rational, Complex then PLACES << [Ikra.tick, Ikra.index]
        when Array then value.each { |item| note(item) }
        end
      end

      # Sums as kernels make them, one item after the other.
      module Sums
        def sum(start = 0, &block)
          return (block ? map(&block) : to_a).sum(start) if block || !is_a?(Array)

          inject(start) { |sum, item| sum.is_a?(Integer) && item.is_a?(Integer) ? sum + item : break }
          super(start)
        end
      end

      # `total -= x` contributes -x, which does not exist for the least Integer.
      module Subtrahends
        def -(other)
          Beyond.note(-other) if other == -2**63
          super
        end
      end

      def self.watch
        [Array, Range, Enumerator].each { |klass| klass.prepend(Sums) }
        OPERATORS.each do |klass, names|
          klass.prepend(Module.new do
            names.each { |name| define_method(name) { |*arguments| super(*arguments).tap { |value| Beyond.note(value) } } }
          end)
        end
        Integer.prepend(Subtrahends)
      end
    end

    # Lines of expectations, and the places where Ruby left 64 bits: pairs of tick and index.
    def answer(setup, watched)
      places, giant = apart { beyond(setup) }
      # A kernel stops there, or never uses the value. Ruby's own answer would take too long.
      raise NoAnswer, "an Integer that only grows" if giant

      lines = apart do
        limits
        run(setup, ["gives: ", *watched.map { |expression| "after: #{expression} => " }])
      end
      raise NoAnswer, lines.first if lines.first.start_with?("raises:") && lines.first.include?("at line ,")

      [lines, places]
    end

    private

    def apart
      super
    rescue RuntimeError, TypeError, ArgumentError => e
      raise NoAnswer, e.message
    end

    def limits
      # Ruby 3.1 prints messages about clauses that it cannot compile, after one that always matches.
      [$stdout, $stderr].each { |io| io.reopen(File::NULL) }
      $VERBOSE = nil
      Process.setrlimit(Process::RLIMIT_AS, 4 << 30)
      Process.setrlimit(Process::RLIMIT_CPU, 20)
    end

    def beyond(setup)
      limits
      Beyond.watch
      run(setup, [])
      [Beyond::PLACES.uniq, false]
    rescue Beyond::Giant
      [Beyond::PLACES.uniq, true]
    end
  end
end
