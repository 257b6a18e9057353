# frozen_string_literal: true

module Ikra
  # A lock that signal handlers can take, too, which Mutex and Monitor refuse. Its owner may take it again, and so may a
  # handler that interrupts its owner. So code under the lock must be safe to run in the middle of itself.
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
      # In a handler, which cannot wait on a Mutex. The owning thread goes on meanwhile.
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
