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

        def count = 0

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

        def drop = nil
      end

      # An operator with its operands. Several threads and signal handlers may compute it. The first that has computed
      # it stores the result. Steps that must be atomic are natives.
      class Operation
        attr_reader :name, :dtype, :shape, :count
        # nil after it is computed.
        attr_reader :operands
        # The place in the program where it was written, if it can raise.
        attr_reader :place
        # Set after it is computed.
        attr_reader :storage
        # Whether a kernel has computed it without storing the result.
        attr_accessor :seen

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

        # Called for each other expression that refers to it.
        def retain
          @storage.retain unless Ikra.__retained(self, 1)
          self
        end

        def drop
          @storage.release(@buffer) unless Ikra.__retained(self, -1)
        end

        # The buffer of its result.
        attr_reader :buffer

        # Stores its result.
        #
        # @return [Storage]
        def compute(buffer)
          Ikra.__computed(self, Storage.new(buffer, dtype), buffer)&.each(&:drop)
          @storage
        end
      end
    end
    private_constant :Expression
  end
end
