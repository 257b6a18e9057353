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

    it "finds the least and the greatest after a NaN, which is neither" do
      nan = Float::NAN
      [[1.0, nan, -2.5], [nan, -2.5], [nan, nan, nan, 0.5, nan], [nan]].each do |list|
        [9.0, 9, nan].each do |start|
          expect do |run|
            least, greatest = start, -start
            below, above = start, -start
            run.peach(list) do |x|
              least = x if x < least
              below = x if below > x
              greatest = x if x > greatest
              above = x if above < x
            end
            [least, below, greatest, above]
          end.to be_same_as_ruby
        end
      end
    end

    it "finds the least of an element's own, and over ticks, after a NaN" do
      expect do |run|
        least = 9.0
        greatest = -9.0
        run.peach([[0.7, Float::NAN, 0.5], [Float::NAN, Float::NAN, 0.1], [Float::NAN]], 2) do |row|
          row.each do |x|
            least = x if x < least
            greatest = x if x > greatest
          end
        end
        [least, greatest]
      end.to be_same_as_ruby
    end

    it "raises for a NaN in a list, which min and max do not compare" do
      expect { |run| most = 1.0; run.peach([2.0, Float::NAN, 3.0]) { |x| most = [x, most].max } }.to be_same_as_ruby
      # Ruby's message names the value that the variable had by then.
      least = 1.0
      expect { [2.0, Float::NAN].peach(backend:) { |x| least = [least, x].min } }.to raise_error(ArgumentError, /\Acomparison of Float with NaN failed/)
      expect(least).to eq 1.0
      expect { |run| l = Float::NAN; run.peach([2.0, 1.0]) { |x| l = [l, x].min } }.to be_same_as_ruby
      expect { |run| l = Float::NAN; run.peach([2, 1]) { |x| l = [x, l].max } }.to be_same_as_ruby
    end

    it "keeps the first of equals in a list, which may be the new one" do
      [[3, [3.0]], [3.0, [3]], [0.0, [-0.0, 0.0, -0.0]], [-0.0, [0.0]], [0, [-0.0, 0.0]]].each do |start, list|
        expect do |run|
          new_most, most, new_least, least, less = [start] * 5
          run.peach(list) do |x|
            new_most = [x, new_most].max
            most = [most, x].max
            new_least = [x, new_least].min
            least = [least, x].min
            less = x if x < less
          end
          [new_most, most, new_least, least, less]
        end.to be_same_as_ruby
        expect { |run| l = start; run.peach([list]) { |row| row.each { |x| l = [x, l].min } }; l }.to be_same_as_ruby
      end
    end

    it "finds the greatest of a list of either order, and by a comparison, in one block" do
      expect do |run|
        most = 2
        run.peach([3, 9, 4]) do |x|
          most = [x, most].max
          more = x + 1
          most = more if more > most
          most = [most, x * 2].max
        end
        most
      end.to be_same_as_ruby
    end

    it "raises as Ruby where there are no bits of a Float" do
      [[1.0, [4, 2]], [1.5, [3]]].each do |start, list|
        expect { |run| l = start; run.peach(list) { |x| l |= x } }.to be_same_as_ruby
        expect { |run| l = start; run.peach(list) { |x| l &= x } }.to be_same_as_ruby
        expect { |run| l = start; run.peach(list) { |x| l ^= x } }.to be_same_as_ruby
        expect { |run| l = start; run.peach(list) { |x| l = x | l } }.to be_same_as_ruby
        expect { |run| l = start; run.peach(list) { |x| l |= x if x > 100 }; l }.to be_same_as_ruby
      end
    end

    it "asks Ruby's own methods where it starts as what kernels do not combine" do
      starts = [nil, true, false, 2**70, 1r, 1i, "a", [7], :a, 1..2, Time.at(0), Values::MAX + 1, Object, {}]
      starts.each do |start|
        [[2, 3], [3.0, 2.0]].each do |list|
          expect { |run| l = start; run.peach(list) { |x| l += x }; l }.to be_same_as_ruby
          expect { |run| l = start; run.peach(list) { |x| l -= x }; l }.to be_same_as_ruby
          expect { |run| l = start; run.peach(list) { |x| l *= x }; l }.to be_same_as_ruby
          expect { |run| l = start; run.peach(list) { |x| l = x + l }; l }.to be_same_as_ruby
          expect { |run| l = start; run.peach(list) { |x| l = x if x < l }; l }.to be_same_as_ruby
          expect { |run| l = start; run.peach(list) { |x| l = x if l > x }; l }.to be_same_as_ruby
          expect { |run| l = start; run.peach(list) { |x| l = x if l < x }; l }.to be_same_as_ruby
          expect { |run| l = start; run.peach(list) { |x| l = [l, x].max }; l }.to be_same_as_ruby
          expect { |run| l = start; run.peach(list) { |x| l = [x, l].min }; l }.to be_same_as_ruby
          expect { |run| l = start; run.peach(list) { |x| l += x if x > 100 }; l }.to be_same_as_ruby
        end
        expect { |run| l = start; run.peach([2, 3]) { |x| l |= x }; l }.to be_same_as_ruby
        expect { |run| l = start; run.peach([2, 3]) { |x| l &= x }; l }.to be_same_as_ruby
        expect { |run| l = start; run.peach([2, 3]) { |x| l ^= x }; l }.to be_same_as_ruby
        expect { |run| l = start; run.peach([2, 3]) { |x| l = x & l }; l }.to be_same_as_ruby
      end
    end

    it "leaves all as it was where Ruby's own method raises" do
      name = "a"
      sum = 0
      expect { [1, 2].peach(backend:) { |x| sum += x; name += x } }.to raise_error(TypeError, "no implicit conversion of Integer into String") { |error|
        expect([error.ikra.index, error.backtrace.first]).to match([0, /captures_spec/])
      }
      expect([sum, name]).to eq([0, "a"])
    end

    it "keeps -0.0 where zeros are subtracted" do
      expect { |run| l = -0.0; run.peach([0, 0]) { |x| l -= x }; l }.to be_same_as_ruby
      expect { |run| l = -0.0; run.peach([0, 0]) { |x| l += x }; l }.to be_same_as_ruby
      expect { |run| l = -0.0; run.peach([2, -2]) { |x| l -= x }; l }.to be_same_as_ruby
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
