# frozen_string_literal: true

require_relative "model"

module Traffic
  # The output of the program on the terminal.
  module Report
    module_function

    def with_commas(number)
      number.to_s.reverse.scan(/\d{1,3}/).join(" ").reverse
    end

    # 0.000123 is "123 µs"
    def seconds(value)
      unit, scale = [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]].find { |_, factor| value * factor >= 1 } || ["ns", 1e9]
      number = value * scale
      "#{number.round(number < 10 ? 2 : (number < 100 ? 1 : 0))} #{unit}"
    end

    # Overwrites the line on a terminal. Prints nothing where the output is a file.
    def progress(done, total, out: $stderr)
      return unless out.tty?

      full = 40 * done / total
      out.print "\r  [#{"█" * full}#{"·" * (40 - full)}] #{with_commas(done)} of #{with_commas(total)} ticks"
      out.print "\n" if done == total
    end

    def table(rows, out: $stdout)
      widths = rows.transpose.map { |column| column.map { |cell| cell.to_s.size }.max }
      rows.each do |first, *others|
        cells = others.zip(widths.drop(1)).map { |cell, width| cell.to_s.rjust(width) }
        out.puts "  #{[first.to_s.ljust(widths.first), *cells].join("   ")}".rstrip
      end
    end
  end
end
