# frozen_string_literal: true

# Writes texts of made-up words, of which few occur often.
module Texts
  SYLLABLES = %w[ba de fi go lu ma ne po ra si to vu].freeze
  WORDS = (SYLLABLES + SYLLABLES.product(SYLLABLES).map(&:join) + SYLLABLES.product(SYLLABLES, SYLLABLES).map(&:join)).freeze

  # @return [String] the path
  def self.write(path, lines, random: Random.new(1))
    text = Array.new(lines) { "#{Array.new(random.rand(12)) { WORDS[(WORDS.size**random.rand).floor - 1] }.join(" ").capitalize}.\n" }
    File.write(path, text.join)
    path
  end
end
