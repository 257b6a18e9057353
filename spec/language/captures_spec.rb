# frozen_string_literal: true

module Captures
  class Simulation
    attr_reader :steps, :results

    def initialize(gravity)
      @gravity = gravity
      @steps = 0
    end

    def run(runner, values)
      runner.pmap(values) { |v| fall(v) + @gravity }
    end

    def count(runner, values)
      runner.peach(values) { |v| @steps += v }
      self
    end

    def itself_in(runner, values)
      runner.pmap(values) { |v| v > 1 ? self : nil }
    end

    private

    def fall(v) = v * @gravity + offset
    def offset = 100
  end

  class Particle
    attr_accessor :speed

    def initialize(speed)
      @speed = speed
    end
  end
end

RSpec.describe "Captured variables and self" do
  on_every_backend do
    it "is a value of any type" do
      integer = 7
      float = -0.5
      truth = true
      nothing = nil
      symbol = :up
      range = 1..3
      particle = Captures::Particle.new(3)
      expect { |x| x + integer + float + particle.speed + range.last + (truth && symbol == :up ? 100 : nothing.to_i) }.to be_same_as_ruby.over(1, 2.5)
    end

    it "is seen through every enclosing block" do
      outer = 5
      [10].each do |middle|
        inner = middle + 1
        expect { |x| x + outer + middle + inner }.to be_same_as_ruby.over(1)
      end
    end

    it "takes part as the caller's self, with its variables and private methods" do
      expect { |run| Captures::Simulation.new(9.81).run(run, [1, 2.5, -3]) }.to be_same_as_ruby
      expect { |run| Captures::Simulation.new(9).itself_in(run, [1, 2]) }.to be_same_as_ruby
    end

    it "accumulates in self" do
      expect { |run| Captures::Simulation.new(1).count(run, [1, 2, 3]) }.to be_same_as_ruby
    end

    it "sums" do
      expect do |run|
        sum = 100
        count = 0
        run.peach([3, 4, -5]) do |x|
          sum += x
          count += 1 if x > 0
        end
        [sum, count]
      end.to be_same_as_ruby
    end

    it "sums from the second tick on too" do
      expect do |run|
        sum = 0
        run.peach([1, 2, 3], 4) { |x| sum += x }
        sum
      end.to be_same_as_ruby
    end

    it "multiplies, and combines bits" do
      expect do |run|
        product = 2
        all = -1
        any = 0
        odd = 5
        run.peach([3, 4, -5]) do |x|
          product *= x
          all &= x
          any |= x
          odd ^= x
        end
        [product, all, any, odd]
      end.to be_same_as_ruby
    end

    it "finds the least and the greatest" do
      expect do |run|
        least = 100
        greatest = -100
        other = 0
        run.peach([3, -4, 5, 5]) do |x|
          least = x if x < least
          greatest = x if x > greatest
          other = [other, x * 2].max
        end
        [least, greatest, other]
      end.to be_same_as_ruby
    end

    it "keeps the last value written, in the order of elements" do
      expect do |run|
        last = 0
        kind = nil
        run.peach([3, 8, 2, 7, 1]) do |x|
          last = x * 10 if x > 2
          kind = x.even? ? :even : :odd
        end
        [last, kind]
      end.to be_same_as_ruby
    end

    it "keeps the last value of the last tick that wrote one" do
      expect do |run|
        last = nil
        run.peach([3, 8, 2], 3) { |x| last = x + 0.5 if x > 2 }
        last
      end.to be_same_as_ruby
    end

    it "stays as it is where no element writes it" do
      expect do |run|
        last = :nothing
        sum = 5
        run.peach([1, 2]) do |x|
          last = x if x > 10
          sum += x if x > 10
        end
        [last, sum]
      end.to be_same_as_ruby
    end

    it "sees a variable that is only mentioned" do
      unused = 1
      expect { |x| unused; x }.to be_same_as_ruby.over(1)
    end

    it "takes what is assigned only further down for a variable of the block's own" do
      results = [1, 2].pmap(backend:) do |x|
        later = x * 2
        begin
          later += 1 / (x - 1)
        rescue ZeroDivisionError => problem
          later += problem.message.size
        end
        [later].each { |y| deeper = y + 1; later = deeper }
        later
      end
      expect([results, binding.local_variable_get(:later), binding.local_variable_get(:deeper)]).to eq([[15, 6], nil, nil])
      later = problem = deeper = :own
      expect([later, problem, deeper]).to all(eq(:own))
    end

    it "raises where a sum leaves 64 bits in the end, and only then" do
      sum = Values::MAX - 5
      expect { [3, 3].peach(backend:) { |x| sum += x } }.to raise_error(Ikra::IntegerOverflow)
      expect(sum).to eq(Values::MAX - 5)
      [3, 3, -4].peach(backend:) { |x| sum += x }
      expect(sum).to eq(Values::MAX - 3)
    end

    it "sums Floats alike on every backend" do
      values = (1..1000).map { |i| 1.0 / i }
      sum = 0.5
      values.peach(backend:) { |x| sum += x }
      expect(sum).to be_within(1e-9).of(0.5 + values.sum)
      reference = 0.5
      values.peach(backend: :reference) { |x| reference += x }
      expect(sum).to eq(reference)
    end
  end
end
