# frozen_string_literal: true

# A number of its own, which adds as numbers do.
class Amount
  attr_reader :cents

  def initialize(cents)
    @cents = cents
  end

  def +(other) = Amount.new(@cents + other.cents)
end

RSpec.describe "preduce, pscan, psum" do
  sizes = [0, 1, 2, 31, 32, 33, 255, 256, 257, 1000]

  it "combines as inject does, in order" do
    sizes.each do |size|
      list = Array.new(size) { |i| (i * 7919) % 101 - 50 }
      expect(list).to(do_as_ruby(:reduce) { |a, b| a + b })
      expect(list).to(do_as_ruby(:inject, 7) { |a, b| a > b ? a : b })
      # associative, and does not commute: the first and the last
      pairs = list.map { |x| [x, x] }
      expect(pairs).to(do_as_ruby(:reduce) { |a, b| [a[0], b[1]] })
    end
  end

  it "combines many in the same way on each backend" do
    list = Array.new(100_000) { |i| (i % 1000) / 7.0 }
    values = backends.map { |backend| list.preduce(backend: backend) { |a, b| a + b } }
    expect(values.uniq.size).to eq 1
    expect(values.first).to be_within(1e-6).of(list.sum)
    expect((1..1_000_000).preduce(backend: :cpu) { |a, b| a + b }).to eq 500_000_500_000
    expect((1..300).preduce(0.5) { |a, b| a + b }).to eq 45_150.5
  end

  it "applies the start once, gives it for nothing, and nil where there is none" do
    expect([].preduce(5) { |a, b| a + b }).to eq 5
    expect([].preduce { |a, b| a + b }).to be_nil
    expect([3].preduce { |_, _| raise "never" }).to eq 3
    expect([3].preduce(nil) { |a, b| a.nil? ? b : a + b }).to eq 3
  end

  it "takes an operator, alone or after the start" do
    [[], [1], [1, 2, 3], [1.5, 2], [2**62, 2**62, 5], [1r, 2]].each do |list|
      [:+, "*"].each do |operator|
        expect(list).to do_as_ruby(:inject, operator)
        expect(list).to do_as_ruby(:inject, 10, operator)
      end
    end
    expect(1..1000).to do_as_ruby(:inject, :+)
    expect { [1].preduce }.to raise_error(LocalJumpError)
    expect { [1].preduce(1, 2) }.to raise_error(TypeError, "2 is not a symbol nor a string")
    expect { [1].preduce(1, :+, 2) }.to raise_error(ArgumentError)
    expect { [:a, 1].preduce(:+) }.to raise_error(NoMethodError, /undefined method .\+'/)
  end

  it "combines objects by their operator and by a block, into new objects" do
    amounts = Array.new(1000) { |i| Amount.new(i) }
    expect(amounts.preduce(:+).cents).to eq 499_500
    expect(amounts.preduce(Amount.new(1)) { |a, b| a + b }.cents).to eq 499_501
    expect(amounts.preduce { |a, b| a.cents > b.cents ? a : b }).to equal amounts.last
  end

  it "accumulates as often as inject calls the block" do
    calls = 0
    (1..1000).preduce do |a, b|
      calls += 1
      a + b
    end
    expect(calls).to eq 999
  end

  it "tries on demand whether a block is associative" do
    expect((1..1000).preduce(check: :associative) { |a, b| a + b }).to eq 500_500
    expect([0.1, 0.2, 0.3, 1e10].preduce(check: :associative) { |a, b| a + b }).to eq [0.1, 0.2, 0.3, 1e10].sum.round(1)
    expect((1..300).map { |x| [x, x] }.pscan(check: :associative) { |a, b| [a[0], b[1]] }.last).to eq [1, 300]
    expect([1, 2].preduce(check: :associative) { |a, b| a - b }).to eq(-1)
    expect(Array.new(9) { |i| Amount.new(i) }.preduce(check: :associative) { |a, b| a + b }.cents).to eq 36
    expect { [5, 3, 2].preduce(check: :associative) { |a, b| a - b } }
      .to raise_error(ArgumentError, "the block of preduce is not associative: of 5, 3, 2 it makes 0 from the left and 4 from the right")
    expect { (1..999).pscan(check: :associative) { |a, b| a * 2 + b } }.to raise_error(ArgumentError, /not associative/)
    expect { [1].preduce(check: :nothing) { |a, b| a + b } }.to raise_error(ArgumentError, /check: nothing is not one of/)
  end

  it "ends by break, and raises what the block raises" do
    expect((1..1000).preduce { |_, _| break :left }).to eq :left
    expect { [1, 0].preduce { |a, b| a / b } }.to raise_error(ZeroDivisionError, "divided by 0")
    expect { [2**62, 2**62].preduce { |a, b| a + b } }.to raise_error(Ikra::IntegerOverflow)
    expect { [1, nil].preduce { |a, b| a + b } }.to raise_error(TypeError, "nil can't be coerced into Integer")
  end

  it "scans: all values on the way" do
    sizes.each do |size|
      list = Array.new(size) { |i| (i * 7919) % 101 - 50 }
      sums = list.each_with_object([]) { |x, all| all << (all.last || 0) + x }
      expect(backends.map { |backend| list.pscan(backend: backend) { |a, b| a + b } }).to all(eq(sums))
      expect(list.pscan(:+)).to eq sums
      expect(list.pscan(100) { |a, b| a + b }).to eq(sums.map { |x| x + 100 })
      expect(list.pscan(100, :+)).to eq(sums.map { |x| x + 100 })
    end
  end

  it "scans to what preduce gives, to the last bit" do
    [1, 2, 256, 257, 300, 70_000].each do |size|
      list = Array.new(size) { |i| 1.0 / (i + 1) }
      expect(list.pscan { |a, b| a + b }.last).to eq(list.preduce { |a, b| a + b })
      expect(list.pscan(:+).last).to eq(list.preduce(:+))
    end
  end

  it "scans without commuting, objects, and by a block that looks at nothing" do
    pairs = (1..600).map { |x| [x, x] }
    expect(pairs.pscan { |a, b| [a[0], b[1]] }).to eq((1..600).map { |x| [1, x] })
    expect(Array.new(300) { |i| Amount.new(i) }.pscan { |a, b| a + b }.map(&:cents).last).to eq 44_850
    expect([1, 2, 3].pscan { 5 }).to eq [1, 5, 5]
    expect([].pscan(3) { |a, b| a + b }).to eq []
  end

  it "sums as Ruby does, exactly and compensated" do
    [[], [1], [0.1] * 10, [3, 0.1, 0.2], [2**62, 2**62], [1e100, 1.0, -1e100], [1r, 2.5]].each do |list|
      expect(list).to do_as_ruby(:sum)
      expect(list).to do_as_ruby(:sum, 1.5)
      expect(list).to(do_as_ruby(:sum) { |x| x * 2 }) unless list.include?(2**62)
    end
    expect(1..1000).to(do_as_ruby(:sum) { |x| x * x })
    expect(Array.new(1000) { |i| Amount.new(i) }).to do_as_ruby(:sum, &:cents)
    list = Array.new(1000) { |i| (i * 7919) % 101 }
    expect(list.preduce(:+)).to eq list.psum
  end
end
