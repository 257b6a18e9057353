# frozen_string_literal: true

# Consecutive jobs run as one group on the host, and sometimes diverge in a loop. This needs thousands of jobs.
RSpec.describe "objects that go different ways through the same list" do
  class PartingBird
    attr_reader :x, :y, :flock, :near, :sum

    def initialize(random, flock)
      @x = random.rand * 20
      @y = random.rand(50).zero? ? [Float::NAN, Float::INFINITY, -0.0][random.rand(3)] : random.rand * 20
      @calm = random.rand < 0.5
      @flock = flock
      @near = 0
      @sum = 0.0
    end

    def look(birds)
      birds.each do |other|
        next if other.equal?(self)

        dx = @x - other.x
        dy = @y - other.y
        next if dx * dx + dy * dy > 9.0

        @near += 1
        @sum += dx unless dy > 1.0
      end
    end

    def look_at_calm(birds)
      birds.each do |other|
        next if other.calm? && !calm?

        @sum += other.x if (@x - other.x).abs < 2.0 && !(@y >= other.y)
        @near += other.flock == @flock && @x < other.x ? 1 : 2
      end
    end

    def calm? = @calm
  end

  def birds(count, seed)
    random = Random.new(seed)
    Array.new(count) { PartingBird.new(random, random.rand(4)) }
  end

  def shown(birds) = birds.map { |bird| [bird.near, bird.sum.nan? ? :nan : bird.sum] }

  # The block makes the action of each object from the flock.
  def compare(backend, count, seed, &does)
    expected, found = [seed, seed].map { |same| birds(count, same) }
    expected.each(&does.call(expected))
    found.peach(backend:, &does.call(found))
    expect(shown(found)).to eq(shown(expected))
  end

  on_every_backend do
    [1, 7, 2050].each do |count|
      it "come to what each of #{count} comes to alone, where few are near" do
        list = birds(60, 2)
        compare(backend, count, 1) { ->(bird) { bird.look(list) } }
      end
    end

    it "look at each other" do
      compare(backend, 300, 3) { |flock| ->(bird) { bird.look(flock) } }
    end

    it "part by what is true or false of an object, and by what is computed" do
      list = birds(40, 6)
      compare(backend, 2050, 5) { ->(bird) { bird.look_at_calm(list) } }
    end
  end
end
