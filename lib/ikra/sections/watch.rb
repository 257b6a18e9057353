# frozen_string_literal: true

module Ikra
  class Sections
    # Of a section that is being explained: it runs in its turn, and what it reads of earlier ones is noted.
    # @api private
    class Watch
      # What the section writes (`Ikra::Footprint`).
      attr_reader :footprints

      # +paper+: whether a plan says how it is launched.
      def initialize(before, paper)
        @before = before
        @paper = paper
        @footprints = []
        @after = {}
      end

      # By number, the sections that it would have waited for, with what it reads of them.
      attr_reader :after

      def queued(*) = nil

      def resumes? = false

      def traces? = true

      def writers = @noted ? [] : @before.flat_map(&:footprints)

      def met(footprint, reason) = @after[@before.index { |watch| watch.footprints.include?(footprint) }] ||= reason

      # They have written.
      def finish_before = @noted = true

      def before_ruby = nil

      def packed(footprint, *)
        @footprints << footprint if footprint
        false
      end

      def turn = nil

      # A kernel of the section ran.
      def ran(wanted, seconds, predicted)
        @wanted = wanted
        @seconds = (@seconds || 0.0) + seconds
        @predicted = predicted
      end

      def planned? = @paper && !@wanted.nil?

      # Of its last kernel, what a plan has to know. How long its kernels took, and how long the last one was expected
      # to take. nil where it had none.
      attr_reader :wanted, :seconds, :predicted
    end
    private_constant :Watch
  end
end
