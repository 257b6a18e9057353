# frozen_string_literal: true

module Ikra
  # The parallel methods of an Array or a Range, each of which gives a {Section}.
  class Async
    # @api private
    def initialize(base)
      @base = base
    end

    Parallel.public_instance_methods(false).each do |name|
      next if name == :async

      define_method(name) do |*args, **options, &block|
        base = @base
        Sections.open.add(name, block: block) { base.public_send(name, *args, **options, &block) }
      end
    end
  end

  class << self
    # Runs sections at once, where their results do not depend on each other. The answer is that of sequential Ruby.
    #
    # Within the block, parallel methods of Arrays and Ranges give a {Section}. Ruby between them runs at once. The
    # block's value is given with the values of sections in place of sections, within Arrays and Hashes, too.
    #
    # @example
    #   late, speed = Ikra.concurrently { [buses.pselect { |b| b.delay > 5 }, cars.psum(&:speed)] }
    # @param policy [Symbol] +:auto+; +:plain+: each on a thread of its own, however short it is; +:paper+: +pmap+ and
    #   +peach+ begin together, in launch sizes and batches by a model of the GPU; or +:serial+: one section after the
    #   other
    # @param check [Symbol, nil] +:races+ raises {RaceError} where Ruby in the block calls a method that reads or
    #   changes what a section writes later. That is slow
    # @param trace [String, Pathname, nil] a file that gets what the sections did, and when, for Perfetto, or
    #   +about:tracing+ in Chrome
    # @return [Object] the block's value
    # @raise what the first section raises that does; later sections have then written nothing
    def concurrently(policy: :auto, check: nil, trace: nil, **others, &block)
      CoreMethods.check
      unless others.empty?
        name = others.keys.first
        raise ArgumentError, "Ikra.concurrently takes policy:, check: and trace: only; give #{name}: to the calls in its block, as in list.pmap(#{name}: …), or to Ikra.configure"
      end
      raise ArgumentError, "Ikra.concurrently needs a block" unless block
      raise ArgumentError, "policy: #{policy.inspect} is none of #{Sections::POLICIES.map(&:inspect).join(", ")}" unless Sections::POLICIES.include?(policy)
      raise ArgumentError, "check: #{check.inspect} is not :races" unless Sections::CHECKS.include?(check)

      Sections.open.within(policy, check, trace, &block)
    end
  end
end
