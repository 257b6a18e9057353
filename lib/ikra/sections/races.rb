# frozen_string_literal: true

module Ikra
  class Sections
    # Finds Ruby that looks at, or changes, what a section writes that has not ended: `check: :races`. It watches the
    # calls of methods on this thread.
    # @api private
    class Races
      # Methods of Object that read or write any ivar.
      ANY = %i[instance_variable_get instance_variable_set instance_variables remove_instance_variable inspect dup clone instance_variable_defined?].freeze
      LIBRARY = File.dirname(__dir__)
      private_constant :ANY, :LIBRARY

      def initialize(sections)
        @sections = sections
      end

      # Watches the block.
      def watch(&block)
        TracePoint.new(:call, :c_call) { |event| look(event) }.enable(target_thread: Thread.current, &block)
      end

      private

      def look(event)
        return if event.path.start_with?(LIBRARY) && !watched?(event)

        ivars = nil
        section = @sections.each_unfinished.find { |one| ivars = written(one, event.self) }
        return unless section && (ivars.empty? || (touched = touched(event, ivars)))

        raise RaceError, message(event, section, touched)
      end

      # Whether a method of {Resident} stands before the one that was called.
      def watched?(event) = event.event == :call && Resident.watcher?(event.defined_class)

      # What a section writes of an object.
      def written(section, object)
        section.gate&.footprints&.each do |footprint|
          ivars = footprint.written(object)
          return ivars if ivars
        end
        nil
      end

      # The ivar that a method reads or writes. nil where it touches none of these.
      def touched(event, ivars)
        name = event.method_id
        if event.event == :c_call || watched?(event)
          names = ["@#{name}", "@#{name.to_s.delete_suffix("=")}"]
          names << name.to_s.delete_suffix("=") if event.self.is_a?(Struct)
          found = ivars.find { |ivar| names.include?(ivar.to_s) }
          return found || (ivars.first if ANY.include?(name) || event.defined_class == Struct)
        end
        code = RubyVM::InstructionSequence.of(event.defined_class.instance_method(name)).to_a.flatten
        ivars.find { |ivar| code.include?(ivar) }
      end

      def message(event, section, ivar)
        at = caller_locations.find { |location| !location.path.start_with?(LIBRARY, "<internal") }
        object = "#{ivar ? "#{ivar} of" : "what is in"} #{/\A[aeiou]/i.match?(event.self.class.to_s) ? "an" : "a"} #{event.self.class}"
        "#{at.path}:#{at.lineno}: #{event.method_id} meets #{object}, which #{section.operation}#{section.place&.then { |path, line| " at #{path}:#{line}" }} " \
          "writes later: ask for its value before"
      end
    end
    private_constant :Races
  end
end
