# frozen_string_literal: true

# A number class of the program, which adds as numbers do.
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
      # Associative, but not commutative: the first and the last.
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

  it "sums where the block adds numbers of one kind, by one kernel" do
    floats = Array.new(1000) { |i| (i % 89) / 7.0 }
    explanation = Ikra.explain { floats.preduce { |a, b| b + a } }
    expect(explanation.sections.map(&:elements)).to eq [1000]
    expect(explanation.to_s).to include("Reduction: sum").and include("{ |a, b| b + a }")
    [[], [4], [0.25]].each do |start|
      expect(backends.map { |backend| floats.preduce(*start, backend: backend) { |a, b| a + b } }).to all eql(start.sum(floats.psum))
      expect(floats.pscan(*start) { _1 + _2 }.last).to eql(start.sum(floats.psum))
    end
    # As Ruby does, beyond 64 bits.
    many = [2**62] * 300
    expect(many.preduce(1) { |a, b| a + b }).to eq(300 * (2**62) + 1)
    expect((1..100_000).preduce { |a, b| a + b }).to eq(5_000_050_000)
    expect { many.preduce { |a, b| a + b + 0 } }.to raise_error(Ikra::IntegerOverflow)
    expect(many.preduce(overflow: :wrap) { |a, b| a + b }).to eq(0)
    expect([0.1] * 300).not_to(do_as_ruby(:reduce) { |a, b| a + b })
    expect(([0.1] * 300).preduce(precision: :f32) { |a, b| a + b }).to be_within(1e-3).of(30)
  end

  it "leaves to the block that adds what no sum tells" do
    expect(1 / ([-0.0] * 300).preduce { |a, b| a + b }).to eq(-Float::INFINITY)
    [[1, 0.5] * 150, ["ab"] * 0, [1.5] * 256, [Float::INFINITY] * 300].each { |list| expect(list).to(do_as_ruby(:reduce) { |a, b| a + b }) }
    expect([Float::INFINITY, -Float::INFINITY] * 150).to(do_as_ruby(:reduce) { |a, b| a + b })
    expect { ([0.5, nil] * 150).preduce { |a, b| a + b } }.to raise_error(TypeError, /nil/)
    expect { ([$stdout] * 300).preduce { |a, b| a + b } }.to raise_error(Ikra::CompileError, /a, b/)
    expect(([1] + [Amount.new(2)] * 299).preduce { |_, b| b }.cents).to eq 2
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
    expect { [1].preduce(check: :nothing) { |a, b| a + b } }.to raise_error(ArgumentError, /check: :nothing is not one of nil, :races, :associative/)
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

  it "adds what a block gives in the kernel that computes it" do
    [0, 1, 31, 32, 33, 8191, 8192, 8193, 40_000].each do |size|
      list = Array.new(size) { |i| (i * 7919) % 10_007 - 5000 }
      expect(list).to(do_as_ruby(:sum) { |x| x * 3 - 1 })
      expect(list).to(do_as_ruby(:sum, 2**70) { |x| x * 3 - 1 })
      expect(list).to(do_as_ruby(:sum, 0.0) { |x| x * 3 - 1 })
      expect(list).to(do_as_ruby(:sum) { |x| x * 0.25 })
      expect(list).to(do_as_ruby(:sum, 1.5) { |x| x * 0.25 })
      expect(list).to(do_as_ruby(:count) { |x| x > 17 })
    end
    tenths = (1..100_000)
    sums = backends.map { |backend| tenths.psum(backend: backend) { |x| x * 0.1 } }
    expect(sums.uniq.size).to eq 1
    expect(sums.first).to be_within(1e-15 * sums.first).of(tenths.sum { |x| x * 0.1 })
  end

  it "adds beyond 64 bits, and what is not finite, and knows what it cannot add" do
    expect(1..10_000).to(do_as_ruby(:sum) { |x| x + 2**62 })
    expect(1..10_000).to(do_as_ruby(:sum) { |x| -x - 2**62 })
    expect([1.0, 2.0]).to(do_as_ruby(:sum) { |x| x / 0.0 })
    expect([1.0, -1.0].psum { |x| x / 0.0 }).to be_nan
    expect(1 / [-0.0, -0.0].psum { |x| x }).to eq(Float::INFINITY)
    expect([1, 2.5, 3]).to(do_as_ruby(:sum) { |x| x })
    expect([[1], [2]]).to(do_as_ruby(:sum, []) { |x| x })
    expect([1, nil, 2]).to(do_as_ruby(:sum) { |x| x })
    expect([1, 2]).to(do_as_ruby(:sum) { |x| x > 1 })
    expect([1, 2]).to(do_as_ruby(:min_by) { |x| x > 1 })
    expect([1, 0, 2]).to(do_as_ruby(:sum) { |x| 6 / x })
    expect([1, 2, 3].psum { |x| break x if x > 1; x }).to eq 2
    writes = Array.new(9000) { |i| Amount.new(i) }
    expect(writes.psum { |amount| amount.instance_variable_get(:@cents) }).to eq 40_495_500
    count = 0
    expect([[1, 2, 3].psum { |x| count += 1; x }, count]).to eq [6, 3]
  end

  it "finds the elements with the least and the greatest of a block's values in the kernel that computes them" do
    [0, 1, 2, 33, 8193, 20_000].each do |size|
      list = Array.new(size) { |i| [(i * 7919) % 1009, i] }
      %i[min_by max_by].each do |name|
        expect(list).to(do_as_ruby(name) { |x, _| x })
        expect(list).to(do_as_ruby(name) { |x, _| x * -0.5 })
        expect(list).to(do_as_ruby(name) { |x, _| x > 500 ? x : x * 0.5 })
        expect(0...size).to(do_as_ruby(name) { |x| (x - 500).abs })
      end
    end
    [[Float::NAN], [1.0, Float::NAN], [Float::NAN, 1.0], [3.0, 2.0, Float::NAN, 1.0]].each do |list|
      %i[min_by max_by minmax_by].each { |name| expect(list.each_index.to_a).to(do_as_ruby(name) { |i| list[i] }) }
    end
    expect([0.0, -0.0]).to(do_as_ruby(:min_by) { |x| x })
    expect([1, nil]).to(do_as_ruby(:max_by) { |x| x })
    seen = 0
    expect { [1.0, Float::NAN].pmin_by { |x| seen += 1; x } }.to raise_error(ArgumentError, "comparison of Float with 1.0 failed")
    expect(seen).to eq 2
  end

  it "is one kernel, which keeps no values" do
    sections = Ikra.explain do
      [1, 2].psum { |x| x * 2 }
      [1, 2].pcount { |x| x > 1 }
      [1, 2].pmin_by { |x| -x }
      [1, 2.5].psum { |x| x }
    end.sections
    count = Ikra.config.backend == :reference ? 2 : 1
    expect(sections.map { |section| [section.reduction, section.kernels] }).to eq [[:sum, count], [:count, count], [:min, count], [nil, 1]]
  end
end
