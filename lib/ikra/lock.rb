# frozen_string_literal: true

module Ikra
  # A lock that handlers of signals can take, too, which Mutex and Monitor refuse. Who has it may take it again: so may a handler that interrupts whoever has it,
  # so that what is done under it must bear being done in the middle of itself.
  # @api private
  class Lock
    def initialize
      @mutex = Mutex.new
    end

    def synchronize
      return yield if @mutex.owned?

      begin
        taken = false
        return @mutex.synchronize { (taken = true) && yield }
      rescue ThreadError
        raise if taken
      end
      # in a handler, where nobody may wait: the thread that has it goes on meanwhile
      Thread.pass until @mutex.try_lock
      begin
        yield
      ensure
        @mutex.unlock
      end
    end
  end
  private_constant :Lock
end
