# frozen_string_literal: true

# Loops that neighbouring elements leave after different numbers of repetitions. A processor runs them for several
# elements at once, where there are enough elements.
module Leaving
  POINTS = Array.new(1003) { |i| ((i * 7919) % 1003 / 250.0) - 2.0 }.freeze

  class Solver
    def root(a)
      x = a
      50.times do
        better = 0.5 * (x + a / x)
        return better if (better - x).abs < 1e-12

        x = better
      end
      -1.0
    end
  end
end

RSpec.describe "Loops that elements leave apart" do
  on_every_backend do
    it "end by two conditions" do
      expect(Leaving::POINTS).to map_same_as_ruby { |c|
        x = y = 0.0
        steps = 0
        while steps < 300 && x * x + y * y <= 4.0
          x, y = x * x - y * y + c, 2.0 * x * y + c / 3
          steps += 1
        end
        steps
      }
    end

    it "end by break, with what was found" do
      expect(Leaving::POINTS).to map_same_as_ruby { |c|
        x = 0.25
        found = -1
        200.times do |i|
          x = x * x * 0.75 + c
          if x > 3.0
            found = i
            break
          end
        end
        found + x
      }
    end

    it "end by return from a method" do
      solver = Leaving::Solver.new
      expect(Leaving::POINTS.map { |c| c + 2.5 }).to map_same_as_ruby { |a| solver.root(a) }
    end

    it "stand in other loops" do
      expect(Leaving::POINTS).to map_same_as_ruby { |c|
        sum = 0.0
        4.times do |k|
          x = c + k / 8.0
          n = 0
          until x.abs > 10.0 || n == 40 + k
            x = x * x - 0.8
            n += 1
          end
          sum += x.abs > 10.0 ? n : x
        end
        sum
      }
    end

    it "load what all elements load at their step, and nothing beyond" do
      weights = Array.new(30) { |i| 0.9 + i / 100.0 }
      expect(Leaving::POINTS).to map_same_as_ruby { |c|
        x = c.abs
        i = 0
        while i < weights.size && x < 2.5
          x = x * weights[i] + 0.125
          i += 1
        end
        x + i
      }
    end

    it "load what only some elements may load" do
      weights = Array.new(30) { |i| 0.9 + i / 100.0 }
      expect(Leaving::POINTS).to map_same_as_ruby { |c|
        x = c
        i = 0
        far = (c * 1_000_000_000_000.0).to_i
        far = 3 if c < 0.5
        while i < 25 && far < weights.size
          x = x * weights[far] * 0.5 + x * x * 0.125
          i += 1
        end
        x + i
      }
      expect(Leaving::POINTS).to map_same_as_ruby { |c|
        x = c
        i = 0
        while x.abs < 4.0 && i < 99
          x = x * x * 0.5 + c * 0.25
          x += weights[i] if i < weights.size && x < 0.25
          i += 1
        end
        x + i
      }
    end

    it "raise for an element that is still in the loop" do
      story = lambda do |run, points, limit|
        run.pmap(points) do |c|
          x = c
          i = 0
          while x.abs < 4.0 && i < 20
            x = x * x + 0.125
            raise ArgumentError, "too many" if i > limit

            i += 1
          end
          x
        end
      end
      expect { |run| story.call(run, Leaving::POINTS, 18) }.to be_same_as_ruby
      expect { |run| story.call(run, Leaving::POINTS, 20) }.to be_same_as_ruby
      expect { |run| story.call(run, Leaving::POINTS.select { |c| c > 1.5 } * 4, 18) }.to be_same_as_ruby
    end
  end
end
