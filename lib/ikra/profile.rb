# frozen_string_literal: true

require "json"

module Ikra
  # The time that Ikra's operations took.
  class Profile
    # The phases of an operation: work on the host other than marshalling, and the meaning of each phase.
    PHASES = {
      source: "finding and parsing the block", infer: "types, and the program", compile: "machine code", trace: "reachable objects",
      pack: "objects to columns", upload: "to the device", kernel: "the program itself", download: "from the device", unpack: "columns to objects",
      ruby: "Ruby code of an operation's, Ruby's own methods included"
    }.freeze

    # One operation that was called: a parallel method with its sections and all work on their results, or an operation
    # of an MDArray.
    #
    # [+operation+] +:pmap+; nil where it raised too early.
    # [+path+], [+line+] where its block is, or where it was called.
    # [+backend+] what it ran on; +:ruby+ where it is a method of Ruby's own.
    # [+elements+], [+ticks+] how many there were.
    # [+start+], [+seconds+] since the profile began, and how long it took.
    # [+spans+] +[[phase, start, seconds], …]+ in order; a phase that was entered several times is there several times.
    # [+copied+] bytes of arrays on a device that were copied, so that writes to parts of them could be undone.
    Section = Struct.new(:operation, :path, :line, :backend, :elements, :ticks, :start, :seconds, :spans, :copied) do
      # @return [Hash{Symbol => Float}] seconds by phase, of those that it had
      def phases = spans.each_with_object(Hash.new(0.0)) { |(phase, _, time), sums| sums[phase] += time }.tap { |sums| sums.default = nil }

      # @return [String] +"path:line"+ of the block or the call, or +"(no block)"+
      def place = path ? "#{path}:#{line}" : "(no block)"
    end

    # @return [Object] what the block of {Ikra.profile} gave
    attr_reader :value

    # @return [Hash{Symbol => Float}] seconds by phase, over all operations; the phases are those of {PHASES}
    attr_reader :phases

    # @return [Float] seconds of the whole block, other work included
    attr_reader :seconds

    # @return [Array<Section>] the first 100 000, in the order in which they ended
    attr_reader :sections

    # @return [Integer] sections after those, which are in {#phases} only
    attr_reader :left_out

    # @api private
    def initialize(value, phases, seconds, sections = [], left_out = 0)
      @value = value
      @phases = phases
      @seconds = seconds
      @sections = sections
      @left_out = left_out
    end

    # Two tables: phases, and blocks, the slowest first. Times are in milliseconds.
    #
    # @return [String]
    def to_s
      [by_phase.map { |name, time| format("%-10s%12.3f ms%6.1f %%", name, time * 1e3, share(time)) }.join("\n"), *(blocks_as_text unless sections.empty?)].join("\n\n")
    end

    # The phases that took any time, in one line.
    #
    # @return [String]
    def inspect
      shown = phases.select { |_, time| time.positive? }.map { |name, time| format("%s: %.3f ms", name, time * 1e3) }
      "#<#{self.class} #{shown.join(", ")}>"
    end

    # The sections and their phases as Chrome's trace events, which chrome://tracing, Perfetto and speedscope show.
    #
    # @return [String] JSON
    def to_chrome_trace
      events = [event("Ikra.profile", "M", 0.0, 0.0, name: "Ikra").merge(name: "process_name")]
      sections.each do |section|
        events << event("#{section.operation || "section"} #{section.place}", "X", section.start, section.seconds,
                        backend: section.backend, elements: section.elements, ticks: section.ticks)
        section.spans.each { |phase, start, time| events << event(phase.to_s, "X", start, time, phase: PHASES.fetch(phase)) }
      end
      JSON.generate(traceEvents: events, displayTimeUnit: "ms")
    end

    # Writes {#to_chrome_trace} into a file, which is overwritten.
    #
    # @example
    #   Ikra.profile { simulate }.write("simulation.json")
    # @param path [String, Pathname]
    # @return [self]
    # @raise [SystemCallError] where the file cannot be written
    def write(path)
      File.write(path, to_chrome_trace)
      self
    end

    # Both tables, for notebooks.
    #
    # @return [String] HTML
    def to_html
      longest = by_phase.map(&:last).max
      rows = by_phase.map do |name, time|
        bar = longest.positive? ? (time / longest * 240).round(1) : 0
        "<tr><td title=\"#{PHASES.fetch(name, "between operations of Ikra's")}\">#{name}</td><td align=\"right\">#{format("%.3f ms", time * 1e3)}</td>" \
          "<td align=\"right\">#{format("%.1f %%", share(time))}</td><td><div style=\"width:#{bar}px;height:0.8em;background:#b5422e\"></div></td></tr>"
      end
      html_table(%w[phase time share], rows) + (sections.empty? ? "" : html_table(BLOCKS, blocks.map { |row| "<tr>#{row.map { |cell| "<td>#{escape(cell)}</td>" }.join}</tr>" }))
    end

    private

    BLOCKS = %w[block operation backend calls elements ticks time kernel].freeze
    private_constant :BLOCKS

    def by_phase = phases.to_a.push([:other, [seconds - phases.values.sum, 0.0].max])
    def share(time) = seconds.zero? ? 0.0 : time / seconds * 100

    # Rows of Strings: what the sections of each block took together, the slowest first.
    def blocks
      alike = sections.group_by { |section| [section.place, section.operation, section.backend] }.sort_by { |_, group| -group.sum(&:seconds) }
      alike.map do |(place, operation, backend), group|
        [place, operation.to_s, backend.to_s, group.size.to_s, span(group.map(&:elements)), span(group.map(&:ticks)),
         format("%.3f ms", group.sum(&:seconds) * 1e3), format("%.3f ms", group.sum { |section| section.phases[:kernel] || 0.0 } * 1e3)]
      end
    end

    # "1000", or "10..1000" where they differ.
    def span(numbers)
      least, most = numbers.compact.minmax
      least == most ? least.to_s : "#{least}..#{most}"
    end

    def blocks_as_text
      rows = [BLOCKS, *blocks]
      widths = rows.transpose.map { |cells| cells.map(&:size).max }
      lines = rows.map { |row| row.each_with_index.map { |cell, index| index < 3 ? cell.ljust(widths[index]) : cell.rjust(widths[index]) }.join("  ").rstrip }
      lines << "and #{left_out} sections more" if left_out.positive?
      lines.join("\n")
    end

    def event(name, kind, start, time, **arguments)
      { name: name, cat: "ikra", ph: kind, ts: (start * 1e6).round(3), dur: (time * 1e6).round(3), pid: Process.pid, tid: 1, args: arguments }
    end

    def html_table(names, rows)
      "<table><thead><tr>#{names.map { |name| "<th>#{name}</th>" }.join}</tr></thead><tbody>#{rows.join}</tbody></table>"
    end

    def escape(text) = text.gsub(/[&<>"]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;")
  end

  class << self
    # Measures the operations of Ikra that the block calls, in this Fiber. Those of other threads and Fibers are not
    # measured. (An Enumerator asked by +next+ has a Fiber of its own.)
    #
    # @example
    #   puts Ikra.profile { actors.peach(1000) { |actor| actor.move(weather) } }
    # @return [Profile]
    # @raise [ArgumentError] without a block
    def profile
      raise ArgumentError, "Ikra.profile needs a block" unless block_given?

      __profile_start
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      begin
        value = yield
      ensure
        seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
        phases, sections, left_out = __profile_stop
      end
      Profile.new(value, phases, seconds, sections.map { |section| Profile::Section.new(*section) }, left_out)
    end

    # @api private
    # Runs an operation. In a profile, all work within it counts as this operation's.
    #
    # @param elements [#size, Integer] the elements that it processes
    # @param block [Proc, nil] the user's; without one its place is where it was called
    # @param own [String, nil] why it is a method of Ruby's own, where it is
    def __measured(operation, elements, block = nil, own: nil)
      return yield unless __measured?

      path, line = block&.source_location || __caller.drop(1)
      size = elements.is_a?(Integer) ? elements : elements.size
      __enter(operation.to_s, path, line, size, (Explanation.kind(elements) if __explaining?), own)
      begin
        yield
      ensure
        __leave
      end
    end

    # @api private
    # Runs a method of Ruby's own.
    def __ruby(operation, elements, &work)
      at_once = lambda do
        Sections.wait_for_others
        __measured(operation, elements, own: "without a block it is Ruby's own method", &work)
      end
      Sections.queued(operation, single: false, &at_once) || at_once.call
    end

    # @api private
    # The method of Ikra that the user called, and the path and line of the call.
    def __caller
      within = "ikra"
      caller_locations(1).each do |location|
        path = location.path
        next if path.start_with?("<internal")
        return [within == "initialize" ? "new" : within, path, location.lineno] unless path.start_with?(__dir__)

        within = location.base_label
      end
      [within, "(main)", 0]
    end
  end
end
