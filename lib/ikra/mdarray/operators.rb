# frozen_string_literal: true

module Ikra
  class MDArray
    # The operators and functions of elements: the text of each in a kernel, and the kind of elements that it gives.
    #
    # Each means for an element what Ruby's method means, with two exceptions, because elements are of one kind. The
    # result of Integers of 32 and 8 bits must fit them. Floats of 32 bits are rounded after each step.
    # @api private
    module Operators
      BINARY = %i[+ - * / % **].freeze
      COMPARISONS = { eq: "==", ne: "!=", :< => "<", :<= => "<=", :> => ">", :>= => ">=" }.freeze
      BITS = %i[& | ^ << >>].freeze
      # Functions of Math, by the number of their arguments. They give Floats.
      MATH = {
        1 => %i[sqrt cbrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp log log2 log10 erf erfc],
        2 => %i[atan2 hypot]
      }.freeze
      # Those that are not defined for all numbers.
      DOMAINS = %i[sqrt log log2 log10 asin acos acosh atanh **].freeze
      # Methods of numbers that keep the kind; below, those that give Integers, and those that give true or false.
      SAME = %i[abs].freeze
      TO_INTEGERS = %i[floor ceil round truncate].freeze
      QUESTIONS = %i[zero? positive? negative? even? odd? nan? finite?].freeze

      @results = {}

      class << self
        # @return [String] the text that computes it from the operands
        def text(name, operands, dtypes, dtype)
          one, other, third = operands
          case name
          when *BINARY then "#{one} #{name} #{other}"
          when *COMPARISONS.keys then "#{one} #{COMPARISONS.fetch(name)} #{other}"
          when *BITS then "#{one} #{name} #{other}"
          when *MATH[1] then "::Math.#{name}(#{one})"
          when *MATH[2] then "::Math.#{name}(#{one}, #{other})"
          when :fdiv then "#{one}.fdiv(#{other})"
          when *SAME, *TO_INTEGERS then "#{one}.#{name}"
          when *QUESTIONS then question(name, one, dtypes.first)
          when :-@ then "-#{one}"
          when :~ then dtype == :bool ? "!#{one}" : dtype == :u8 ? "~#{one} & 255" : "~#{one}"
          when :to then conversion(one, dtypes.first, dtype)
          when :minimum, :maximum
            chosen = operands.zip(dtypes).map { |operand, from| conversion(operand, from, dtype) }
            "#{other} #{name == :minimum ? "<" : ">"} #{one} ? #{chosen[1]} : #{chosen[0]}"
          when :where then "#{one} ? #{conversion(other, dtypes[1], dtype)} : #{conversion(third, dtypes[2], dtype)}"
          else raise InternalError, "an operator without a text: #{name}"
          end
        end

        # Whether a result must be rounded to 32 bits.
        def rounds?(name, _dtypes) = !%i[abs -@ minimum maximum where].include?(name)

        # Whether a result may be outside of its kind. That depends on the kinds of the operands. A number beside an
        # array may be of a wider kind.
        def leaves?(name, dtypes, dtype)
          return false unless %i[i32 u8].include?(dtype)

          wider = dtypes.any? { |from| wider?(from, dtype) }
          case name
          # The result has no more bits than the narrower operand, and is negative only if both are.
          when :& then wider && !dtypes.include?(:u8)
          when :|, :^, :%, :minimum, :maximum, :where, :to then wider
          # A shift by a negative number goes to the left.
          when :>> then wider || dtypes.last != :u8
          # The quotient, rounded down, is no further from zero, except for the least Integer divided by -1.
          when :/ then wider || dtype != :u8
          when :abs then dtype != :u8
          when :~, *TO_INTEGERS then false
          else true
          end
        end

        # Whether a kind has values that another kind of Integers (or of Floats) does not have.
        def wider?(dtype, than) = !%i[bool u8].include?(dtype) && dtype != than

        # Whether it may raise for an element.
        def raises?(name, dtypes)
          return DOMAINS.include?(name) || name == :% || TO_INTEGERS.include?(name) if dtypes.any? { |dtype| DType.float?(dtype) }

          !COMPARISONS.key?(name) && !QUESTIONS.include?(name) && !%i[& | ^ ~ fdiv minimum maximum].include?(name)
        end

        # The kind of elements that an operator gives, and whether it may raise for one.
        #
        # @raise [TypeError] for kinds that it does not take
        def result(name, dtype, other = nil)
          known = ((@results[name] ||= {})[dtype] ||= {})
          known[other] ||= [dtype, other].compact.then { |dtypes| [dtype(name, dtypes), raises?(name, dtypes)].freeze }
        end

        # The kind that can hold the elements of several kinds.
        #
        # @raise [TypeError] where they are not all numbers, nor all of one kind
        def common(name, dtypes)
          dtypes = dtypes.uniq
          return dtypes.first if dtypes.size == 1
          return numbers(name, dtypes) if dtypes.all? { |dtype| DType.number?(dtype) }

          raise TypeError, "#{name}: elements of the kinds #{dtypes.join(" and ")} have no kind in common; to(dtype) converts"
        end

        # The kind of elements that an operator gives.
        #
        # @raise [TypeError] for kinds that it does not take
        def dtype(name, dtypes)
          case name
          when :eq, :ne then same_sort(name, dtypes) && :bool
          when *COMPARISONS.keys then numbers(name, dtypes) && :bool
          when :even?, :odd? then integers(name, dtypes) && :bool
          when *QUESTIONS then numbers(name, dtypes) && :bool
          when *BITS then bits(name, dtypes)
          when :~ then dtypes.first == :bool ? :bool : integers(name, dtypes)
          when :fdiv then numbers(name, dtypes) && :f64
          when *MATH[1], *MATH[2] then numbers(name, dtypes) && (dtypes.uniq == [:f32] ? :f32 : :f64)
          when *TO_INTEGERS then numbers(name, dtypes) && (DType.float?(dtypes.first) ? :i64 : dtypes.first)
          else numbers(name, dtypes)
          end
        end

        private

        def question(name, operand, dtype)
          return "#{operand}.#{name}" if DType.float?(dtype) || !%i[nan? finite?].include?(name)

          # Integers are always finite, and never NaN.
          name == :finite? ? "#{operand} == #{operand}" : "#{operand} != #{operand}"
        end

        def conversion(operand, from, to)
          return operand if from == to || (DType.integer?(from) && DType.integer?(to)) || (DType.float?(from) && DType.float?(to))
          return from == :bool ? "(#{operand} ? 1.0 : 0.0)" : "#{operand}.to_f" if DType.float?(to)
          return from == :bool ? "(#{operand} ? 1 : 0)" : "#{operand}.truncate" if DType.integer?(to)

          "(#{operand} != 0)"
        end

        def numbers(name, dtypes)
          wrong = dtypes.find { |dtype| !DType.number?(dtype) } and raise TypeError, "#{name} is for numbers, not for elements of kind #{wrong}"
          dtypes.reduce { |one, other| DType.common(one, other) }
        end

        def integers(name, dtypes)
          wrong = dtypes.find { |dtype| !DType.integer?(dtype) } and raise TypeError, "#{name} is for Integers, not for elements of kind #{wrong}"
          dtypes.reduce { |one, other| DType.common(one, other) }
        end

        def bits(name, dtypes)
          return :bool if dtypes.uniq == [:bool] && !%i[<< >>].include?(name)

          integers(name, dtypes)
        end

        def same_sort(name, dtypes)
          return true if dtypes.uniq == [:bool]

          numbers(name, dtypes)
        end
      end
    end
    private_constant :Operators
  end
end
