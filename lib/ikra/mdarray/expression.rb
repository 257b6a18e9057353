# frozen_string_literal: true

module Ikra
  class MDArray
    # What an array is before it is computed: a tree of operators over arrays and numbers. Trees share branches.
    #
    # Here: its nodes, and how they keep what they look at. Not here: the kernel that computes them (+text.rb+).
    # @api private
    module Expression
      # Operators in one kernel; what is longer is computed in parts.
      MOST = 48

      # Elements that are there.
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

      # A number, which stands for as many as are needed.
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

      # An operator with its operands. Several threads may look at it, and handlers of signals: the first that has computed it says what it came to. What
      # nobody may come between is a native.
      class Operation
        attr_reader :name, :dtype, :shape, :count
        # nil once it is computed.
        attr_reader :operands
        # Where a program wrote it down, if it can raise.
        attr_reader :place
        # Once it is computed.
        attr_reader :storage
        # Whether a kernel computed it and kept nothing.
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

        # For as long as another expression looks at it.
        def retain
          @storage.retain unless Ikra.__retained(self, 1)
          self
        end

        def drop
          @storage.release(@buffer) unless Ikra.__retained(self, -1)
        end

        # The elements that it came to.
        attr_reader :buffer

        # What it came to.
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
