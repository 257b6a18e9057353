# frozen_string_literal: true

# Counts the words of texts.
#
#   ruby -Ilib examples/mapreduce/word_count.rb [files]

require_relative "../support/comparison"
require_relative "../support/texts"

module WordCount
  def self.generate(directory, lines) = [Texts.write(File.join(directory, "book.txt"), lines)]

  def self.run(files) = Ikra.lines(files).flat_map { |line| line.downcase.scan(/[a-z]+/) }.tally
end

if $PROGRAM_NAME == __FILE__
  counts = Comparison.run_on_files(WordCount, 20_000)
  puts "#{counts.size} words, most often:"
  counts.top(5).each { |word, count| puts "  #{word}: #{count}" }
end
