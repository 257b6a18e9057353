# frozen_string_literal: true

module Ikra
  class MDArray
    module Expression
      # Pending arrays that one kernel computes, because they share operators.
      #
      # A program reads one array after another, as in `flows.each(&:sync)`. A kernel for each would read the shared
      # operands again, and the second would find that it needs what the first has computed without storing it. Then
      # {Expression.settle} notes the form of the first kernel here. When such a form is to be computed again, the other
      # arrays that share operators with it are results of the same kernel.
      #
      # That is a guess: the program may never read them. Until it has read all of them, the form is computed alone. It
      # is guessed again after more and more kernels that would have needed it. So hardly any kernel computes in vain.
      # Operators that can raise have no part in it, because only an array that the program reads may raise.
      #
      # Here: the forms, which arrays belong together, and whether they were read. Not here: the kernel
      # (+text.rb+).
      # @api private
      module Together
        # The most results of a kernel, and the most operators.
        MAX_RESULTS = 16
        MAX_OPERATORS = 4 * Expression::MAX_OPERATORS
        # The most operators that are looked at to find other arrays.
        MAX_LOOKED_AT = 1_000
        # The most kernels that are compiled for one form.
        MAX_KERNELS = 4
        # The most forms that are remembered, and the most kernels that ran.
        MAX_FORMS = 256
        MAX_RAN = 64

        # After how many kernels that need what another one did not store it is guessed again.
        PATIENCE = 8

        # Results that a kernel computed before Ruby asked for them.
        class Guess
          # How many of them Ruby has not asked for.
          attr_accessor :left

          def initialize(left)
            @left = left
          end
        end

        # A form whose operators other arrays share.
        class Shared
          def initialize
            @missed = 0
            @patience = PATIENCE
            @kernels = []
          end

          # Whether a kernel with several results may run.
          def good? = (@guess.nil? || @guess.left.zero?) && @kernels.size <= MAX_KERNELS

          # Whether it may be a kernel of a form.
          def kernel?(form)
            @kernels << form unless @kernels.include?(form)
            good?
          end

          # Results that are computed now.
          def guess(results)
            @guess = Guess.new(results.size)
            results.each { |result| result.guess = @guess }
          end

          # Another kernel needs what the last one did not store.
          def missed
            return if good? || (@missed += 1) < @patience

            @missed = 0
            @patience *= 2
            @guess = nil
          end
        end

        # The operands of several results, as the form of a text has them.
        class Group
          attr_reader :name, :operands, :dtype, :shape

          def initialize(operands)
            @name = :together
            @operands = operands
            @dtype = operands.first.dtype
            @shape = operands.first.shape
          end
        end

        @ran = {}
        @forms = {}

        class << self
          # A kernel needs what the kernel with a number computed without storing it.
          def missed(number)
            form = @ran[number] or return
            shared = @forms[form]
            return shared.missed if shared

            @forms.shift if @forms.size >= MAX_FORMS
            @forms[form] = Shared.new
          end

          # The other results of the kernel that computes an expression. nil: there are none.
          #
          # @param form [String] the key of its text
          def others(node, form)
            @ran[node.seen] = form
            @ran.shift if @ran.size > MAX_RAN
            return if @forms.empty?

            shared = @forms[form]
            Search.new(node).others if shared&.good?
          end

          # Whether they may be computed by a kernel with the form of a {Group}.
          def try(form, kernel, others)
            shared = @forms[form]
            shared.guess(others) if shared&.kernel?(kernel)
          end
        end

        # The search for the other results.
        class Search
          def initialize(node)
            @node = node
            @known = {}.compare_by_identity
          end

          # nil: there are none, or too many.
          def others
            return unless within(@node)

            users = @known.keys.flat_map(&:users)
            roots = climb(users) or return
            roots.select! { |root| root.shape == @node.shape }
            chosen = roots.first(MAX_RESULTS - 1).select { |root| within(root) }
            chosen unless chosen.empty?
          end

          private

          # Notes the operators of an expression. false: one can raise, or there are too many. Then it notes none.
          def within(root)
            added, left = [], [root]
            while (operation = left.pop)
              next if @known.key?(operation)

              if operation.place || @known.size >= MAX_OPERATORS
                added.each { |noted| @known.delete(noted) }
                return false
              end
              @known[operation] = true
              added << operation
              operation.operands&.each { |operand| left << operand if pending?(operand) }
            end
            true
          end

          # The expressions that no other one uses, from some of their operators.
          def climb(users)
            roots, looked_at = [], {}.compare_by_identity
            until users.empty?
              user = users.pop
              next if looked_at.key?(user) || @known.key?(user) || !pending?(user)
              return if looked_at.size > MAX_LOOKED_AT

              looked_at[user] = true
              above = user.users.select { |other| pending?(other) }
              above.empty? ? roots << user : users.concat(above)
            end
            roots
          end

          def pending?(node) = node.is_a?(Operation) && !node.operands.nil?
        end
        private_constant :Search
      end
    end
  end
end
