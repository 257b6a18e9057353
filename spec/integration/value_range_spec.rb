# frozen_string_literal: true

# Value-range assumptions. Captured Integers, and the beginnings of Ranges, are assumed to be in [0, 2^29).
# Integers that a block reads from arrays and objects are assumed to be in [0, 2^29), and in ±2^29 once one of them is
# negative. All this holds until a value shows otherwise.
module ValueRange
  # An object that a scope keeps.
  Point = Struct.new(:x, :y)

  class << self
    def divided(by, factor) = (0...4).pmap { |i| (i * factor).divmod(by) }
    def moved(by) = (0...3).pmap { |i| i + by }
    def counted(by) = (0...3).pmap { |i| i + by + by }
    def squares(from) = (from...from + 3).pmap { |i| i * i }
    # Products of elements, of values that objects hold, and of elements of their arrays.
    def products(list) = list.pmap { |x| x * x }
    def areas(points) = points.pmap { |point| point.x * point.y }
    def norms(rows) = rows.pmap { |row| row.sum { |x| x * x } }
    def norm(list) = (0...2).pmap { |i| list[i] * list[i] + i }
    # What is computed in another way for Integers that are not negative.
    def parts(list) = list.pmap { |x| [x / 7, x % 7, -x % 7, x.abs, x >> 2, x.clamp(0, 9), x < 0] }
    def grid(points) = points.pmap { |point| (point.x - 1) % point.y * point.y + (point.x + 1) % point.y }
  end
end

RSpec.describe "Value-range assumptions" do
  it "gives Ruby's results when captured ones grow, shrink and come back" do
    values = [[3, 2], [3, 2**40], [-3, -2], [1 << 35, 1 << 60], [-1, 1 << 61], [5, 7], [2**29 - 1, 2**29 - 1], [2**29, 2**29 - 1],
              [0x7fff_ffff, 0x7fff_ffff], [0x8000_0000, 1]]
    values.each do |by, factor|
      expect(ValueRange.divided(by, factor)).to eq((0...4).map { |i| (i * factor).divmod(by) })
    end
    expect { ValueRange.divided(0, 1) }.to raise_error(ZeroDivisionError)
  end

  it "still notices what is beyond 64 bits" do
    expect(ValueRange.moved(5)).to eq([5, 6, 7])
    expect { ValueRange.moved(2**63 - 1) }.to raise_error(Ikra::IntegerOverflow)
    expect(ValueRange.moved(-7)).to eq([-7, -6, -5])
    expect(ValueRange.squares(0)).to eq([0, 1, 4])
    expect { ValueRange.squares(2**40) }.to raise_error(Ikra::IntegerOverflow)
  end

  it "gives Ruby's results for Ranges that begin anywhere" do
    [0, 5, -2, 2**29 - 1, 2**29, 2**31 - 1, 2**31, 0].each do |from|
      expect(ValueRange.squares(from)).to eq((from...from + 3).map { |i| i * i })
    end
  end

  it "gives Ruby's results where objects stay on the device" do
    points = -> { Array.new(100) { |i| ValueRange::Point.new(i, 50 - i) } }
    factors = [5, 2**40, -7]
    wanted, list = points.call, points.call
    factors.each { |by| wanted.each { |o| o.x += by * o.y } }
    Ikra.resident(list) { factors.each { |by| list.peach { |o| o.x += by * o.y } } }
    expect(list).to eq(wanted)
  end

  it "compiles once for values of one size, and again for a greater one" do
    counts = [5, 6, 2**29 - 1, -1, 2**40, -9].map { |by| Ikra.profile { ValueRange.counted(by) }.phases[:compile].positive? }
    expect(counts).to eq([true, false, false, true, false, false])
  end

  it "gives Ruby's results, and notices what is beyond 64 bits, when those of arrays and objects grow and shrink" do
    lists = [[3, -4], [2**29 - 1, -2**29], [2**29, -2**29 - 1], [2**30, -2**30], [1, 2]]
    lists.each do |list|
      expect(ValueRange.products(list)).to eq(list.map { |x| x * x })
      expect(ValueRange.areas([ValueRange::Point.new(*list)])).to eq([list.inject(:*)])
      expect(ValueRange.norms([list, list.reverse])).to eq([list.sum { |x| x * x }] * 2)
      expect(ValueRange.norm(list)).to eq(list.each_with_index.map { |x, i| x * x + i })
    end
    [2**32, -2**40, 2**62].each do |large|
      expect { ValueRange.products([1, large]) }.to raise_error(Ikra::IntegerOverflow)
      expect { ValueRange.areas([ValueRange::Point.new(large, large)]) }.to raise_error(Ikra::IntegerOverflow)
      expect { ValueRange.norms([[1], [large]]) }.to raise_error(Ikra::IntegerOverflow)
      expect { ValueRange.norm([large, 1]) }.to raise_error(Ikra::IntegerOverflow)
    end
    expect(ValueRange.products([5])).to eq([25])
  end

  it "gives Ruby's results for divisions and signs when Integers become negative, and when they no longer are" do
    points = [ValueRange::Point.new(0, 5), ValueRange::Point.new(4, 5)]
    values = [[[0, 5], [4, 5]], [[0, 5], [-4, 5]], [[7, 5], [4, -5]], [[-3, -2], [3, 2]], [[2**40, 3], [-1, 3]], [[0, 5], [4, 5]]]
    values.each do |pairs|
      points.zip(pairs) { |point, (x, y)| point.x, point.y = x, y }
      list = pairs.flatten
      parts = list.map { |x| [x / 7, x % 7, -x % 7, x.abs, x >> 2, x.clamp(0, 9), x < 0] }
      expect(ValueRange.parts(list)).to eq(parts)
      expect(ValueRange.grid(points)).to eq(pairs.map { |x, y| (x - 1) % y * y + (x + 1) % y })
    end
    points[1].y = 0
    expect { ValueRange.grid(points) }.to raise_error(ZeroDivisionError)
  end

  it "compiles at most twice for the signs of a column" do
    lists = [[1, 2], [3, 4], [5, -6], [7, 8], [-9, 10], [11, 12]]
    counts = lists.map { |list| Ikra.profile { ValueRange.parts(list) }.phases[:compile].positive? }
    expect(counts.count(true)).to be <= 2
  end

  it "looks at what was in range when the block was compiled for it, and is not any more" do
    points = Array.new(20_000) { |i| ValueRange::Point.new(i, 3) }
    3.times { expect(ValueRange.areas(points)).to eq(points.map { |point| point.x * point.y }) }
    points[12_345].x = 2**62
    expect { ValueRange.areas(points + []) }.to raise_error(Ikra::IntegerOverflow)
    expect { ValueRange.areas(points) }.to raise_error(Ikra::IntegerOverflow)
  end

  it "takes nothing for granted of arrays that nobody looks at, nor of objects that stay on the device" do
    small = Ikra::MDArray.new([3, 4])
    expect([ValueRange.norm([3, 4]), ValueRange.norm(small)]).to eq([[9, 17]] * 2)
    expect { ValueRange.norm(Ikra::MDArray.new([2**40, 1])) }.to raise_error(Ikra::IntegerOverflow)
    points = [ValueRange::Point.new(3, 4)]
    Ikra.resident(points) do
      expect(ValueRange.areas(points)).to eq([12])
      points[0].x = 2**62
      expect { ValueRange.areas(points) }.to raise_error(Ikra::IntegerOverflow)
    end
  end
end
