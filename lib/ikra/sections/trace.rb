# frozen_string_literal: true

require "json"

module Ikra
  class Sections
    # What the sections of one Ikra.concurrently did, and when, as events of Chrome's trace format: `trace:`.
    # @api private
    class Trace
      # Rows of the picture. Kernels that run at once have rows of their own, from the last one on.
      ROWS = ["calls: packing, and short kernels", "write-back", "kernels"].freeze
      private_constant :ROWS

      # What is known of one section. Times are in seconds.
      Entry = Struct.new(:section, :operation, :place, :called, :packed, :began, :ended, :writes, :written, :after, :outcome)
      private_constant :Entry

      def initialize
        @entries = []
        @begun = now
      end

      # A section is called in the block.
      def called(section)
        at = now
        entry = Entry.new(section, section.operation, section.place&.join(":"), at, nil, nil, nil, nil, nil, [])
        @entries << entry
        yield
      ensure
        entry.packed = now
      end

      # The section that is being packed reads what an earlier one writes.
      def met(footprint, section, reason)
        before = @entries.index { |entry| entry.section.gate&.footprints&.include?(footprint) } or return
        of(section)&.after&.push({ section: before, reason: reason })
      end

      # A section ran on a thread of its own.
      def ran(section, began, ended)
        entry = of(section) or return
        entry.began = began
        entry.ended = ended
      end

      # A section writes back.
      def writes(section)
        entry = of(section)
        gate = section.gate
        start = now
        yield
      ensure
        if entry
          entry.writes = start
          entry.written = now
          span = gate&.span
          ran(section, *span) if span
          entry.outcome = section.failure&.class&.to_s || "done"
        end
      end

      def write(path) = File.write(path, JSON.generate(traceEvents: events, displayTimeUnit: "ms"))

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def of(section) = @entries.find { |entry| entry.section.equal?(section) }

      def events
        rows = []
        spans = @entries.each_with_index.flat_map { |entry, number| of_entry(entry, number, rows) }
        names = (ROWS + rows.drop(1).map { ROWS.last }).each_with_index.map do |name, row|
          { name: "thread_name", ph: "M", pid: 1, tid: row, args: { name: name } }
        end
        names + spans
      end

      def of_entry(entry, number, rows)
        args = { section: number, place: entry.place, after: entry.after.uniq, outcome: entry.outcome || "unfinished" }.compact
        spans = [[0, entry.called, entry.packed], ([kernel_row(entry, rows), entry.began, entry.ended] if entry.began), ([1, entry.writes, entry.written] if entry.writes)]
        spans.compact.map do |row, from, to|
          { name: "#{number}: #{entry.operation}", ph: "X", pid: 1, tid: row, ts: micros(from - @begun), dur: micros(to - from), args: args }
        end + edges(entry, number)
      end

      # The first row that is free then.
      def kernel_row(entry, rows)
        row = rows.index { |free| free <= entry.began } || rows.size
        rows[row] = entry.ended
        row + ROWS.size - 1
      end

      # Arrows from the write-back of sections to the calls that waited for them.
      def edges(entry, number)
        entry.after.uniq.flat_map do |edge|
          before = @entries[edge[:section]]
          next [] unless before.written

          arrow = { name: edge[:reason], cat: "reads", id: "#{edge[:section]}-#{number}", pid: 1 }
          [arrow.merge(ph: "s", tid: 1, ts: micros(before.writes - @begun)), arrow.merge(ph: "f", bp: "e", tid: 0, ts: micros(entry.packed - @begun))]
        end
      end

      def micros(seconds) = (seconds * 1e6).round(1)
    end
    private_constant :Trace
  end
end
