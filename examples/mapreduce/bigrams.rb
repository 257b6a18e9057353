# frozen_string_literal: true

# Counts pairs of words that follow each other in a line.
#
#   ruby -Ilib examples/mapreduce/bigrams.rb [files]

require_relative "../support/comparison"
require_relative "../support/texts"

module Bigrams
  def self.generate(directory, lines) = [Texts.write(File.join(directory, "book.txt"), lines)]

  def self.run(files)
    counts = Ikra.lines(files).map_reduce(:+, lazy: true) do |line, out|
      line.downcase.split.each_cons(2) { |pair| out.emit(pair, 1) }
    end
    counts.top(10).map { |pair, count| [pair.join(" "), count] }
  end
end

if $PROGRAM_NAME == __FILE__
  Comparison.run_on_files(Bigrams, 10_000).each { |pair, count| puts "#{pair}: #{count}" }
end
