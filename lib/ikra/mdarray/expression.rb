# frozen_string_literal: true

module Ikra
  class MDArray
    # An array before it is computed: a tree of operators over arrays and numbers. Trees share branches.
    #
    # Here: its nodes, and how they keep the buffers that they read. Not here: the kernel that computes them
    # (+text.rb+).
    # @api private
    module Expression
      # The most operators in one kernel. A longer expression is computed in parts.
      MAX_OPERATORS = 48
      @settled = 0

      # Prepares an expression for a kernel. Operands that an earlier kernel has computed without storing them are
      # computed and stored first. So nothing is computed more than three times, and an expression that a loop extends
      # again and again stays short: each step has the form of the step before.
      def self.settle(node)
        return unless node.is_a?(Operation)

        # What was computed together with the node before is not worth storing for itself.
        node.seen = @settled += 1 unless node.seen.is_a?(Integer)
        settle_operands(node, node.seen)
      end

      def self.settle_operands(node, number)
        node.operands&.each do |operand|
          next unless operand.is_a?(Operation) && operand.operands

          seen = operand.seen
          next if seen == number

          if seen
            Together.missed(seen)
            next store(operand)
          end

          operand.seen = number
          settle_operands(operand, number)
        end
      end

      # Prepares other results of a kernel.
      def self.settle_others(others, number)
        others.each { |other| settle_operands(other, number) }
      end

      def self.store(operation)
        operation.compute(Run.expression(operation, alone: true))
      rescue NoMemoryError, DeviceMemoryError
        # There is no room for it, so it is computed again.
      end
      private_class_method :store

      # Existing elements.
      class Leaf
        attr_reader :dtype, :layout, :buffer

        def initialize(storage, layout)
          @storage = storage
          @layout = layout
          @dtype = storage.dtype
          @buffer = storage.retain
        end

        def shape = layout.shape

        def size = layout.size

        def count = 0

        def recount = 0

        def drop = @storage.release(@buffer)
      end

      # A number. It stands for as many elements as are needed.
      class Scalar
        attr_reader :dtype, :value

        def initialize(value, dtype)
          @value = value
          @dtype = dtype
        end

        def shape = [].freeze

        def count = 0

        def recount = 0

        def drop = nil
      end

      # An operator with its operands. Several threads and signal handlers may compute it. The first that has computed
      # it stores the result. Steps that must be atomic are natives.
      class Operation
        attr_reader :name, :dtype, :shape
        # The most operators that computing it takes. Those of operands that were stored meanwhile are included.
        attr_reader :count
        # nil after it is computed.
        attr_reader :operands
        # The place in the program where it was written, if it can raise.
        attr_reader :place
        # Set after it is computed.
        attr_reader :storage
        # Whether a kernel has computed it without storing the result: true, or the number that {Expression.settle} gave
        # to all operations of that kernel.
        attr_accessor :seen
        # Set where a kernel computed it before Ruby asked for it, until Ruby does.
        attr_writer :guess
        # The most pending expressions with this operand that are remembered. Those that are dropped would else be kept
        # with what they read.
        MAX_USERS = 16

        def initialize(name, operands, dtype, shape, place = nil)
          @name = name
          @place = place
          @operands = operands
          @dtype = dtype
          @shape = shape.freeze
          @retained = 0
          @count = 1
          operands.each { |operand| @count += operand.count }
        end

        # The operators that computing it takes now.
        def recount = @storage ? 0 : @count = 1 + (operands || []).sum(&:recount)

        # Called for each other expression that refers to it.
        def retain
          unless Ikra.__retained(self, 1)
            @storage.retain
            asked
          end
          self
        end

        # The latest pending arrays' expressions with this operand.
        def users = [*@user, *@users]

        # Notes it with its operands, as a pending array's expression.
        def note_use = @operands.each { |operand| operand.used_by(self) if operand.is_a?(Operation) }

        def used_by(operation)
          return @user = operation unless @user

          @users = [*@users, operation].last(MAX_USERS - 1)
        end

        def unused_by(operation)
          @user.equal?(operation) ? @user = nil : @users&.delete(operation)
        end

        # Ruby asks for the result.
        def asked
          return unless @guess

          @guess.left -= 1
          @guess = nil
        end

        def drop
          @storage.release(@buffer) unless Ikra.__retained(self, -1)
        end

        # The buffer of its result.
        attr_reader :buffer

        # The number of elements.
        def size
          size = 1
          @shape.each { |length| size *= length }
          size
        end

        # Stores its result.
        #
        # @return [Storage]
        def compute(buffer)
          noted = @count > 1
          Ikra.__computed(self, Storage.new(buffer, dtype), buffer)&.each do |operand|
            operand.drop
            operand.unused_by(self) if noted && operand.is_a?(Operation)
          end
          @user = @users = nil
          @storage
        end
      end
    end
    private_constant :Expression
  end
end
