# frozen_string_literal: true

module Ticks
  class Cell
    attr_accessor :value, :left, :right, :trace

    def initialize(value)
      @value = value
      @trace = 0
    end

    def own_step
      @value = @value * 3 + Ikra.tick
      @trace = @trace * 2 + Ikra.index
    end

    def sum_around
      @trace = @left.value + @right.value
    end

    def settle
      @value = @trace % 1000
    end
  end

  def self.ring(size)
    cells = Array.new(size) { |i| Cell.new(i) }
    cells.each_with_index { |cell, i| cell.left, cell.right = cells[i - 1], cells[(i + 1) % size] }
  end
end

# Blocks over numbers of elements of Arrays that all elements share. In the first ones each keeps to its own rows.
# `t` counts the ticks.
module FlatTicks
  SIZE = 40
  FUSED = {
    "own rows" => ->(x, v, _, t) { ->(i) { x[i] += (v[i] = (v[i] * 5 + (t[i] += 1)) % 97) } },
    "own rows under a branch" => ->(x, v, w, _) { ->(i) { v[i].odd? ? x[i] += w[i - 1] : v[i] = x[i] / 3 } },
    "own rows, two of which raise" => ->(x, v, _, _) { ->(i) { x[i] = 1000 / ((v[i] -= 20 - i) + 30) } },
    "own rows of Floats and nil" => ->(x, v, _, t) { ->(i) { t[i] = t[i].nil? || x[i] > 50 ? v[i] * 0.5 : nil } }
  }.freeze
  APART = {
    "neighbours" => ->(x, v, _, t) { ->(i) { (t[i] += 1).odd? ? x[i] = v[i - 1] + v[(i + 1) % SIZE] : v[i] = x[i] % 1000 } },
    "rows in another order" => ->(x, v, w, t) { ->(i) { (t[i] += 1).odd? ? x[w[i]] = v[i] * 2 : v[i] = x[i] + 1 } },
    "one Array at two places" => ->(x, _, _, t) { ->(i) { (t[i] += 1).odd? ? x[i] += 1 : x[i < SIZE - 1 ? i + 1 : 0] *= 2 } },
    "two Arrays that one name has" => ->(x, v, _, t) { ->(i) { ((t[i] += 1).odd? ? x : v)[i] = (t[i].odd? ? v : x)[-1 - i] + 1 } }
  }.freeze

  def self.arrays = [Array.new(SIZE) { |i| i * 37 % 101 }, Array.new(SIZE) { |i| i * 53 % 89 }, Array.new(SIZE) { |i| i * 7 % SIZE }, [0] * SIZE]

  # What the block's Arrays are after the ticks, and what it raised. Then they are as before.
  def self.after(maker)
    arrays = self.arrays
    yield maker.call(*arrays)
    arrays
  rescue ZeroDivisionError => e
    e.message
  end
end

RSpec.describe "peach with ticks" do
  { FlatTicks::FUSED => true, FlatTicks::APART => false }.each do |makers, fused|
    makers.each do |name, maker|
      it "gives over #{name} of Arrays what a tick after the other gives, #{fused ? "in one launch" : "each in a launch"}" do
        [0...FlatTicks::SIZE, 7...FlatTicks::SIZE - 1].each do |range|
          plain = FlatTicks.after(maker) { |block| 6.times { range.each(&block) } }
          Backends.present.each do |backend|
            expect(FlatTicks.after(maker) { |block| range.peach(6, backend: backend, &block) }).to eq(plain), backend.to_s
          end
        end
        told = nil
        FlatTicks.after(maker) { |block| told = Ikra.explain { (0...FlatTicks::SIZE).peach(2, &block) }.sections.first }
        expect(told).to have_attributes(fused?: fused, apart: fused ? [] : all(match(/the elements of/)))
      end
    end
  end

  on_every_backend do
    it "gives its receiver" do
      numbers = [1, 2]
      expect(numbers.peach(3, backend:) { |x| x }).to equal(numbers)
      range = 1..3
      expect(range.peach(backend:) { |x| x }).to equal(range)
    end

    it "tells the tick and the index" do
      cells = Array.new(4) { Ticks::Cell.new(1) }
      cells.peach(3, backend:) { |cell| cell.own_step }
      expect(cells.map(&:value)).to eq([32] * 4)
      expect(cells.map(&:trace)).to eq([0, 7, 14, 21])
      expect([5, 6, 7].pmap(backend:) { |x| x * 10 + Ikra.index }).to eq([50, 61, 72])
      expect((5..7).pmap(backend:) { |x| x * 10 + Ikra.index + Ikra.tick }).to eq([50, 61, 72])
    end

    it "lets every element see the last tick of the others" do
      expect do |run|
        cells = Ticks.ring(50)
        4.times do
          run.peach(cells) { |cell| cell.sum_around }
          run.peach(cells) { |cell| cell.settle }
        end
        cells
      end.to be_same_as_ruby
    end

    it "finishes a tick before the next begins" do
      parallel = Ticks.ring(60)
      parallel.peach(10, backend:) { |cell| Ikra.tick.even? ? cell.sum_around : cell.settle }
      plain = Ticks.ring(60)
      10.times { |tick| plain.each { |cell| tick.even? ? cell.sum_around : cell.settle } }
      expect(Graph.of(parallel)).to eq(Graph.of(plain))
    end

    it "gives after many ticks what one call after the other gives" do
      step = ->(run, cells) { run.peach(cells, 1) { |cell| cell.value = cell.value * 5 % 97 } }
      expect do |run|
        cells = Ticks.ring(10)
        7.times { step.call(run, cells) }
        run.peach(cells, 300) { |cell| cell.value = cell.value * 5 % 97 }
      end.to be_same_as_ruby
    end

    it "does nothing in no ticks, and nothing with no elements" do
      expect { |run| run.peach(Ticks.ring(3), 0) { |cell| cell.value = 100 } }.to be_same_as_ruby
      expect { |run| run.peach([], 5) { |cell| cell.value = 100 } }.to be_same_as_ruby
    end

    it "counts what all ticks add" do
      total = 0
      (1..100).peach(10, backend:) { |x| total += x * (Ikra.tick + 1) }
      expect(total).to eq(5050 * 55)
    end
  end

  it "does not know tick and index outside of a section" do
    expect { Ikra.tick }.to raise_error(RuntimeError, /inside the block/)
    expect { Ikra.index }.to raise_error(RuntimeError, /inside the block/)
  end
end
