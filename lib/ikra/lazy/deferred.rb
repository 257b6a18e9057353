# frozen_string_literal: true

module Ikra
  class Lazy
    # A chain that is made when its base or its stages are needed: to find where the lines of a text are takes time.
    # @api private
    class Deferred < Lazy
      # @yieldreturn [Lazy] the chain. It is asked for once.
      def initialize(options)
        CoreMethods.check
        @options = options
        made = nil
        @made = -> { made ||= yield }
      end

      def base = @made.call.base

      def stages = @made.call.stages

      private

      def followed_by(stages) = Deferred.new(options) { @made.call.__send__(:followed_by, stages) }
    end
    private_constant :Deferred
  end
end
