# frozen_string_literal: true

require "tempfile"

# What is inferred from so many objects that several threads scan them, compared with what is inferred from a few.
module Inferred
  SCANNED_ALONE = 60
  SCANNED_BY_THREADS = 60_000

  # A short `inspect`. Errors show objects, and each object leads to all others.
  module Short
    def inspect = "#<#{self.class}>"
  end

  class House
    include Short
    attr_accessor :size, :next

    def initialize(size) = @size = size
    def rent = @size * 2
  end

  class Castle < House
    def rent = @size * 0.5
  end

  class Purse
    include Short
    attr_accessor :coins, :debts

    def initialize(coins)
      @coins = coins
      @debts = 0
    end
  end

  Pair = Struct.new(:left, :right) do
    include Short
  end

  class Person
    include Short
    attr_accessor :house, :purse, :pair, :visits, :marks, :words, :age, :mood, :idle

    def initialize(house, number)
      @house = house
      @purse = Purse.new(number % 13)
      @pair = Pair.new(number % 7, number * 0.5)
      @visits = [house, house.next]
      @marks = [number % 6, 1]
      @words = "#{number % 5} words"
      @age = number % 90
      @mood = 0.25
      # The last person is idle, too.
      @idle = number % 4 == 3
    end

    def live
      @mood += @pair.left.to_f + @pair.right.to_f + @words.size
      @marks.each { |mark| @mood += mark.to_i - 1 }
      @age = @age.to_i + (@purse.coins - 1)
      @purse.debts += 1 unless @idle
      here = @house
      return unless here

      @mood += here.rent
      @visits.each { |house| @mood += house.size }
      @visits[0] = here unless @idle
      @house = @visits[1]
    end
  end

  class Child < Person
    def live
      super
      @mood += 1
    end
  end

  class << self
    # The same people for any count, except for their number.
    def people(count)
      houses = Array.new(count / 4) { |i| House.new(i % 11) }
      houses.each_with_index { |house, i| house.next = houses[(i * 31 + 1) % houses.size] }
      Array.new(count) { |i| (i % 3 == 1 ? Child : Person).new(houses[i * 17 % houses.size], i) }
    end

    attr_accessor :walk

    # A block that was never called. A block keeps for later calls what it was compiled for.
    def block
      Tempfile.create(["walk", ".rb"]) do |file|
        file.write("Inferred.walk = ->(people) { people.peach(backend: :cpu) { |person| person&.live } }\n")
        file.flush
        load file.path
        yield walk
      end
    end

    # All that `Ikra.explain` says of a block, or the error.
    def told(people)
      section = Ikra.explain { block { |walk| walk.call(people) } }.sections.first
      parts = [section.specialisations, section.columns, section.checks].map { |part| part.map(&:to_s) }
      [section.types, section.result, *parts, section.jobs, section.code(:ir)].flatten.join("\n").gsub(/0x\h+|\S+\.rb/, "…")
    rescue Ikra::CompileError => error
      error.message.gsub(/\S+\.rb/, "…").gsub(/element \d+/) { |element| element[/\d+/].to_i == people.size - 1 ? "the last element" : element }
    end

    def tower(times)
      Class.new(House) do
        class_eval "def self.inspect = 'Tower#{times}'; def size = super * #{times}", __FILE__, __LINE__
      end.new(1)
    end

    # Changes that show only at the end.
    CHANGES = {
      "nothing" => ->(_people) {},
      "nil in the last" => ->(people) { people.last.house = nil },
      "a member that is nil" => ->(people) { people.last.pair.left = nil },
      "a member of another kind" => ->(people) { people.last.pair.right = 3 },
      "a large Integer" => ->(people) { people.last.purse.coins = 1 << 40 },
      "an Integer that takes an object" => ->(people) { people.last.purse.coins = 1 << 62 },
      "a Float that takes an object" => ->(people) { people.last.age = 1e-200 },
      "a subclass" => ->(people) { people.last.house = Castle.new(3).tap { |castle| castle.next = castle } },
      "a subclass among the elements of a list" => ->(people) { people.last.visits[1] = Castle.new(3) },
      "a frozen object" => ->(people) { people.last.purse.freeze },
      "a frozen list" => ->(people) { people.last.visits.freeze },
      "a longer list" => ->(people) { people.last.marks << 3 },
      "no number in a list" => ->(people) { people.last.marks[1] = nil },
      "a large Integer in a list" => ->(people) { people.last.marks[1] = 1 << 40 },
      "an object that two have" => ->(people) { people.last.purse = people[-2].purse },
      "an object that the last and the first have" => ->(people) { people.last.purse = people[0].purse },
      "a list that two have" => ->(people) { people.last.visits = people[0].visits },
      "an ivar that is not there" => ->(people) { people.last.remove_instance_variable(:@house) },
      "ivars in another order" => ->(people) { people.last.remove_instance_variable(:@house).then { |house| people.last.house = house } },
      "an element twice" => ->(people) { people[-1] = people[0] },
      "no object" => ->(people) { people[-1] = nil },
      "classes that are new" => ->(people) { [5, 7, 3].each { |times| people.last.visits.unshift(Inferred.tower(times)) } },
      "what no kernel holds among the elements" => ->(people) { people[-1] = Thread.current },
      "what no kernel holds in an ivar" => ->(people) { people.last.pair = Thread.current },
      "what no kernel holds in a list" => ->(people) { people.last.visits[1] = Thread.current },
      "a String in another encoding" => ->(people) { people.last.words = "words".encode("UTF-16LE") },
      "an Integer beyond 64 bits" => ->(people) { people.last.purse.coins = 1 << 70 }
    }.freeze
  end

  # Changes that do not affect what is inferred.
  UNSEEN = ["nothing", "ivars in another order"].freeze
end

RSpec.describe "What is inferred" do
  Inferred.singleton_class::CHANGES.each do |name, change|
    it "is the same of many objects as of few, with #{name}" do
      few, many, usual = [[Inferred::SCANNED_ALONE, change], [Inferred::SCANNED_BY_THREADS, change], [Inferred::SCANNED_ALONE, :itself.to_proc]].map do |count, changed|
        Inferred.told(Inferred.people(count).tap(&changed))
      end
      expect(many).to eq(few)
      expect(few == usual).to be(Inferred::UNSEEN.include?(name))
    end
  end
end
