# frozen_string_literal: true

module Ikra
  # Operators and functions of each element. They build an expression, which one kernel computes when its elements are
  # needed: +(a * 2 + b).sum+ makes no array. An expression uses the elements as they were when it was built.
  #
  # The other operand is an array, whose dimensions of size 1 are repeated, or a number. Integers of several widths give
  # the wider one, and with Floats they give Floats. A number takes the array's kind where it can.
  class MDArray
    # @!method +(other)
    #   @param other [MDArray, Numeric]
    #   @return [MDArray] of the operands' shapes, broadcast, and of the wider kind
    #   @raise [ArgumentError] for a shape that does not fit; the message has both
    #   @raise [TypeError] for elements that are no numbers
    #   @raise [IntegerOverflow, RangeError] when the elements are looked at: for an Integer that its kind cannot hold
    # @!method -(other)
    #   Subtracts element by element.
    #   @param (see #+)
    #   @return (see #+)
    #   @raise (see #+)
    # @!method *(other)
    #   Multiplies element by element. {#matmul} is the product of matrices.
    #   @param (see #+)
    #   @return (see #+)
    #   @raise (see #+)
    # @!method /(other)
    #   Integers round down, as Ruby's do.
    #   @param (see #+)
    #   @return (see #+)
    #   @raise (see #+)
    #   @raise [ZeroDivisionError] when the elements are looked at: for an Integer divided by 0
    # @!method %(other)
    #   The remainder has the sign of the other operand, as in Ruby.
    #   @param (see #+)
    #   @return (see #+)
    #   @raise (see #/)
    # @!method **(other)
    #   The power of each element.
    #   @param (see #+)
    #   @return (see #+)
    #   @raise [RangeError] when the elements are looked at: where Ruby's result would be a Rational or a Complex
    # @!method &(other)
    #   The bits that both have; of booleans, whether both are true.
    #   @param other [MDArray, Integer, Boolean]
    #   @return [MDArray] of Integers, or of booleans
    #   @raise (see #+)
    # @!method |(other)
    #   The bits that any of both has; of booleans, whether any is true.
    #   @param (see #&)
    #   @return (see #&)
    #   @raise (see #+)
    # @!method ^(other)
    #   The bits that one of both has; of booleans, whether they differ.
    #   @param (see #&)
    #   @return (see #&)
    #   @raise (see #+)
    # @!method <<(other)
    #   Shifts Integers to the left; by a negative number, to the right.
    #   @param other [MDArray, Integer]
    #   @return [MDArray] of Integers
    #   @raise (see #+)
    # @!method >>(other)
    #   Shifts Integers to the right; by a negative number, to the left.
    #   @param (see #<<)
    #   @return (see #<<)
    #   @raise (see #+)
    # @!method eq(other)
    #   @param other [MDArray, Numeric, Boolean, Object] an object where the array has objects
    #   @return [MDArray] of booleans; +==+ compares whole arrays
    # @!method ne(other)
    #   @param (see #eq)
    #   @return [MDArray] of booleans, the opposite of {#eq}
    # @!method <(other)
    #   Which elements are less. Comparisons with Integers are exact, also with Integers of more than 64 bits.
    #   @param (see #+)
    #   @return [MDArray] of booleans
    # @!method <=(other)
    #   Which elements are less or equal.
    #   @param (see #+)
    #   @return (see #<)
    # @!method >(other)
    #   Which elements are greater.
    #   @param (see #+)
    #   @return (see #<)
    # @!method >=(other)
    #   Which elements are greater or equal.
    #   @param (see #+)
    #   @return (see #<)
    # @!method atan2(other)
    #   The angle of the point whose y is the array's element, and whose x the other one's.
    #   @param (see #+)
    #   @return [MDArray] of Floats, in radians from -π to π
    # @!method hypot(other)
    #   The length of the hypotenuse over two sides.
    #   @param (see #+)
    #   @return [MDArray] of Floats
    # @!method minimum(other)
    #   @param (see #+)
    #   @return [MDArray] the lesser one of each two elements; of two of which one is NaN, the array's own
    #   @raise (see #+)
    # @!method maximum(other)
    #   @param (see #+)
    #   @return [MDArray] the greater one of each two elements; of two of which one is NaN, the array's own
    #   @raise (see #+)
    (Operators::BINARY + Operators::BITS + Operators::COMPARISONS.keys + Operators::MATH[2] + %i[minimum maximum]).each do |name|
      define_method(name) { |other| combined_with(name, other) }
    end

    alias modulo %
    alias pow **

    # @!method sqrt
    #   The square root.
    #   @return [MDArray] of Floats
    #   @raise [Math::DomainError] when the elements are looked at: for one below 0
    # @!method cbrt
    #   The cube root.
    #   @return [MDArray] of Floats
    # @!method sin
    #   The sine of radians.
    #   @return [MDArray] of Floats
    # @!method cos
    #   The cosine of radians.
    #   @return [MDArray] of Floats
    # @!method tan
    #   The tangent of radians.
    #   @return [MDArray] of Floats
    # @!method asin
    #   The arc sine, in radians.
    #   @return [MDArray] of Floats
    #   @raise [Math::DomainError] when the elements are looked at: for one outside of -1 to 1
    # @!method acos
    #   The arc cosine, in radians.
    #   @return [MDArray] of Floats
    #   @raise [Math::DomainError] when the elements are looked at: for one outside of -1 to 1
    # @!method atan
    #   The arc tangent, in radians.
    #   @return [MDArray] of Floats
    # @!method sinh
    #   The hyperbolic sine.
    #   @return [MDArray] of Floats
    # @!method cosh
    #   The hyperbolic cosine.
    #   @return [MDArray] of Floats
    # @!method tanh
    #   The hyperbolic tangent.
    #   @return [MDArray] of Floats
    # @!method asinh
    #   The inverse hyperbolic sine.
    #   @return [MDArray] of Floats
    # @!method acosh
    #   The inverse hyperbolic cosine.
    #   @return [MDArray] of Floats
    #   @raise [Math::DomainError] when the elements are looked at: for one below 1
    # @!method atanh
    #   The inverse hyperbolic tangent.
    #   @return [MDArray] of Floats
    #   @raise [Math::DomainError] when the elements are looked at: for one outside of -1 to 1
    # @!method exp
    #   The power of e.
    #   @return [MDArray] of Floats
    # @!method log
    #   The natural logarithm.
    #   @return [MDArray] of Floats
    #   @raise [Math::DomainError] when the elements are looked at: for one below 0
    # @!method log2
    #   The logarithm to base 2.
    #   @return [MDArray] of Floats
    #   @raise [Math::DomainError] when the elements are looked at: for one below 0
    # @!method log10
    #   The logarithm to base 10.
    #   @return [MDArray] of Floats
    #   @raise [Math::DomainError] when the elements are looked at: for one below 0
    # @!method erf
    #   The error function.
    #   @return [MDArray] of Floats
    # @!method erfc
    #   1 less the error function, exact also near 0.
    #   @return [MDArray] of Floats
    # @!method abs
    #   @return [MDArray] of the same kind
    #   @raise [RangeError] when the elements are looked at: for the least Integer of a kind
    # @!method floor
    #   The greatest Integer that is not greater.
    #   @return [MDArray] of Integers
    #   @raise [FloatDomainError, RangeError] when the elements are looked at: for NaN, infinities, and beyond 64 bits
    # @!method ceil
    #   The least Integer that is not less.
    #   @return [MDArray] of Integers
    #   @raise [FloatDomainError, RangeError] when the elements are looked at: for NaN, infinities, and beyond 64 bits
    # @!method round
    #   The nearest Integer; halves round away from 0.
    #   @return [MDArray] of Integers
    #   @raise [FloatDomainError, RangeError] when the elements are looked at: for NaN, infinities, and beyond 64 bits
    # @!method truncate
    #   The Integer without the digits behind the point.
    #   @return [MDArray] of Integers
    #   @raise [FloatDomainError, RangeError] when the elements are looked at: for NaN, infinities, and beyond 64 bits
    # @!method zero?
    #   @return [MDArray] of booleans: which elements equal 0
    # @!method positive?
    #   @return [MDArray] of booleans: which elements are greater than 0
    # @!method negative?
    #   @return [MDArray] of booleans: which elements are less than 0
    # @!method even?
    #   @return [MDArray] of booleans: which elements are even; of Integers only
    # @!method odd?
    #   @return [MDArray] of booleans: which elements are odd; of Integers only
    # @!method nan?
    #   @return [MDArray] of booleans: which elements are NaN
    # @!method finite?
    #   @return [MDArray] of booleans: which elements are neither NaN nor infinite
    # @!method -@
    #   @return [MDArray] of the same kind
    #   @raise [IntegerOverflow, RangeError] when the elements are looked at: for an Integer that its kind cannot hold
    # @!method ~
    #   @return [MDArray] the other bits of Integers; +255 - x+ of +:u8+; the opposite of booleans
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

    # @param least [MDArray, Numeric]
    # @param greatest [MDArray, Numeric]
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
      return compared_on_host(name, other) if (name == :eq || name == :ne) && (dtype == :object || (other.is_a?(MDArray) && other.dtype == :object))

      case other
      when MDArray
        kind, raises = Operators.result(name, dtype, other.dtype)
        mine, theirs = shape, other.shape
        common = mine == theirs ? mine : Layout.broadcast(mine, theirs)
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
      operation = Expression::Operation.new(name, nodes, kind, shape, (caller_place(3) if raises))
      array = MDArray.__pending(operation)
      if operation.count > Expression::MAX_OPERATORS && operation.recount > Expression::MAX_OPERATORS
        __storage
        yield if block_given?
      end
      array
    end

    # The line of the program that called.
    #
    # @param near [Integer] how many methods of Ikra's are between, if it called the nearest of them
    def caller_place(near = 0)
      location, = caller_locations(near + 1, 1)
      location && program?(location) ? location : caller_locations(1, 12).find { |other| program?(other) }
    end

    def program?(location) = !location.path.start_with?(OWN_FOLDER, "<internal")

    OWN_FOLDER = __dir__
    private_constant :OWN_FOLDER

    # The kind of an operator's result with a number, whether it may raise, and the number. The number takes the array's
    # kind where it can. One that does not fit that kind is used as it is, and only the result must fit.
    #
    # @param before [Boolean] whether the number comes before the operator
    def with_number(name, value, before: false)
      # Nearly always.
      return [*Operators.result(name, :f64, :f64), Expression::Scalar.new(value, :f64)] if value.is_a?(Float) && dtype == :f64
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
