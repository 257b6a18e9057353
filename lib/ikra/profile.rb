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

    # Those of a launch.
    LAUNCH = %i[upload kernel download].freeze
    # The most kernels in the table of lanes.
    MAX_ROWS = 100
    private_constant :LAUNCH, :MAX_ROWS

    # One operation that was called: a parallel method with its sections and all work on their results, or an operation
    # of an MDArray.
    #
    # [+operation+] +:pmap+; nil where it raised too early.
    # [+path+], [+line+] where its block is, or where it was called.
    # [+backend+] what it ran on; +:ruby+ where it is a method of Ruby's own.
    # [+elements+], [+ticks+] how many there were.
    # [+start+], [+seconds+] since the profile began, and how long it took. Where it waited for other sections, that
    #   time is not its own.
    # [+spans+] +[[phase, start, seconds], …]+ in order; a phase that was entered several times is there several times.
    # [+copied+] bytes of arrays on a device that were copied, so that writes to parts of them could be undone.
    # [+beside+] whether its kernel ran while its caller went on, as in {Ikra.concurrently}.
    # [+share+] how much of the machine its kernel used, from 0 to 1. nil where that is not known.
    # [+lane+] from 0, the first lane that was free when its kernel began beside its caller. nil otherwise.
    Section = Struct.new(:operation, :path, :line, :backend, :elements, :ticks, :start, :seconds, :spans, :copied, :beside, :share, :lane) do
      # @return [Hash{Symbol => Float}] seconds by phase, of those that it had
      def phases = spans.each_with_object(Hash.new(0.0)) { |(phase, _, time), sums| sums[phase] += time }.tap { |sums| sums.default = nil }

      # @return [Array(Float, Float), nil] when its first kernel began, and when its last one ended, with their copies.
      #   nil where it had none
      def launched
        times = spans.filter_map { |phase, start, time| [start, start + time] if LAUNCH.include?(phase) }
        [times.map(&:first).min, times.map(&:last).max] unless times.empty?
      end

      # @return [String] +"path:line"+ of the block or the call, or +"(no block)"+
      def place = path ? "#{path}:#{line}" : "(no block)"
    end

    # @return [Object] what the block of {Ikra.profile} gave
    attr_reader :value

    # @return [Hash{Symbol => Float}] seconds by phase, over all operations; the phases are those of {PHASES}. Where
    #   kernels ran at once, each counts, so that these may be more than {#seconds}
    attr_reader :phases

    # @return [Float] seconds of the whole block, other work included
    attr_reader :seconds

    # @return [Array<Section>] the first 100 000, in the order in which their calls ended
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
      number_lanes
    end

    # What ran at once: for each lane the sections whose kernels it ran, the earliest first.
    #
    # @example
    #   profile = Ikra.profile { Ikra.concurrently { worlds.each { |w| w.peach(20) { |star| star.move } } } }
    #   profile.lanes.map { |lane| lane.map(&:launched) } # => [[[0.001, 0.004], [0.004, 0.006]], [[0.002, 0.005]]]
    # @return [Array<Array<Section>>] empty where no kernel ran beside its caller
    def lanes = beside.group_by(&:lane).sort.map(&:last)

    # Tables: phases; blocks, the slowest first; and lanes, if kernels ran beside their callers. Times are in
    # milliseconds.
    #
    # @return [String]
    def to_s
      phases = by_phase.map { |name, time| format("%-10s%12.3f ms%6.1f %%", name, time * 1e3, share(time)) }.join("\n")
      [phases, *(blocks_as_text unless sections.empty?), *(lanes_as_text unless beside.empty?)].join("\n\n")
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
      events = [event("Ikra.profile", "M", 0.0, 0.0, name: "Ikra").merge(name: "process_name"), row_name(0, "calls and write-back")]
      events.concat(lanes.each_index.map { |lane| row_name(lane + 1, "lane #{lane}") })
      JSON.generate(traceEvents: events + sections.flat_map { |section| events_of(section) }, displayTimeUnit: "ms")
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

    # The tables of {#to_s}, for notebooks.
    #
    # @return [String] HTML
    def to_html
      longest = by_phase.map(&:last).max
      rows = by_phase.map do |name, time|
        bar = longest.positive? ? (time / longest * 240).round(1) : 0
        "<tr><td title=\"#{PHASES.fetch(name, "between operations of Ikra's")}\">#{name}</td><td align=\"right\">#{format("%.3f ms", time * 1e3)}</td>" \
          "<td align=\"right\">#{format("%.1f %%", share(time))}</td><td><div style=\"width:#{bar}px;height:0.8em;background:#b5422e\"></div></td></tr>"
      end
      tables = [html_table(%w[phase time share], rows)]
      tables << html_table(BLOCKS, html_rows(blocks)) unless sections.empty?
      tables << html_table(LANES, html_rows(lane_rows)) unless beside.empty?
      tables.join
    end

    private

    BLOCKS = %w[block operation backend calls elements ticks time kernel].freeze
    LANES = %w[block operation lane began ended share].freeze
    private_constant :BLOCKS, :LANES

    def by_phase = phases.to_a.push([:other, [seconds - (beside.empty? ? phases.values.sum : covered), 0.0].max])

    # Sections whose kernels ran beside their callers, the earliest kernel first.
    def beside = @beside ||= sections.select { |section| section.beside && section.launched }.sort_by { |section| section.launched.first }

    def number_lanes
      free = []
      beside.each do |section|
        began, ended = section.launched
        section.lane = free.index { |time| time <= began } || free.size
        free[section.lane] = ended
      end
    end

    # Seconds in which anything ran.
    def covered
      till = 0.0
      sections.flat_map(&:spans).map { |_, start, time| [start, start + time] }.sort.sum do |start, ended|
        more = [ended - [start, till].max, 0.0].max
        till = [till, ended].max
        more
      end
    end

    # Rows of Strings: the kernels that ran beside their callers.
    def lane_rows
      beside.first(MAX_ROWS).map do |section|
        began, ended = section.launched.map { |time| format("%.3f ms", time * 1e3) }
        [section.place, section.operation.to_s, section.lane.to_s, began, ended, section.share ? format("%.0f %%", section.share * 100) : ""]
      end
    end

    def lanes_as_text
      more = beside.size - MAX_ROWS
      [as_table([LANES, *lane_rows], 2), *("and #{more} kernels more" if more.positive?)].join("\n")
    end

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

    def blocks_as_text = [as_table([BLOCKS, *blocks], 3), *("and #{left_out} sections more" if left_out.positive?)].join("\n")

    # The first +left+ columns are aligned to the left.
    def as_table(rows, left)
      widths = rows.transpose.map { |cells| cells.map(&:size).max }
      rows.map { |row| row.each_with_index.map { |cell, index| index < left ? cell.ljust(widths[index]) : cell.rjust(widths[index]) }.join("  ").rstrip }.join("\n")
    end

    # The section, its phases, and its kernel in the row of its lane.
    def events_of(section)
      name = "#{section.operation || "section"} #{section.place}"
      about = { backend: section.backend, elements: section.elements, ticks: section.ticks }
      parts = section.lane ? parts_of(section) : [[section.start, section.seconds, 0]]
      parts.map { |start, time, row| event(name, "X", start, time, row: row, **about) } +
        section.spans.map { |phase, start, time| event(phase.to_s, "X", start, time, row: row_of(section, phase), phase: PHASES.fetch(phase)) }
    end

    # Its call, its kernel and its write-back, each with a start, seconds and a row.
    def parts_of(section)
      began, ended = section.launched
      own = section.spans.reject { |phase,| LAUNCH.include?(phase) }.map { |_, start, time| [start, start + time] }
      around = own.partition { |start,| start < began }.reject(&:empty?)
      [[began, ended - began, section.lane + 1], *around.map { |times| [times[0][0], times[-1][1] - times[0][0], 0] }]
    end

    def row_of(section, phase) = section.lane && LAUNCH.include?(phase) ? section.lane + 1 : 0

    def row_name(row, name) = event("thread_name", "M", 0.0, 0.0, row: row, name: name)

    def event(title, kind, start, time, row: 0, **arguments)
      { name: title, cat: "ikra", ph: kind, ts: (start * 1e6).round(3), dur: (time * 1e6).round(3), pid: Process.pid, tid: row + 1, args: arguments }
    end

    def html_rows(rows) = rows.map { |row| "<tr>#{row.map { |cell| "<td>#{escape(cell)}</td>" }.join}</tr>" }

    def html_table(names, rows)
      "<table><thead><tr>#{names.map { |name| "<th>#{name}</th>" }.join}</tr></thead><tbody>#{rows.join}</tbody></table>"
    end

    def escape(text) = text.gsub(/[&<>"]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;")
  end

  class << self
    # Measures the operations of Ikra that the block calls, in this Fiber. Those of other threads and Fibers are not
    # measured. (An Enumerator asked by +next+ has a Fiber of its own.) Sections of {Ikra.concurrently} and
    # {Parallel#async} run as they would without. Of one that ends after the block, only its call is measured.
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
    # @param elements [#size, Lazy, Integer] the elements that it processes
    # @param block [Proc, nil] the user's; without one its place is where it was called
    # @param own [String, nil] why it is a method of Ruby's own, where it is
    def __measured(operation, elements, block = nil, own: nil)
      return yield unless __measured?

      path, line = block&.source_location || __caller.drop(1)
      elements = elements.__send__(:measured) if elements.is_a?(Lazy)
      size = elements.is_a?(Integer) ? elements : elements.size
      __enter(operation.to_s, path, line, size, (Explanation.kind(elements) if __explaining?), own)
      begin
        yield
      rescue Sections::Aborted
        aborted = true
        raise
      ensure
        __leave(!aborted)
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
      Sections.called_at || [within, "(main)", 0]
    end
  end
end
