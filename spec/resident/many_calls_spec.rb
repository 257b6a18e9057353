# frozen_string_literal: true

# An object for many calls, which follow each other faster than a device runs them.
class OftenCalled
  attr_accessor :x, :v, :seen

  def initialize(number)
    @x = number.to_f
    @v = 1.0 + number / 8.0
    @seen = 0.0
  end

  def step(by) = @x += (@v *= 0.999) * by
end

class OftenCalledToo < OftenCalled
  def step(by) = @x -= (@v *= 1.001) * by
end

# One that may raise. It has a variable that the others lack, and does not always change it.
class OftenCounted < OftenCalled
  def initialize(number)
    super
    @count = number
  end

  def step(by)
    super
    @count += by.to_i + 1
    return if @x > 900.0

    @seen = @v if @count.odd?
  end
  attr_reader :count
end

# Consecutive calls may become one launch of several ticks (ext/ikra-core/src/backend/cuda/queue/ticks.rs). This must
# not show.
RSpec.describe "Ikra.resident with many calls" do
  extend MDArrays::Groups

  def some = Array.new(300) { |i| (i % 3 == 1 ? OftenCalledToo : OftenCalled).new(i) }

  def state(list) = list.map { |one| [one.x, one.v, one.seen] }

  on_all_backends do
    # Does the same with kernels in a scope and in plain Ruby. A frequent call is compiled once more in the background,
    # which takes a while.
    def both(warm: 120)
      resident, plain = some, some
      [[resident, :peach], [plain, :each]].each do |list, method|
        calls = lambda do
          warm.times { list.public_send(method) { |one| one.step(0.25) } }
          sleep 0.3 if method == :peach
          yield list, ->(&block) { list.public_send(method, &block) }
        end
        method == :peach ? Ikra.resident(list, &calls) : calls.call
      end
      expect(state(resident)).to eq(state(plain))
    end

    it "does what Ruby does, however many calls follow each other" do
      resident, plain = some, some
      1000.times { plain.each { |one| one.step(0.25) } }
      Ikra.resident(resident) do
        1000.times do |i|
          resident.peach { |one| one.step(0.25) }
          sleep 0.2 if i == 100
        end
      end
      expect(state(resident)).to eq(state(plain))
    end

    it "leaves everything as it was if a call raises, however many did not" do
      resident, plain = Array.new(2) { Array.new(4000) { |i| [OftenCalled, OftenCounted, OftenCalledToo][i % 3].new(i) } }
      far = [0.25, 1.5, 0.5, 1e19, 0.75, 2.25, 1e19, 0.25, 0.5]
      move = ->(by) { resident.peach { |one| one.step(by) } }
      Ikra.resident(resident, arrays: :fixed) do
        # 1e19 is no Integer of 64 bits
        far.each { |by| by > 1e18 ? expect { move.call(by) }.to(raise_error(RangeError)) : move.call(by) }
      end
      far.reject { |by| by > 1e18 }.each { |by| plain.each { |one| one.step(by) } }
      counts = ->(list) { list.grep(OftenCounted).map(&:count) }
      expect([state(resident), counts.call(resident)]).to eq([state(plain), counts.call(plain)])
    end

    it "shows whoever looks what all calls before did" do
      seen = []
      both do |list, each|
        found = []
        500.times do |i|
          each.call { |one| one.step(0.25) }
          found << list[i % list.size].x if i % 37 == 5
        end
        seen << found
      end
      expect(seen.first).to eq(seen.last)
    end

    it "sees what Ruby changes between two calls" do
      both do |list, each|
        400.times do |i|
          each.call { |one| one.step(0.25) }
          list[i % list.size].v += 0.5 if i % 61 == 7
        end
      end
    end

    it "runs each call with the value that a variable had then" do
      both do |_, each|
        by = 0.25
        300.times do |i|
          by += 0.125 if (i % 20).zero?
          each.call { |one| one.step(by) }
        end
      end
    end

    it "runs blocks in their order" do
      both do |_, each|
        200.times do |i|
          each.call { |one| one.step(0.25) }
          each.call { |one| one.seen += one.x } if i % 5 < 2
        end
      end
    end

    it "numbers the ticks of each call from 0" do
      list = some
      Ikra.resident(list) do
        300.times do |i|
          list.peach { |one| one.seen += 1.0 + Ikra.tick * 100.0 }
          sleep 0.2 if i == 100
        end
      end
      expect(list.map(&:seen)).to all(eq(300.0))
    end

    it "runs each of many maps, which change what they map" do
      list = some
      Ikra.resident(list) do
        300.times do |i|
          list.pmap { |one| one.seen += 1.0 }
          sleep 0.2 if i == 100
        end
      end
      expect(list.map(&:seen)).to all(eq(300.0))
    end

    it "draws other numbers in each call" do
      drawn = [true, false].map do |stays|
        list = some
        Ikra.srand(7)
        calls = -> { 150.times { list.peach { |one| one.x += rand } } }
        stays ? Ikra.resident(list, &calls) : calls.call
        list.map(&:x)
      end
      expect(drawn.first).to eq(drawn.last)
    end

    it "leaves what was called before one that raises" do
      resident, plain = some, some
      200.times { plain.each { |one| one.step(0.25) } }
      zero = 0
      Ikra.resident(resident) do
        200.times { resident.peach { |one| one.step(0.25) } }
        expect { resident.peach { |one| one.seen = (1 / zero).to_f } }.to raise_error(ZeroDivisionError)
      end
      expect(state(resident)).to eq(state(plain))
    end
  end
end
