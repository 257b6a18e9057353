# frozen_string_literal: true

# Finds the lines of many logs that tell of an error, and when each was written.
#
#   ruby -Ilib examples/mapreduce/grep.rb [logs]

require_relative "../support/comparison"

module Grep
  LEVELS = %w[INFO INFO INFO INFO INFO INFO WARNING ERROR].freeze
  PATTERN = /\b(?:ERROR|FATAL)\b.*disk \d+/

  def self.generate(directory, count)
    random = Random.new(13)
    Array.new(count) do |i|
      File.join(directory, "#{i}.log").tap do |file|
        File.write(file, Array.new(200) { |t| format("%02d:%02d:%02d %s: disk %d is slow\n", i % 24, t / 60, t % 60, LEVELS.sample(random: random), random.rand(9)) }.join)
      end
    end
  end

  # Pairs of a time and a line.
  def self.run(logs)
    Ikra.lines(logs, chomp: true).map_reduce { |line, out| out.emit(line[/^\S+/], line) if line.match?(PATTERN) }
  end
end

if $PROGRAM_NAME == __FILE__
  found = Comparison.run_on_files(Grep, 100)
  puts "#{found.size} errors, the first ones:", found.first(5).map(&:last)
end
