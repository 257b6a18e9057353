# frozen_string_literal: true

# Which number takes longest to get to 1 by halving what is even, and tripling and adding 1 to what is odd?
#
#   ruby -Ilib examples/collatz.rb [numbers]

require_relative "support/comparison"

module Collatz
  # Yields the numbers from this one on, before 1.
  def self.from(number)
    until number == 1
      yield number
      number = number.even? ? number / 2 : 3 * number + 1
    end
  end

  # How many steps it takes, and how high they lead.
  def self.journey(number)
    steps = 0
    highest = number
    from(number) do |place|
      steps += 1
      highest = place if place > highest
    end
    [steps, highest]
  end

  def self.run(count) = (1..count).pmap { |number| journey(number) }
end

if $PROGRAM_NAME == __FILE__
  journeys = Comparison.run(300_000) { |count| Collatz.run(count) }
  (steps, highest), index = journeys.each_with_index.max_by { |(steps, _), _| steps }
  puts "#{index + 1} takes #{steps} steps, and gets as far up as #{highest}."
end
