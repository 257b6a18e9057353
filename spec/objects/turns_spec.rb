# frozen_string_literal: true

# Consecutive jobs search the nearest object as one group on the host, and then change it one after the other.
RSpec.describe "objects that add themselves to the nearest of a list" do
  class TurnsPlace
    attr_reader :x, :y
    attr_accessor :weight, :count

    def initialize(x, y)
      @x = x
      @y = y
      @weight = @count = 0
    end

    def state = [@x, @y, @weight, @count]
  end

  class TurnsVisitor
    attr_reader :x

    def initialize(x, y, weight)
      @x = x
      @y = y
      @weight = weight
      @place = nil
    end

    def visit(places, most)
      @place = places.min_by do |place|
        dx = place.x - @x
        dy = place.y - @y
        dx * dx + dy * dy
      end
      @x = @place.x
      @place.weight += @weight
      raise ArgumentError, "#{@weight} is too much" if @weight > most

      @place.count += 1 unless @weight.even?
    end

    def state = [@x, @y, @weight, @place&.state]
  end

  # The branch on an amount that is the same in all ticks leaves two loops over ticks.
  class TurnsCounter
    attr_reader :best

    def initialize(most)
      @zero = 0.0
      @best = 0.0
      @most = most
    end

    def count(weights, amount)
      sum = 0.0
      weights.each { |weight| sum += weight * @zero }
      if amount > 3.0
        @best += sum + 1.0
      else
        @best += 1.0
      end
      raise ArgumentError, "too far" if @best > @most
    end
  end

  def people(count, seed, heavy: [])
    random = Random.new(seed)
    places = Array.new(7) { TurnsPlace.new(random.rand * 50, random.rand * 50) }
    [places, Array.new(count) { |i| TurnsVisitor.new(random.rand * 50, random.rand * 50, heavy.include?(i) ? 1000 + i : random.rand(100)) }]
  end

  def states((places, visitors)) = [places.map(&:state), visitors.map(&:state)]

  it "look several at a time" do
    places, visitors = people(50, 1)
    code = Ikra.explain { visitors.peach(backend: :cpu) { |visitor| visitor.visit(places, 999) } }.sections.last.code(:cpu)
    expect(code).to include "jobs at once that follow each other"
  end

  on_every_backend do
    it "change them as one after the other would" do
      [1, 3, 15, 16, 257, 1001].each do |count|
        expected, found = people(count, count), people(count, count)
        2.times do
          expected.last.each { |visitor| visitor.visit(expected.first, 999) }
          found.last.peach(backend: backend) { |visitor| visitor.visit(found.first, 999) }
        end
        expect(states(found)).to eq states(expected)
      end
    end

    it "do so in several ticks" do
      expected, found = people(100, 2), people(100, 2)
      expected.last.each { |visitor| 3.times { visitor.visit(expected.first, 999) } }
      found.last.peach(3, backend: backend) { |visitor| visitor.visit(found.first, 999) }
      expect(states(found)).to eq states(expected)
    end

    it "raise what is first of all ticks, whoever of a group that is" do
      weights = [2.0, 1.0].cycle.take(40)
      [true, false].each do |double|
        found = Array.new(64) { |i| TurnsCounter.new({ 40 => 3.5, 41 => 1.5 }.fetch(i, 1000.0)) }
        amount = double ? 5.0 : 1.0
        expect { found.peach(5, backend: backend) { |counter| counter.count(weights, amount) } }
          .to raise_error(ArgumentError, "too far") { |error| expect([error.ikra.index, error.ikra.tick]).to eq([41, 1]) }
        expect(found.map(&:best)).to all(eq(0.0))
      end
    end

    it "raise what the first would have raised, and change nothing" do
      [[0], [1], [42], [42, 44], [41, 43], [3, 90], [98, 99], [99]].each do |heavy|
        found, before = people(100, 3, heavy: heavy), states(people(100, 3, heavy: heavy))
        expect { found.last.peach(backend: backend) { |visitor| visitor.visit(found.first, 999) } }
          .to raise_error(ArgumentError, "#{1000 + heavy.first} is too much") { |error| expect(error.ikra.index).to eq heavy.first }
        expect(states(found)).to eq before
      end
    end
  end
end
