# frozen_string_literal: true

# What is taken for granted of captured Integers and of where Ranges begin: that they are small and not negative, as long as they are.
module SmallIntegers
  # What a scope keeps.
  Point = Struct.new(:x, :y)

  class << self
    def divided(by, factor) = (0...4).pmap { |i| (i * factor).divmod(by) }
    def moved(by) = (0...3).pmap { |i| i + by }
    def counted(by) = (0...3).pmap { |i| i + by + by }
    def squares(from) = (from...from + 3).pmap { |i| i * i }
  end
end

RSpec.describe "Small Integers" do
  it "gives Ruby's results when captured ones grow, shrink and come back" do
    values = [[3, 2], [3, 2**40], [-3, -2], [1 << 35, 1 << 60], [-1, 1 << 61], [5, 7], [2**29 - 1, 2**29 - 1], [2**29, 2**29 - 1],
              [0x7fff_ffff, 0x7fff_ffff], [0x8000_0000, 1]]
    values.each do |by, factor|
      expect(SmallIntegers.divided(by, factor)).to eq((0...4).map { |i| (i * factor).divmod(by) })
    end
    expect { SmallIntegers.divided(0, 1) }.to raise_error(ZeroDivisionError)
  end

  it "still notices what is beyond 64 bits" do
    expect(SmallIntegers.moved(5)).to eq([5, 6, 7])
    expect { SmallIntegers.moved(2**63 - 1) }.to raise_error(Ikra::IntegerOverflow)
    expect(SmallIntegers.moved(-7)).to eq([-7, -6, -5])
    expect(SmallIntegers.squares(0)).to eq([0, 1, 4])
    expect { SmallIntegers.squares(2**40) }.to raise_error(Ikra::IntegerOverflow)
  end

  it "gives Ruby's results for Ranges that begin anywhere" do
    [0, 5, -2, 2**29 - 1, 2**29, 2**31 - 1, 2**31, 0].each do |from|
      expect(SmallIntegers.squares(from)).to eq((from...from + 3).map { |i| i * i })
    end
  end

  it "gives Ruby's results where objects stay on the device" do
    points = -> { Array.new(100) { |i| SmallIntegers::Point.new(i, 50 - i) } }
    factors = [5, 2**40, -7]
    wanted, list = points.call, points.call
    factors.each { |by| wanted.each { |o| o.x += by * o.y } }
    Ikra.resident(list) { factors.each { |by| list.peach { |o| o.x += by * o.y } } }
    expect(list).to eq(wanted)
  end

  it "compiles once for values of one size, and again for a greater one" do
    counts = [5, 6, 2**29 - 1, -1, 2**40, -9].map { |by| Ikra.profile { SmallIntegers.counted(by) }.phases[:compile].positive? }
    expect(counts).to eq([true, false, false, true, false, false])
  end
end
