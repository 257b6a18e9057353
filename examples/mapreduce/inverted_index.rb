# frozen_string_literal: true

# Finds the files that each word is in.
#
#   ruby -Ilib examples/mapreduce/inverted_index.rb [files]

require_relative "../support/comparison"
require_relative "../support/texts"

module InvertedIndex
  def self.generate(directory, count)
    Array.new(count) { |i| Texts.write(File.join(directory, "chapter#{i}.txt"), 40, random: Random.new(i)) }
  end

  def self.run(files)
    texts = files.map { |file| [File.basename(file), File.read(file)] }
    texts.pmap_reduce(reduce: ->(_word, names) { names.sort }, order: :key) do |(name, text), out|
      text.downcase.split.uniq.each { |word| out.emit(word, name) }
    end
  end
end

if $PROGRAM_NAME == __FILE__
  index = Comparison.run_on_files(InvertedIndex, 200)
  puts "#{index.size} words, in fewest files:"
  index.min_by(5) { |_word, names| names.size }.each { |word, names| puts "  #{word}: #{names.first(5).join(", ")}" }
end
