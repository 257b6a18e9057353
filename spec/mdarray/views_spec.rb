# frozen_string_literal: true

RSpec.describe Ikra::MDArray do
  let(:nested) { Array.new(4) { |i| Array.new(5) { |j| i * 10 + j } } }
  let(:array) { md(nested) }

  on_quick_backends do
    it "is indexed as arrays within arrays are" do
      expect(array[1, 2]).to eq(12)
      expect(array[-1, -5]).to eq(30)
      expect([array[4, 0], array[0, -6], array.dig(9, 9)]).to eq([nil, nil, nil])
      expect(array[2]).to same_as(nested[2])
      expect(array[-1]).to same_as(nested[-1])
      expect(array[7]).to be_nil
      expect(array[2][3]).to eq(23)
    end

    it "has parts by Ranges, as Array has" do
      [0..1, 1..-1, 1...-1, (2..), (..2), 3..9, 2..1, -3..-2, 4..5, 0...0].each do |range|
        expect(array[range]).to same_as(nested[range]), range.inspect
        expect(array[true, range]).to same_as(nested.map { |row| row[range] }), range.inspect
      end
      expect(array[5..6]).to be_nil
      expect(array[0..9, true]).to same_as(nested)
      expect(array[(0..3) % 2]).to same_as([nested[0], nested[2]])
      expect(array[true, (0..).step(3)]).to same_as(nested.map { |row| [row[0], row[3]] })
      expect(array[true, (4..0).step(-2)]).to same_as(nested.map { |row| row.values_at(4, 2, 0) })
      expect(array[1, :new, 2..3]).to same_as([[12, 13]])
      expect(array[:new].shape).to eq([1, 4, 5])
    end

    it "has parts by Ranges with steps in either direction, as Array has" do
      ends = [nil, *-5..5]
      4.times do |size|
        list = (0...size).to_a
        ends.product(ends, [true, false], [-3, -2, -1, 1, 2, 3]) do |first, last, excluded, step|
          next if first.nil? && last.nil?

          sequence = Range.new(first, last, excluded).step(step)
          turned = step.negative? && excluded && last && [0, 1, 2][(2...0) % -1] == [2, 1]
          part = [first, turned ? last + 1 : last]
          part = list[Range.new(*(step.positive? ? part : part.reverse), excluded && !turned)]
          # Array raises for some missing elements, and begins elsewhere where a step is longer than the part.
          next if part.nil? || (step.abs > 1 && step.abs > part.size)

          wanted = begin
            list[sequence]
          rescue RangeError
            next
          end
          expect(md(list, dtype: :i64)[sequence]).to same_as(wanted), "#{size} #{sequence.inspect}"
        end
      end
      steps = [(3...0) % -1, (3...0) % -2, (0...0) % -1, (3..0) % -2]
      expect(steps.map { |sequence| md([0, 1, 2, 3, 4])[sequence].to_a }).to eq(steps.map { |sequence| [0, 1, 2, 3, 4][sequence] })
    end

    it "is turned and taken apart without copying" do
      expect(array.t).to same_as(nested.transpose)
      expect(array.reshape(2, 10)).to same_as(nested.flatten.each_slice(10).to_a)
      expect(array.reshape(5, -1)).to same_as(nested.flatten.each_slice(4).to_a)
      expect { array.reshape(-1, -1) }.to raise_error(ArgumentError, "[-1, -1]: one dimension can be what is left, not 2")
      expect(array.t.reshape(4, 5)).to same_as(nested.transpose.flatten.each_slice(5).to_a)
      expect(array[true, 1..2].reshape(2, 2, 2)).to same_as(nested.map { |row| row[1..2] }.each_slice(2).to_a)
      expect(array.flatten).to same_as(nested.flatten)
      expect(array.row(1)).to same_as(nested[1])
      expect(array.column(-2)).to same_as(nested.map { |row| row[-2] })
      expect(array.slice(1..2, 0)).to same_as([10, 20])
      expect([0, 1, -2, 9].map { |offset| array.diagonal(offset).to_a }).to eq([[0, 11, 22, 33], [1, 12, 23, 34], [20, 31], []])
      expect(array.reverse).to same_as(nested.reverse.map(&:reverse))
      expect(array.reverse(axis: 1)).to same_as(nested.map(&:reverse))
      expect(array[0..0].squeeze).to same_as(nested[0])
      expect(array[0..0].broadcast_to(2, 5)).to same_as([nested[0]] * 2)
      cube = md(2, 3, 4) { |i, j, k| i * 100 + j * 10 + k }
      expect(cube.transpose(1, 2, 0)).to same_as(Array.new(3) { |j| Array.new(4) { |k| Array.new(2) { |i| i * 100 + j * 10 + k } } })
      expect(cube.t).to same_as(cube.to_a.map(&:transpose))
    end

    it "has views of one element" do
      expect(array[0..0, 0..0] + 1).to same_as([[1]])
      expect(array[2..2, 3..3] + 1).to same_as([[24]])
      expect((array[3..3, 4..4] * array[1..1, 1..1]).sum).to eq(34 * 11)
      expect(array[2..2] + array[true, 1..1]).to same_as(nested.map { |row| nested[2].map { |x| x + row[1] } })
    end

    it "is copied by lists of indices and by other arrays" do
      expect(array[[3, 0, -1]]).to same_as(nested.values_at(3, 0, -1))
      expect(array[1..2, [4, 0]]).to same_as(nested[1..2].map { |row| row.values_at(4, 0) })
      expect(array[2, [1, 1]]).to same_as([21, 21])
      expect(array[array > 30]).to same_as([31, 32, 33, 34])
      expect(array.t[array.t.even?]).to same_as(nested.transpose.flatten.select(&:even?))
      [md([]).reshape(0, 3)[true, 2], md([]).reshape(0, 3)[true, 1..], array[true, 5...5], array.diagonal[4..]].each { |none| expect(none[none > 0]).to same_as([]) }
    end

    it "is written through views" do
      array[0] = 7
      array[1..2, 1] = [-1, -2]
      array.column(4).fill(0)
      array.diagonal[3] = 99
      array.t[0, 2] = 5
      array.reverse[0, 1] = 44
      array[3, true].map! { |x| x + 1 }
      expect(array).to same_as([[7, 7, 7, 7, 0], [10, -1, 12, 13, 0], [5, -2, 22, 23, 0], [31, 32, 33, 100, 1].tap { |row| row[3] = 45 }])
    end

    it "is written by the elements of another array, which may be its own" do
      array[true, 0..1] = array[true, 3..4]
      expect(array).to same_as(nested.map { |row| [row[3], row[4], *row[2..]] })
      array[0..2] = array[1..3]
      expect(array[0..2]).to same_as(nested.map { |row| [row[3], row[4], *row[2..]] }[1..3])
      array[array > 20] = 0
      expect(array.max).to be <= 20
    end

    it "keeps Integers that no Float holds where Floats are written beside them by another array" do
      whole = md([2**53 + 1, 5, 6])
      whole[whole < 6] = 1.5
      expect(whole).to same_as([2**53 + 1, 1, 6])
      whole[whole > 5] = md([7.9, Float::NAN, 8.9])
      expect(whole).to same_as([7, 1, 8])
      bytes = md([1, 200], dtype: :u8)
      bytes[bytes < 100] = [5, 300]
      expect(bytes).to same_as([5, 200])
      expect { bytes[bytes > 100] = md([5, 300]); bytes.sync }.to raise_error(RangeError, "element [1]: 300 does not fit u8 (0 to 255)")
    end

    it "gives what copies of the parts give" do
      random = Random.new(5)
      40.times do
        list = nested.map(&:dup)
        view, copy = array, list
        3.times do
          case random.rand(4)
          when 0 then view, copy = view.t, (copy.first ? copy.transpose : copy)
          when 1
            from = random.rand(view.shape[0])
            view, copy = view[from..], copy[from..]
          when 2
            from = random.rand(view.shape[1])
            view, copy = view[true, 0..from], copy.map { |row| row[0..from] }
          else
            view, copy = view[(0..).step(2)], copy.each_slice(2).map(&:first)
          end
        end
        expect(view).to same_as(copy)
        expect(view + view.reverse).to same_as(deep_zip(copy, copy.reverse.map(&:reverse)) { |x, y| x + y })
        expect(view.sum).to eq(copy.flatten.sum)
        expect(view.sum(axis: 0)).to same_as(copy.transpose.map(&:sum))
        expect(view.map { |x| x * 2 }).to same_as(deep_map(copy) { |x| x * 2 })
        expect(view.dup).to same_as(copy)
        expect(view.to_bytes).to eq(copy.flatten.pack("q*"))
      end
    end

    it "keeps what pending expressions have seen" do
      before = array * 2
      total = (before + 1)
      view = array[0] - 1
      array[0, 0] = 1000
      array.map!(&:-@)
      before[0, 1] = 5
      expect(total).to same_as(deep_map(nested) { |x| x * 2 + 1 })
      expect(view).to same_as(nested[0].map { |x| x - 1 })
      expect(before[0]).to same_as([0, 5, 4, 6, 8])
      expect(array[0, 0]).to eq(-1000)
    end
  end

  it "does not see what copies are given" do
    copy, view = array.dup, array[true, 0..2].clone
    array[0, 0] = -1
    copy[0, 1] = -2
    view[0, 2] = -3
    expect([array[0, 0..2], copy[0, 0..2], view[0]].map(&:to_a)).to eq([[-1, 1, 2], [0, -2, 2], [0, 1, -3]])
  end

  it "says what is outside" do
    expect { array[4, 0] = 1 }.to raise_error(IndexError, "index [4, 0] is outside of shape [4, 5]")
    expect { array[9] = 1 }.to raise_error(IndexError, "index [9] is outside of shape [4, 5]")
    expect { array[0, 0, 0] }.to raise_error(ArgumentError, "3 indices for 2 dimensions")
    expect { array["a"] }.to raise_error(TypeError, '"a" is no index: Integers, Ranges, true, :new and lists of Integers are')
    expect { array[[9]] }.to raise_error(IndexError, "index 9 is outside of shape [4, 5]")
    expect { array.column(5) }.to raise_error(IndexError, "column 5 is outside of shape [4, 5]")
    expect { array.reshape(3, 3) }.to raise_error(ArgumentError, "shape [4, 5] (20 elements) cannot become [3, 3] (9)")
    expect { array.reshape(-1, 3) }.to raise_error(ArgumentError, "shape [4, 5] (20 elements) cannot become [-1, 3]")
    expect { array.transpose(0, 0) }.to raise_error(ArgumentError, "[0, 0] is no order of 2 dimensions")
    expect { array.sum(axis: 2) }.to raise_error(ArgumentError, "axis 2 for 2 dimensions")
    expect { array[0] = [1, 2] }.to raise_error(ArgumentError, "shapes [5] and [2] do not fit")
    expect { array[md([true])] }.to raise_error(ArgumentError, "shapes [4, 5] and [1] do not fit")
    expect { array.flatten.row(0) }.to raise_error(ArgumentError, "shape [20] has no rows: two dimensions are needed")
    expect { array.diagonal(axes: [0]) }.to raise_error(ArgumentError, "axes: [0] are not two dimensions")
    expect { array.flatten.diagonal }.to raise_error(ArgumentError, "shape [20] has no diagonal: two dimensions are needed")
  end

  it "says what does not fit an element, and where" do
    bytes = md([[1, 2]], dtype: :u8)
    expect { bytes[0, 1] = 256 }.to raise_error(RangeError, "element [0, 1]: 256 does not fit u8 (0 to 255)")
    expect { bytes[0] = [3, -1] }.to raise_error(RangeError, "element [1]: -1 does not fit u8 (0 to 255)")
    expect { bytes[0, 1] = "a" }.to raise_error(TypeError, "element [0, 1]: an object of String is not a number")
    expect { bytes[0, 1] = Float::NAN }.to raise_error(FloatDomainError, "element [0, 1]: NaN")
    expect { bytes.map! { |x| x * 200 }.sync }.to raise_error(RangeError, "element [0, 1]: 400 does not fit u8 (0 to 255)")
    expect { bytes[0] = nil }.to raise_error(TypeError, "nil is not a number")
    expect { bytes[0...0] = "junk" }.to raise_error(TypeError, "an object of String is not a number")
    expect { bytes[0...0] = md([1, 2, 3]) }.to raise_error(ArgumentError, "shapes [0, 2] and [3] do not fit")
    expect { bytes[bytes > 1] = nil }.to raise_error(TypeError, "nil is not a number")
    expect { bytes[bytes > 1] = true }.to raise_error(TypeError, "true is not a number")
    expect { bytes[bytes > 1] = [%w[a b]] }.to raise_error(TypeError, "element [0, 0]: an object of String is not a number")
    expect { md([true])[md([true])] = 1 }.to raise_error(TypeError, "1 is neither true nor false")
    bytes[0...0] = 5
    expect(bytes).to same_as([[1, 2]])
    bytes[0, 0] = 7.9
    expect(bytes[0, 0]).to eq(7)
  end

  it "cannot be written when frozen, nor can its views" do
    view = array[0]
    array.freeze
    [-> { array[0, 0] = 1 }, -> { array.map!(&:succ) }, -> { view[0] = 1 }, -> { array.t.fill(0) }].each do |write|
      expect(&write).to raise_error(FrozenError, /\Acan't modify frozen Ikra::MDArray: #<Ikra::MDArray/)
    end
    expect { array.clone[0][0] = 1 }.to raise_error(FrozenError)
    copy = array.dup
    copy[0, 0] = 9
    expect([array[0, 0], copy[0, 0], array.clone.frozen?, (array + 1)[0, 0]]).to eq([0, 9, true, 1])
  end

  it "is no view where it is the copy of one, and is frozen with its views then" do
    copy = md([[1, 2], [3, 4]]).t.dup
    part = copy[0]
    copy.freeze
    expect { part[0] = 99 }.to raise_error(FrozenError)
    expect([copy.view?, copy]).to match([false, same_as([[1, 3], [2, 4]])])
  end

  it "has as many elements as memory has, in any order" do
    numbers, objects = md(500, 400) { |i, j| i - j }.t, md((0...200_000).to_a, dtype: :object).reshape(500, 400).t
    expect([numbers.to_a.size, numbers.to_a[399][0], objects.to_a.size, objects.to_a[399][0]]).to eq([400, -399, 400, 399])
  end

  it "is not freed when frozen" do
    array.freeze
    expect { array.free }.to raise_error(FrozenError)
    expect { array[0].free }.to raise_error(FrozenError)
    expect(array[0, 0]).to eq(0)
  end

  it "has parts of objects that are written where another array is true" do
    words = md(%w[a b c])
    words[words.eq("b")] = "z"
    words[md([true, false, true])] = md(%w[x y w])
    expect(words).to same_as(%w[x z w])
  end

  it "does not freeze the array that a frozen view is of" do
    view = array[0].freeze
    array[0, 0] = 3
    expect(view[0]).to eq(3)
    expect { view[0] = 1 }.to raise_error(FrozenError)
    expect { view[0..1][0] = 1 }.to raise_error(FrozenError)
  end

  it "has no elements when freed, nor have its views" do
    view, pending = array[0], array + 1
    array.free
    expect(array).to be_freed
    expect { array[0, 0] }.to raise_error(ArgumentError, "the array's elements are freed")
    expect { view.to_a }.to raise_error(ArgumentError, "the array's elements are freed")
    expect(array.inspect).to eq("#<Ikra::MDArray freed>")
    expect(pending[0, 0]).to eq(1)
    expect(array.free).to be_nil
  end
end
