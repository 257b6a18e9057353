# frozen_string_literal: true

# Schelling's model of segregation: people who want only a few of their own kind around them end up living apart.
#
#   ruby -Ilib examples/schelling.rb [homes on a side]

require_relative "support/comparison"
require_relative "support/png"

module Schelling
  class Home
    attr_accessor :neighbours, :resident

    def empty? = resident.nil?
  end

  class Person
    attr_reader :kind
    attr_accessor :home

    def initialize(kind, home)
      @kind = kind
      move_to(home)
    end

    def move_to(new_home)
      home&.resident = nil
      self.home = new_home
      new_home.resident = self
    end

    def happy?(wanted)
      around = home.neighbours.filter_map(&:resident)
      around.empty? || around.count { |other| other.kind == kind }.fdiv(around.size) >= wanted
    end
  end

  class City
    AROUND = [-1, 0, 1].product([-1, 0, 1]).reject { |place| place == [0, 0] }.freeze
    KINDS = %i[blue orange].freeze

    attr_reader :people, :homes

    def initialize(size, random: Random.new(29))
      @random = random
      @homes = Array.new(size * size) { Home.new }
      @homes.each_with_index do |home, index|
        row, column = index.divmod(size)
        home.neighbours = AROUND.map { |down, right| @homes[(row + down) % size * size + (column + right) % size] }
      end
      @people = @homes.sample(size * size * 9 / 10, random: random).map { |home| Person.new(KINDS.sample(random: random), home) }
    end

    # All people who are not happy move to a free home. Gives how many moved.
    def year(wanted)
      unhappy = @people.zip(@people.pmap { |person| person.happy?(wanted) }).reject(&:last).map(&:first)
      free = @homes.select(&:empty?)
      unhappy.each do |person|
        place = @random.rand(free.size)
        left = person.home
        person.move_to(free[place])
        free[place] = left
      end
      unhappy.size
    end
  end

  # The people of each home in the end, and how many moved each year.
  def self.run(size, years: 40, wanted: 0.5)
    city = City.new(size)
    moves = Array.new(years) { city.year(wanted) }
    [city.homes.map { |home| home.resident&.kind }.each_slice(size).to_a, moves]
  end

  COLOURS = { nil => [13, 18, 32], blue: [55, 213, 255], orange: [255, 160, 66] }.freeze
end

if $PROGRAM_NAME == __FILE__
  rows, moves = Comparison.run(150) { |size| Schelling.run(size) }
  puts "#{moves.first} people moved in the first year, #{moves.last} in the last."
  PNG.write("schelling.png", rows.flat_map { |row| [row.flat_map { |kind| [Schelling::COLOURS[kind]] * 4 }] * 4 })
end
