# frozen_string_literal: true

module Ikra
  class Sections
    # Of a section that is being explained: it runs in its turn, and what it reads of earlier ones is noted.
    # @api private
    class Watch
      # What the section writes (`Ikra::Footprint`).
      attr_reader :footprints

      def initialize(before)
        @before = before
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
    end
    private_constant :Watch
  end
end
