# frozen_string_literal: true

module Ikra
  # Operators and functions of each element. They build an expression, which one kernel computes when its elements are
  # needed: +(a * 2 + b).sum+ makes no array. An expression uses the elements as they were when it was built.
  #
  # The other operand is an array, whose dimensions of size 1 are repeated, or a number. Integers of several widths give
  # the wider one, and with Floats they give Floats. A number takes the array's kind where it can.
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
    #   For Integers and booleans; so are +|+ and +^+.
    # @!method <<(other)
    # @!method eq(other)
    #   @return [MDArray] of booleans; +==+ compares whole arrays
    # @!method ne(other)
    # @!method <(other)
    #   @return [MDArray] of booleans; so are the results of +<=+, +>+ and +>=+
    # @!method atan2(other)
    # @!method hypot(other)
    # @!method minimum(other)
    #   @return [MDArray] the lesser one of each two elements
    # @!method maximum(other)
    (Operators::BINARY + Operators::BITS + Operators::COMPARISONS.keys + Operators::MATH[2] + %i[minimum maximum]).each do |name|
      define_method(name) { |other| combined_with(name, other) }
    end

    alias modulo %
    alias pow **

    # Functions of Math, and methods of numbers: +a.sqrt+, +a.floor+.
    (Operators::MATH[1] + Operators::SAME + Operators::TO_INTEGERS + Operators::QUESTIONS + %i[-@ ~]).each do |name|
      define_method(name) { alone(name) }
    end

    alias magnitude abs

    # @return [self]
    def +@ = self

    # @param other [Numeric, MDArray]
    # @return [MDArray] of Floats
    def fdiv(other)
      # Integers that no Float holds would be rounded before the division.
      whole = other.is_a?(MDArray) ? DType.integer?(other.dtype) : other.is_a?(Integer) && DType::LIMITS.fetch(:i64).cover?(other)
      return combined_with(:fdiv, other) if whole && DType.integer?(dtype)

      (DType.float?(dtype) ? self : as(:f64)) / other
    end

    # @return [MDArray] with elements no less than one number and no greater than another; NaN stays NaN
    # @raise [ArgumentError] where the least is greater than the greatest
    def clamp(least, greatest)
      # Ruby's own error.
      least.clamp(least, greatest) if [least, greatest].all? { |number| number.is_a?(Integer) || number.is_a?(Float) }
      maximum(least).minimum(greatest)
    end

    # The elements as another kind. Floats become Integers as by +truncate+. true and false become 1 and 0. Numbers
    # other than 0 become true.
    #
    # @return [MDArray] a new array: writes to it do not affect this one
    # @raise [RangeError] for a value that such elements cannot hold; the message has the index
    # @raise [FloatDomainError] for NaN and infinities
    def to(dtype)
      dtype = DType.check(dtype)
      return as(dtype) if dtype != self.dtype
      return dup unless pending?

      MDArray.__pending(Expression::Operation.new(:to, [__operand], dtype, shape))
    end
    alias as_type to

    # Makes +2 * array+ and +2.5 - array+ work.
    #
    # @return [Array(Object, MDArray)] an object with the operators of arrays, which computes with the number
    def coerce(other)
      raise TypeError, "#{DType.shown(other)} can't be coerced into #{self.class}" unless other.is_a?(Integer) || other.is_a?(Float)

      [Before.new(other), self]
    end

    # Functions of Math for arrays, like those of Ruby's Math for numbers: +Ikra::MDArray::Math.sqrt(array)+.
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

    # The elements as another kind. An array of that kind gives itself.
    def as(dtype)
      return self if dtype == self.dtype
      return MDArray.__of(flat_list, :object, shape) if dtype == :object
      return MDArray.__of(Nested.buffer(dtype, flat_list, shape), dtype, shape) if self.dtype == :object

      MDArray.__pending(Expression::Operation.new(:to, [__operand], dtype, shape, caller_place))
    end

    def combined_with(name, other)
      return compared_on_host(name, other) if %i[eq ne].include?(name) && (dtype == :object || (other.is_a?(MDArray) && other.dtype == :object))

      case other
      when MDArray
        kind, raises = Operators.result(name, dtype, other.dtype)
        common = shape == other.shape ? shape : Layout.broadcast(shape, other.shape)
        written(name, [__operand, other.__operand], kind, common, raises) { other.__storage }
      when Integer, Float, true, false
        kind, raises, scalar = with_number(name, other)
        written(name, [__operand, scalar], kind, shape, raises)
      else
        raise TypeError, "#{DType.shown(other)} can't be coerced into #{self.class}" unless other.respond_to?(:coerce) && !other.is_a?(Array)

        one, two = other.coerce(self)
        one.public_send(name, two)
      end
    end

    # Compares objects as Ruby compares them.
    def compared_on_host(name, other)
      common = other.is_a?(MDArray) ? Layout.broadcast(shape, other.shape) : shape
      mine = (shape == common ? self : broadcast_to(*common)).__send__(:flat_list)
      theirs = other.is_a?(MDArray) ? other.broadcast_to(*common).__send__(:flat_list) : Array.new(mine.size, other)
      same = mine.zip(theirs).map { |one, two| (one == two ? true : false) == (name == :eq) }
      MDArray.__of(Buffer.from_list(:bool, same), :bool, common)
    end

    # Applies an operator with a number before it.
    def combined_behind(name, number)
      kind, raises, scalar = with_number(name, number, before: true)
      written(name, [scalar, __operand], kind, shape, raises)
    end

    def alone(name)
      kind, raises = Operators.result(name, dtype)
      written(name, [__operand], kind, shape, raises)
    end

    # Adds an operator to an expression. Operands are computed now where they would be too much for one kernel.
    def written(name, nodes, kind, shape, raises)
      operation = Expression::Operation.new(name, nodes, kind, shape, (caller_place if raises))
      array = MDArray.__pending(operation)
      if operation.count > Expression::MAX_OPERATORS && operation.recount > Expression::MAX_OPERATORS
        __storage
        yield if block_given?
      end
      array
    end

    # The line of the program that called.
    def caller_place = caller_locations(1, 12).find { |location| !location.path.start_with?(__dir__) && !location.path.start_with?("<internal") }&.to_s

    # The kind of an operator's result with a number, whether it may raise, and the number. The number takes the array's
    # kind where it can. One that does not fit that kind is used as it is, and only the result must fit.
    #
    # @param before [Boolean] whether the number comes before the operator
    def with_number(name, value, before: false)
      return compared_with(name, value, before) if value.is_a?(Integer) && Operators::COMPARISONS.key?(name) && DType.number?(dtype)

      with = number_kind(value)
      kind, raises = before ? Operators.result(name, with, dtype) : Operators.result(name, dtype, with)
      return [kind, raises, Expression::Scalar.new(with == :f32 ? DType.single(value.to_f) : value.to_f, with)] if DType.float?(with)
      return [kind, raises, Expression::Scalar.new(value, with)] if with == :bool

      raise RangeError, "#{DType.shown(value)} does not fit i64" unless DType::LIMITS.fetch(:i64).cover?(value)

      narrow = with != :i64
      return [kind, true, Expression::Scalar.new(value, :i64)] if narrow && !DType::LIMITS.fetch(with).cover?(value)

      # A shift to the right, which surely does not shift to the left.
      with = :u8 if narrow && name == :>> && value.between?(0, 255)
      [kind, raises, Expression::Scalar.new(value, with)]
    end

    def compared_with(name, value, before)
      value = Compared.with(before ? Compared::MIRRORED.fetch(name) : name, value, dtype)
      return [:bool, false, Expression::Scalar.new(value, :i64)] if value.is_a?(Integer)

      [:bool, false, Expression::Scalar.new(value, dtype == :f32 && (value.nan? || DType.single(value) == value) ? :f32 : :f64)]
    end

    # The kind of a number beside this array: the array's own where possible.
    def number_kind(value)
      return :bool if value.equal?(true) || value.equal?(false)
      return value.is_a?(Float) ? :f64 : :i64 unless DType.number?(dtype)

      DType.with(dtype, value)
    end

    def choose(one, other)
      arrays = [one, other].map { |value| value.is_a?(MDArray) ? value : MDArray.full(*[1] * ndim, value) }
      raise TypeError, "where is for numbers and booleans, not for elements of kind object" if arrays.any? { |array| array.dtype == :object }

      kind = Operators.common(:where, arrays.map(&:dtype))
      shape = Layout.broadcast(self.shape, *arrays.map(&:shape))
      MDArray.__pending(Expression::Operation.new(:where, [__operand, *arrays.map(&:__operand)], kind, shape))
    end
  end
end
