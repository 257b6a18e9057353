# frozen_string_literal: true

require_relative "model"

class Program::SmithWaterman
  def compute((one, other, score))
    (1..one.size).each do |row|
      (1..other.size).each { |column| align(one, other, score, row, column) }
    end
  end
end
