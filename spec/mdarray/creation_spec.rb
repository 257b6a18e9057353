# frozen_string_literal: true

RSpec.describe Ikra::MDArray do
  on_quick_backends do
    describe ".new" do
      it "computes elements from their indices", :stress do
        expect(md(4) { |i| i * i }).to same_as([0, 1, 4, 9])
        expect(md(2, 3) { |i, j| i * 10 + j }).to same_as([[0, 1, 2], [10, 11, 12]])
        expect(md(2, 1, 2) { |i, j, k| i + j + k * 0.5 }).to same_as([[[0.0, 0.5]], [[1.0, 1.5]]])
        six = md(2, 2, 2, 2, 2, 1) { |a, b, c, d, e, f| a + 2 * b + 4 * c + 8 * d + 16 * e + f }
        expect(six.to_flat_a).to eq((0...32).map { |n| n.digits(2).each_with_index.sum { |digit, k| digit << (4 - k) } })
        expect(md(2, 2) { |i, j| i == j }).to same_as([[true, false], [false, true]])
        expect(md(3) { 7 }).to same_as([7, 7, 7])
      end

      it "gives long lists in which some numbers are objects of Ruby's, and others are not" do
        [4095, 4096, 4097, 20_000].each do |size|
          integers = Array.new(size) { |i| i % 1000 == 7 ? (2**62) + i : -i }
          floats = Array.new(size) { |i| i % 1000 == 8 ? 1e300 * i : i * -0.25 }
          expect(Ikra::MDArray.new(integers).to_a).to eq(integers)
          expect(Ikra::MDArray.new(floats).to_a).to same_as(floats)
          expect(integers.pmap { |x| x + 1 }).to eq(integers.map { |x| x + 1 })
          expect(floats.pmap { |x| x * 2.0 }).to same_as(floats.map { |x| x * 2.0 })
        end
      end

      it "stores what the block gives as the kind that is asked for" do
        expect(md(2, 2, dtype: :f64) { |i, j| i + j }).to same_as([[0.0, 1.0], [1.0, 2.0]])
        expect(md(3, dtype: :i64) { |i| i * 0.9 - 1.0 }).to same_as([-1, 0, 0])
        expect(md(2, dtype: :f32) { |i| i + 0.1 }).to same_as([0.1, 1.1].map { |x| [x].pack("e").unpack1("e") })
        expect(md(3, dtype: :bool) { |i| i > 1 ? i : nil }).to same_as([false, false, true])
        expect(md(3, dtype: :u8) { |i| i * 127 }).to same_as([0, 127, 254])
      end

      it "sees captured variables, and assigns sums of them" do
        factor = 2.5
        seen = 0
        expect(md(3) { |i| seen += i; i * factor }).to same_as([0.0, 2.5, 5.0])
        expect(seen).to eq(3)
      end

      it "is ended by break" do
        expect(Ikra::MDArray.new(5) { |i| break :left if i == 3; i }).to be(:left)
      end
    end

    it "draws numbers" do
      Ikra.srand(7)
      uniform = described_class.rand(50, 2)
      expect(uniform.to_flat_a).to all(be_between(0.0, 1.0).and(be_a(Float)))
      expect(uniform.to_flat_a.uniq.size).to be > 90
      expect(described_class.rand(100, within: 1..6).to_a.uniq.sort).to eq([1, 2, 3, 4, 5, 6])
      expect(described_class.rand(5, within: 2.0..3.0).to_a).to all(be_between(2.0, 3.0))
      Ikra.srand(7)
      expect(described_class.rand(50, 2)).to eq(uniform)
      normal = described_class.randn(2000, mean: 3.0, deviation: 0.5)
      expect(normal.mean).to be_within(0.06).of(3.0)
      expect(normal.stddev).to be_within(0.06).of(0.5)
    end

    it "draws from what Kernel#rand draws from, or says why not" do
      expect(described_class.rand(50, within: 1..2.5).to_a).to all(be_a(Float).and(be_between(1.0, 2.5)))
      expect { described_class.rand(2, within: 6..1) }.to raise_error(ArgumentError, "within: 6..1 has no numbers")
      expect { described_class.rand(2, within: 1..) }.to raise_error(ArgumentError, "within: 1.. has no end")
      expect { described_class.rand(2, within: "a") }.to raise_error(TypeError, "an object of String is not a number")
      expect { described_class.rand(2, within: 0..2**70) }.to raise_error(RangeError, /\A1180591620717411303424 does not fit i64/)
    end

    it "raises what a block raises that does nothing else", :stress do
      expect { md(2) { raise ArgumentError, "none" }.sync }.to raise_error(ArgumentError, "none")
      expect { md(2, dtype: :i64) { raise ArgumentError, "none" }.sync }.to raise_error(ArgumentError, "none")
      expect { md([1, 2]).map { raise ArgumentError, "none" }.sync }.to raise_error(ArgumentError, "none")
    end

    it "says which element a block's value does not fit" do
      expect { md([[1], [2]]).map(dtype: :i64) { |x| x > 1 ? 1e30 : 0.0 }.sync }.to raise_error(RangeError, /\Aelement \[1, 0\]: 1000000000000000019884624838656 does not fit i64/)
      expect { md(2, dtype: :i32) { 1e30 }.sync }.to raise_error(RangeError, /\Aelement \[0\]: 1000000000000000019884624838656 does not fit i32/)
      %i[i64 i32 u8].each do |dtype|
        expect { md(2, 2, dtype: dtype) { |i, j| i + j > 1 ? Float::NAN : 0.0 }.sync }.to raise_error(FloatDomainError, "element [1, 1]: NaN")
        list = md([1])
        expect { md(2, dtype: dtype) { |i| list[i] }.sync }.to raise_error(TypeError, "element [1]: what the block gives is not a number")
      end
    end

    it "counts from one number to another" do
      expect(described_class.arange(4)).to same_as([0, 1, 2, 3])
      expect(described_class.arange(2, 11, 3)).to same_as([2, 5, 8])
      expect(described_class.arange(5, 0, -2)).to same_as([5, 3, 1])
      expect(described_class.arange(3, 1)).to same_as([])
      expect(described_class.arange(0.0, 1.0, 0.25)).to same_as([0.0, 0.25, 0.5, 0.75])
      expect(described_class.arange(3, dtype: :f32)).to same_as([0.0, 1.0, 2.0])
      expect { described_class.arange(2**64, (2**64) + 2) }.to raise_error(RangeError, /\A18446744073709551616 does not fit i64/)
      expect(described_class.linspace(1, 2, 5)).to same_as([1.0, 1.25, 1.5, 1.75, 2.0])
      expect(described_class.linspace(3, 4, 1)).to same_as([3.0])
    end

    it "counts between numbers whose distance no Float holds" do
      expect(described_class.linspace(-1e308, 1e308, 3)).to same_as([-1e308, 0.0, 1e308])
      expect([1, 2].map { |count| described_class.linspace(Float::MAX, -Float::MAX, count).to_a }).to eq([[Float::MAX], [Float::MAX, -Float::MAX]])
      many = described_class.linspace(-Float::MAX, Float::MAX, 1001).to_a
      expect(many).to all(be_finite)
      expect(many.each_cons(2)).to all(satisfy { |one, other| one < other })
    end

    it "fills arrays with a value" do
      expect(described_class.full(2, 2, 7)).to same_as([[7, 7], [7, 7]])
      expect(described_class.full([2], 1.5, dtype: :f32)).to same_as([1.5, 1.5])
      expect(described_class.ones(2, 1)).to same_as([[1.0], [1.0]])
      expect(described_class.ones(2, dtype: :bool)).to same_as([true, true])
    end

    it "puts arrays one after the other" do
      one, other = md([[1, 2]]), md([[3, 4], [5, 6]])
      expect(described_class.concat(one, other)).to same_as([[1, 2], [3, 4], [5, 6]])
      expect(described_class.concat(other, other * 0.5, axis: 1)).to same_as([[3.0, 4.0, 1.5, 2.0], [5.0, 6.0, 2.5, 3.0]])
      expect { described_class.concat(one, other, axis: 1) }.to raise_error(ArgumentError, "shapes [1, 2] and [2, 2] do not fit")
      expect { described_class.concat(md([true]), md([1])) }.to raise_error(TypeError, "concat: elements of the kinds bool and i64 have no kind in common; to(dtype) converts")
      expect { described_class.where(md([true]), true, 1) }.to raise_error(TypeError, /\Awhere: elements of the kinds bool and i64/)
    end

    it "puts views and pending arrays together in one kernel" do
      array = md(4, 6) { |i, j| i * 10 + j }
      rows = array.to_a
      rolled = [described_class.concat(array[true, -1..-1], array[true, 0..-2], axis: 1), described_class.concat(array[1..-1, true], array[0..0, true])]
      expect(rolled.map(&:to_a)).to eq([rows.map { |row| row.rotate(-1) }, rows.rotate(1)])
      parts = [array[true, (0..5) % 2], array[true, 3...3], array.reverse(axis: 1)[true, 0..0] * 2, array[true, 1..1] - array[true, 0..0]]
      expect(described_class.concat(*parts, axis: 1)).to same_as(rows.map { |row| [row[0], row[2], row[4], row[5] * 2, 1] })
      deep = md(2, 3, 4) { |i, j, k| i * 100 + j * 10 + k }
      middle = deep.to_a.map { |plane| plane + [plane[1]] }
      expect(described_class.concat(deep, deep[true, 1..1, true], axis: 1)).to same_as(middle)
      turned = deep.transpose(2, 1, 0).to_a
      expect(described_class.concat(deep.transpose(2, 1, 0), deep.transpose(2, 1, 0) + 0.5, axis: 2)).to same_as(turned.map { |plane| plane.map { |row| row.map(&:to_f) + row.map { |x| x + 0.5 } } })
      expect(Ikra.profile { described_class.concat(array[true, -1..-1], array[true, 0..-2] * 3, axis: 1) }.sections.size).to eq(1)
      many = Array.new(20) { |number| array + number }
      expect(described_class.concat(*many)).to same_as(Array.new(20) { |number| rows.map { |row| row.map { |x| x + number } } }.flatten(1))
      empty = array[0...0, true]
      expect(described_class.concat(empty, empty).shape).to eq([0, 6])
    end

    it "raises what a pending part raises, with the element's index in that part" do
      whole, floats = md([[1, 2], [3, 4]]), md([[0.5, 1e300]])
      line = __LINE__ + 1
      divided = whole / md([[1, 1], [1, 0]])
      expect { described_class.concat(whole, divided).sync }.to raise_error(ZeroDivisionError) { |error| expect(error.backtrace.first).to start_with("#{__FILE__}:#{line}:") }
      expect { described_class.concat(whole, floats.to(:i64)).sync }.to raise_error(RangeError, /\Aelement \[0, 1\]: 1\d+… does not fit i64/)
      expect(described_class.concat(whole, whole)).to same_as([[1, 2], [3, 4]] * 2)
    end

    it "keeps its elements where a part changes afterwards" do
      array = md([1, 2, 3])
      twice = described_class.concat(array, array * 2)
      array[0] = 9
      expect(twice).to same_as([1, 2, 3, 2, 4, 6])
    end
  end

  it "is zeros without a block" do
    expect(md(2, 2)).to same_as([[0.0, 0.0], [0.0, 0.0]])
    expect(described_class.zeros(2, dtype: :i32)).to same_as([0, 0])
    expect(described_class.zeros([1, 2], dtype: :bool)).to same_as([[false, false]])
  end

  it "takes arrays within arrays" do
    expect(md([[1, 2], [3, 4]])).to have_attributes(shape: [2, 2], dtype: :i64, size: 4, ndim: 2, rank: 2, bytesize: 32, empty?: false)
    expect(md([1.5, -0.0])).to have_attributes(dtype: :f64, shape: [2])
    expect(md([[[true]], [[false]]])).to have_attributes(dtype: :bool, shape: [2, 1, 1])
    expect(md([])).to have_attributes(dtype: :f64, shape: [0], empty?: true)
    expect(md([[], []])).to have_attributes(shape: [2, 0])
    expect(described_class[1, 2]).to same_as([1, 2])
    expect(described_class[[1, 2.5], dtype: :f64]).to same_as([[1.0, 2.5]])
  end

  it "keeps objects as they are" do
    objects = [Object.new, "text", nil]
    array = md([objects])
    expect(array.dtype).to be(:object)
    expect(array.to_a.first.zip(objects)).to all(satisfy { |one, other| one.equal?(other) })
  end

  it "does not look at a nested array again" do
    nested = [Object.new]
    array = md(nested)
    nested << 1
    expect(array.size).to eq(1)
  end

  it "copies another array" do
    one = md([1, 2])
    other = md(one)
    other[0] = 5
    expect([one, other, md(one, dtype: :f64)].map(&:to_a)).to eq([[1, 2], [5, 2], [1.0, 2.0]])
  end

  describe "what is no array" do
    it "is told with the path of the first offender" do
      {
        [[1, 2], [3]] => "the array is ragged: [1] has 1 element, where [0] has 2",
        [[[1], [2]], [[3], [4, 5]]] => "the array is ragged: [1, 1] has 2 elements, where [0, 0] has 1",
        [[1], 2] => "the array is ragged: [1] is 2, where [0] has 1",
        [1, [2]] => "the array is ragged: [1] is an Array, where [0] is 1",
        [[1, 2], [3, 4.5]] => "the array is mixed: [1, 1] is 4.5, where [0, 0] is 1; say what is meant with dtype:",
        [1.5, nil] => "the array is mixed: [1] is nil, where [0] is 1.5; say what is meant with dtype:",
        [true, 1] => "the array is mixed: [1] is 1, where [0] is true; say what is meant with dtype:"
      }.each { |nested, text| expect { md(nested) }.to raise_error(ArgumentError, text) }
    end

    it "is told with the path of what does not fit" do
      expect { md([[1, 2**63]]) }.to raise_error(RangeError, /\Aelement \[0, 1\]: 9223372036854775808 does not fit i64/)
      expect { md([[1], [300]], dtype: :u8) }.to raise_error(RangeError, "element [1, 0]: 300 does not fit u8 (0 to 255)")
      expect { md([1, "2"], dtype: :f64) }.to raise_error(TypeError, "element [1]: an object of String is not a number")
      expect { md([1, 2], dtype: :bool) }.to raise_error(TypeError, "element [0]: 1 is neither true nor false")
      expect { md([Float::NAN], dtype: :i32) }.to raise_error(FloatDomainError)
      expect { md([[1], [2i]], dtype: :i64) }.to raise_error(RangeError, "element [1, 0]: can't convert 0+2i into Integer")
      expect(md([Complex(3, 0), 5/2r], dtype: :u8)).to same_as([3, 2])
    end

    it "is told of dimensions" do
      expect { md }.to raise_error(ArgumentError, "no dimensions")
      expect { md(2, -1) }.to raise_error(ArgumentError, "dimension 1 is negative: -1")
      expect { md(2**40, 2**40) }.to raise_error(ArgumentError, "[1099511627776, 1099511627776]: more elements than memory can hold")
      expect { md("3") }.to raise_error(TypeError, "no implicit conversion of String into Integer")
      expect { md(*[1] * 33) }.to raise_error(ArgumentError, "33 dimensions: at most 32 are possible")
      expect { md(*[1] * 7) { 1 } }.to raise_error(ArgumentError, "7 dimensions: blocks are given at most 6 indices")
      expect(md(0, 3).to_a).to eq([])
      expect(md(3, 0) { 1 }.to_a).to eq([[], [], []])
    end

    it "is told of options that there are not" do
      expect { md(2, dtyp: :u8) }.to raise_error(ArgumentError, /\Aunknown option dtyp: /)
      expect { md([1, 2], backend: :nonsense) }.to raise_error(ArgumentError, /\Abackend: :nonsense is not one of/)
    end

    it "is told of more elements than there can be" do
      expect { md(70_000, 70_000) }.to raise_error(ArgumentError, "shape [70000, 70000] has 4900000000 elements: an array has at most 4294967294")
      expect { described_class.ones(70_000, 70_000) }.to raise_error(ArgumentError, /\Ashape \[70000, 70000\]/)
      expect(md([[1]]).broadcast_to(70_000, 70_000).shape).to eq([70_000, 70_000])
    end

    it "is told of blocks and kinds" do
      expect { md(2, 2) { |i| i } }.to raise_error(ArgumentError, "the block has 1 parameter, and there are 2 dimensions: give it 2, or none")
      expect { md(2) { |i, j| i + j } }.to raise_error(ArgumentError, "the block has 2 parameters, and there is 1 dimension: give it 1, or none")
      expect { md(2, dtype: :int) }.to raise_error(ArgumentError, "dtype: :int is not one of :i64, :i32, :u8, :f64, :f32, :bool, :object")
      expect { md([1]) { 2 } }.to raise_error(ArgumentError, "either an array or a block")
      expect { md(3, dtype: :u8) { |i| i * 200 }.sync }.to raise_error(RangeError, "element [2]: 400 does not fit u8 (0 to 255)")
      expect { md(2, 2, dtype: :i32) { |i, j| (i + j) << 31 }.sync }.to raise_error(RangeError, /\Aelement \[0, 1\]: 2147483648 does not fit i32/)
      expect { md(3, dtype: :i64) { |i| 0.0 / i }.sync }.to raise_error(FloatDomainError, "element [0]: NaN")
      expect { md(2, unknown: 1) { 1 } }.to raise_error(ArgumentError, /unknown/)
    end

    it "a list that holds itself has an end" do
      list = []
      list << list
      expect { md(list) }.to raise_error(ArgumentError, "the array is more than 32 deep")
    end
  end
end
