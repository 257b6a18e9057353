# frozen_string_literal: true

module Ikra
  # Operators and functions of each element. They are written down, and computed in one kernel when somebody looks:
  # +(a * 2 + b).sum+ makes no array. An expression sees the elements as they were when it was written down.
  #
  # The other operand is an array, whose dimensions of size 1 are repeated, or a number. Integers of several widths give the wider
  # one, with Floats they give Floats; a number takes the array's kind where it can.
  class MDArray
    # @!method +(other)
    #   @return [MDArray]
    #   @raise [ArgumentError] for a shape that does not fit; the message has both
    #   @raise [TypeError] for elements that are no numbers
    # @!method -(other)
    # @!method *(other)
    # @!method /(other)
    #   Integers round down, as Ruby's do.
    # @!method %(other)
    # @!method **(other)
    # @!method &(other)
    #   Of Integers, and of booleans; so +|+ and +^+.
    # @!method <<(other)
    # @!method eq(other)
    #   @return [MDArray] of booleans; +==+ compares whole arrays
    # @!method ne(other)
    # @!method <(other)
    #   @return [MDArray] of booleans; so +<=+, +>+ and +>=+
    # @!method atan2(other)
    # @!method hypot(other)
    # @!method minimum(other)
    #   @return [MDArray] of each two elements the lesser one
    # @!method maximum(other)
    [*Operators::BINARY, *Operators::BITS, *Operators::COMPARISONS.keys, *Operators::MATH[2], :minimum, :maximum].each do |name|
      define_method(name) { |other| combined_with(name, other) }
    end

    alias modulo %
    alias pow **

    # Functions of Math, and methods of numbers: +a.sqrt+, +a.floor+.
    [*Operators::MATH[1], *Operators::SAME, *Operators::TO_INTEGERS, *Operators::QUESTIONS, :-@, :~].each do |name|
      define_method(name) { alone(name) }
    end

    alias magnitude abs

    # @return [self]
    def +@ = self

    # @param other [Numeric, MDArray]
    # @return [MDArray] of Floats
    def fdiv(other) = (DType.float?(dtype) ? self : to(:f64)) / other

    # @return [MDArray] with elements no less than one number and no greater than another
    def clamp(least, greatest) = maximum(least).minimum(greatest)

    # The elements as another kind. Floats become Integers as +truncate+ makes them, true and false 1 and 0, numbers but 0 true.
    #
    # @return [MDArray]
    # @raise [RangeError] for a value that such elements cannot hold; the message has the index
    # @raise [FloatDomainError] for NaN and infinities
    def to(dtype)
      dtype = DType.check(dtype)
      return self if dtype == self.dtype
      return MDArray.__of(flat_list, :object, shape) if dtype == :object
      return MDArray.new(flat_list, dtype: dtype).reshape(*shape) if self.dtype == :object

      MDArray.__pending(Expression::Operation.new(:to, [__operand], dtype, shape, caller_place))
    end
    alias as_type to

    # +2 * array+ and +2.5 - array+.
    #
    # @return [Array(MDArray, MDArray)]
    def coerce(other)
      raise TypeError, "#{DType.shown(other)} can't be coerced into #{self.class}" unless other.is_a?(Integer) || other.is_a?(Float)

      [MDArray.__of(Buffer.from_list(DType.with(dtype, other), [other]), DType.with(dtype, other), [1] * [ndim, 1].max), self]
    end

    # Functions of Math for arrays, as of Ruby's Math for numbers: +Ikra::MDArray::Math.sqrt(array)+.
    module Math
      Operators::MATH[1].each do |name|
        define_singleton_method(name) { |array| array.is_a?(MDArray) ? array.public_send(name) : ::Math.public_send(name, array) }
      end
      Operators::MATH[2].each do |name|
        define_singleton_method(name) do |one, other|
          next ::Math.public_send(name, one, other) unless one.is_a?(MDArray) || other.is_a?(MDArray)

          one, other = other.coerce(one) unless one.is_a?(MDArray)
          one.public_send(name, other)
        end
      end
    end

    private

    def combined_with(name, other)
      case other
      when MDArray
        kind, raises = Operators.result(name, dtype, other.dtype)
        common = shape == other.shape ? shape : Layout.broadcast(shape, other.shape)
        written(name, [__operand, other.__operand], kind, common, raises) { other.__storage }
      when Integer, Float, true, false
        with = number_kind(name, other)
        kind, raises = Operators.result(name, dtype, with)
        scalar = scalar(other, with)
        written(name, [__operand, scalar], kind, shape, raises)
      else
        raise TypeError, "#{DType.shown(other)} can't be coerced into #{self.class}" unless other.respond_to?(:coerce) && !other.is_a?(Array)

        one, two = other.coerce(self)
        one.public_send(name, two)
      end
    end

    def alone(name)
      kind, raises = Operators.result(name, dtype)
      written(name, [__operand], kind, shape, raises)
    end

    # Writes an operator down. What it is given is computed now where it would be too much for one kernel.
    def written(name, nodes, kind, shape, raises)
      operation = Expression::Operation.new(name, nodes, kind, shape, (caller_place if raises))
      array = MDArray.__pending(operation)
      if operation.count > Expression::MOST
        __storage
        yield if block_given?
      end
      array
    end

    # Where a program called.
    def caller_place = caller_locations(1, 12).find { |location| !location.path.start_with?(__dir__) && !location.path.start_with?("<internal") }&.to_s

    # A number's kind beside this array: its own where it can be.
    def number_kind(name, value)
      return :bool if value == true || value == false
      return value.is_a?(Float) ? :f64 : :i64 unless DType.number?(dtype)
      return dtype if DType.float?(dtype)
      return :f64 if value.is_a?(Float)

      # what is only compared need not fit
      Operators::COMPARISONS.key?(name) || !DType::LIMITS.fetch(dtype).cover?(value) && dtype == :i64 ? :i64 : dtype
    end

    def scalar(value, dtype)
      value = value.to_f if DType.float?(dtype)
      value = DType.single(value) if dtype == :f32
      raise RangeError, "#{DType.shown(value)} does not fit i64" if value.is_a?(Integer) && !DType::LIMITS.fetch(:i64).cover?(value)

      Expression::Scalar.new(value, dtype)
    end

    def choose(one, other)
      arrays = [one, other].map { |value| value.is_a?(MDArray) ? value : MDArray.full(*[1] * ndim, value) }
      kinds = arrays.map(&:dtype).uniq
      raise TypeError, "where is for numbers and booleans, not for elements of kind object" if kinds.include?(:object)

      kind = kinds.size == 1 ? kinds.first : Operators.dtype(:+, kinds)
      shape = Layout.broadcast(self.shape, *arrays.map(&:shape))
      MDArray.__pending(Expression::Operation.new(:where, [__operand, *arrays.map(&:__operand)], kind, shape))
    end
  end
end
