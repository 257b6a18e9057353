# frozen_string_literal: true

# Corrects typing errors: finds the word that fewest insertions, deletions and replacements lead to.
#
#   ruby -Ilib examples/levenshtein.rb [words]

require_relative "support/comparison"

module Levenshtein
  WORDS = %w[algorithm array block boolean class closure compile constant daughter element enumerable exception float garbage hash
             instance integer iterator kernel lambda library method module object operator parallel pattern polymorphism program
             range recursion reference ruby singleton string structure symbol thread variable yield].freeze

  # How many letters to insert, delete or replace to come from one word to the other.
  def self.distance(from, to)
    return to.size if from.empty?
    return from.size if to.empty?

    theirs = to.bytes
    costs = (0..to.size).to_a
    from.each_byte.with_index(1) do |letter, row|
      corner = costs[0]
      costs[0] = row
      theirs.each_with_index do |other, column|
        replaced = letter == other ? corner : corner + 1
        corner = costs[column + 1]
        costs[column + 1] = [replaced, corner + 1, costs[column] + 1].min
      end
    end
    costs.last
  end

  # Words as they are typed in a hurry.
  def self.typed(count, random: Random.new(19))
    Array.new(count) do
      word = WORDS.sample(random: random).dup
      random.rand(3).times do
        place = random.rand(word.size)
        case random.rand(3)
        when 0 then word[place] = ""
        when 1 then word.insert(place, ("a".."z").to_a.sample(random: random))
        when 2 then word[place] = ("a".."z").to_a.sample(random: random)
        end
      end
      word
    end
  end

  # Each word that was typed, and the one that was meant.
  def self.run(count)
    words = typed(count)
    meant = words.pmap { |word| WORDS.min_by { |candidate| distance(word, candidate) } }
    words.zip(meant)
  end
end

if $PROGRAM_NAME == __FILE__
  words = Comparison.run(5_000) { |count| Levenshtein.run(count) }
  words.reject { |typed, meant| typed == meant }.first(5).each { |typed, meant| puts "#{typed}: did you mean #{meant}?" }
end
