# frozen_string_literal: true

RSpec.describe Ikra::Buffer do
  dtypes = { i64: [-(2**63), 2**63 - 1], i32: [-(2**31), 2**31 - 1], u8: [0, 255], f64: [-1.5, 1e300], f32: [0.5, -2.0], bool: [true, false] }

  it "knows the kind of elements, and takes many as it takes few" do
    kinds = { [1, 2**70] => :i64, [0.5, 1e300, 0.0] => :f64, [true, false] => :bool, [1, 0.5] => nil, [] => nil, [nil] => nil, [[1]] => nil, [1r] => nil }
    expect(kinds.keys.map { |list| described_class.kind(list) }).to eq(kinds.values)
    many = Array.new(50_000) { |i| i.even? ? i * 0.25 : 1e200 * i }
    expect([described_class.kind(many), described_class.kind([*many, 1]), described_class.from_list(:f64, many).to_list]).to eq([:f64, nil, many])
    expect(described_class.from_list(:i64, many.map { |x| x % 1e9 }).to_list).to eq(many.map { |x| (x % 1e9).to_i })
    expect { described_class.from_list(:u8, [*[7] * 49_000, -1, 300]) }.to raise_error(RangeError, "-1 at index 49000 is out of range of u8")
    expect { described_class.from_list(:f64, [*many, "x", nil]) }.to raise_error(TypeError, /at index 50000/)
  end

  it "gives back what it was given" do
    dtypes.each do |dtype, list|
      buffer = described_class.from_list(dtype, list)
      expect([buffer.to_list, buffer.dtype, buffer.size, buffer[1]]).to eq([list, dtype, 2, list[1]])
      expect(described_class.from_bytes(dtype, buffer.to_bytes).to_list).to eq(list)
      expect(buffer.to_list(1, 1)).to eq([list[1]])
    end
  end

  it "is zero, and nowhere, until somebody looks" do
    buffer = described_class.new(:i32, 3)
    expect([buffer.where, buffer.to_list, buffer.where]).to eq([nil, [0, 0, 0], :host])
  end

  it "gives its contents to one that it succeeds, and is freed" do
    array = described_class.from_list(:i64, [1, 2])
    later = described_class.from_list(:i64, [3, 4])
    copy = array.copy
    later.succeed(array)
    expect([array.to_list, copy.to_list, later.freed?]).to eq([[3, 4], [1, 2], true])
    expect { later.succeed(array) }.to raise_error(RuntimeError, "this array was freed")
    expect { described_class.new(:f64, 2).succeed(array) }.to raise_error(ArgumentError, "contents of another form")
    expect(array.to_list).to eq([3, 4])
  end

  it "names the element that does not fit" do
    expect { described_class.from_list(:u8, [1, 256]) }.to raise_error(RangeError, "256 at index 1 is out of range of u8")
    expect { described_class.from_list(:i64, [2**63]) }.to raise_error(RangeError, /at index 0/)
    expect { described_class.from_list(:i64, [1, 2, Float::NAN]) }.to raise_error(FloatDomainError, "NaN at index 2 is no Integer")
    expect { described_class.from_list(:f64, [1, nil]) }.to raise_error(TypeError, "nil at index 1 is no element of f64")
    expect { described_class.new(:f16, 1) }.to raise_error(ArgumentError, /dtype: :f16 is not one of :i64/)
    expect { described_class.new(:f64, -1) }.to raise_error(ArgumentError, /not -1/)
    expect { described_class.from_bytes(:f64, "abc") }.to raise_error(ArgumentError, "3 bytes are no whole number of f64 of 8 bytes")
    expect { described_class.new(:f64, 2)[2] }.to raise_error(IndexError)
    expect { described_class.new(:f64, 2).freeze[0] = 1 }.to raise_error(FrozenError)
  end

  it "copies when one of two is written" do
    buffer = described_class.from_list(:i64, [1, 2])
    copy = buffer.copy
    buffer[0] = 7
    copy[1] = 9
    expect([buffer.to_list, copy.to_list]).to eq([[7, 2], [1, 9]])
  end

  it "cannot be used once it was freed" do
    buffer = described_class.new(:i64, 2)
    buffer.free
    expect([buffer.freed?, buffer.inspect]).to eq([true, "#<Ikra::Buffer freed>"])
    expect { buffer.to_list }.to raise_error(RuntimeError, "this array was freed")
    expect { [1].pmap(backend: :cpu) { |i| buffer[i] } }.to raise_error(Ikra::CompileError, /an array that was freed/)
  end

  Backends.present.each do |backend|
    it "leaves arrays that a kernel makes beside it as wide as Ruby's (#{backend})" do
      singles = described_class.from_list(:f32, [0.5, 0.25])
      bytes = described_class.from_list(:u8, [7, 8])
      expect([0, 1].pmap(backend: backend) { |i| (i.even? ? singles : [0.1, 0.2])[1] }).to eq([0.25, 0.2])
      expect([0, 1].pmap(backend: backend) { |i| (i.even? ? bytes : [300, i + 70_000])[1] }).to eq([8, 70_001])
    end
  end

  it "says that a part is not within it" do
    buffer = described_class.from_list(:f64, [1.0, 2.0])
    expect { Ikra.__reduce(buffer, :sum, 1, 2, {}) }.to raise_error(IndexError)
    expect { Ikra.__reduce(buffer, :mean, 0, 2, {}) }.to raise_error(ArgumentError, "no reduction is called mean")
  end

  it "is counted" do
    Garbage.uncollected do
      before = Ikra.memory
      buffer = described_class.from_list(:f64, [1.0] * 1000)
      expect(Ikra.memory[:host]).to eq before[:host] + 8000
      buffer.free
      expect(Ikra.memory[:host]).to eq before[:host]
    end
    expect(Ikra.memory.keys).to eq(%i[host device arrays resident reserved limit page_locked kept])
  end
end

RSpec.describe "memory_limit" do
  after { Ikra.config.memory_limit = nil }

  it "is a number of bytes for the process" do
    Ikra.config.memory_limit = 1 << 30
    expect([Ikra.memory[:limit], Ikra.config.memory_limit]).to eq([1 << 30, 1 << 30])
    expect { Ikra.config.memory_limit = 1.5 }.to raise_error(ArgumentError, "memory_limit: 1.5 is not a positive Integer")
    Ikra.config.memory_limit = nil
    expect(Ikra.memory[:limit]).to be_nil
    expect { Ikra.config.memory_limit = -1 }.to raise_error(ArgumentError, "memory_limit: -1 is not a positive Integer")
    expect { [1].pmap(memory_limit: 5) { |x| x } }.to raise_error(ArgumentError, /for the whole process/)
  end

  if Backends.present.include?(:cuda)
    it "makes arrays leave the device, and raises where that does not help" do
      Ikra.config.memory_limit = 8 << 20
      kept = Array.new(10) { |i| Ikra::MDArray.new(1 << 17, backend: :cuda) { |j| i + j * 0.5 } }
      expect(kept.map { |array| array[2] }).to eq(Array.new(10) { |i| i + 1.0 })
      expect(Ikra.memory[:reserved]).to be <= 8 << 20
      expect { Ikra::MDArray.new(2 << 20, backend: :cuda) { |j| j * 0.5 + Ikra.index }.sync }.to raise_error(Ikra::DeviceMemoryError, /memory_limit/)
      expect(kept.first[4]).to eq(2.0)
    end
  end
end
