# frozen_string_literal: true

require "tempfile"

# The oracle of `pmap_reduce`: what it means, in plain Ruby.
#
#   expect(words).to reduce_as_ruby(:+) { |word, out| out.emit(word, 1) }
#
# compares it on every backend: keys, values, their classes and order, or exceptions.
module ReduceAsRuby
  # Collects pairs, as Ikra's own emitter does.
  class Emitter
    def initialize(pairs)
      @pairs = pairs
    end

    def emit(key, value)
      @pairs << [key, value]
      self
    end
  end

  class << self
    def oracle(source, combine, reduce, block)
      pairs = []
      source.each { |element| block.call(element, Emitter.new(pairs)) }
      return pairs unless combine || reduce

      groups = pairs.each_with_object({}) { |(key, value), found| (found[key] ||= []) << value }
      groups.transform_values! { |values| [combined(values, combine)] } if combine
      reduce ? groups.to_h { |key, values| [key, reduce.call(key, values)] } : groups.transform_values!(&:first)
    end

    # A value to be compared with ==: with classes, the bits of Floats and the encodings of Strings.
    def shown(value)
      case value
      when Float then value.nan? ? :nan : [value.class, [value].pack("G")]
      when String then [value, value.encoding]
      when Array then value.map { |element| shown(element) }
      when Struct then [value.class, shown(value.to_a)]
      else [value.class, value]
      end
    end

    private

    # Sums of Floats are exact, and rounded once.
    def combined(values, combine)
      return values.public_send(combine) if %i[min max].include?(combine)
      return values.reduce(&combine) unless combine == :+ && values.any?(Float) && values.all?(&:finite?)

      sum = values.sum(0r, &:to_r).to_f
      sum.zero? && values.all? { |value| value.eql?(-0.0) && value.to_s == "-0.0" } ? -0.0 : sum
    end
  end

  class Matcher
    def initialize(backends, combine, more, block)
      @backends = backends
      @combine = combine
      @reduce = more[:reduce]
      @order = more
      @block = block
    end

    def matches?(source)
      expected = outcome { ReduceAsRuby.oracle(source, @combine, @reduce, @block) }
      @failure = nil
      @backends.each do |backend|
        found = outcome { called(source, backend) }
        next if expected == found

        @failure = "pmap_reduce on #{backend}\n  Ruby: #{expected.inspect[0, 1000]}\n  Ikra: #{found.inspect[0, 1000]}"
        break
      end
      @failure.nil?
    end

    def failure_message = @failure

    def description = "reduce as Ruby does"

    private

    def called(source, backend)
      return source.map_reduce(@combine, **@order, &@block) if source.is_a?(Ikra::Lazy)

      source.pmap_reduce(@combine, backend: backend, **@order, &@block)
    end

    def outcome
      ReduceAsRuby.shown(yield.to_a)
    rescue StandardError => e
      raise if e.is_a?(Ikra::CompileError)

      [e.class, e.message]
    end
  end

  # For examples.
  module Examples
    def reduce_as_ruby(combine = nil, on: backends, **more, &block) = Matcher.new(Array(on), combine, more, block)

    # Gives the path of a file with these bytes.
    def file(contents)
      Tempfile.create("ikra") do |file|
        file.binmode
        file.write(contents)
        file.close
        yield file.path
      end
    end
  end
end
