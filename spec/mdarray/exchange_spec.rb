# frozen_string_literal: true

require "fiddle"
require "stringio"
require "tempfile"
begin
  require "narray"
rescue LoadError
  nil
end

RSpec.describe Ikra::MDArray do
  let(:array) { md([[1, 2, 3], [4, 5, 6]]) }

  it "is packed row after row" do
    expect(array.to_bytes).to eq([1, 2, 3, 4, 5, 6].pack("q<*"))
    expect(array.t.to_bytes).to eq([1, 4, 2, 5, 3, 6].pack("q<*"))
    expect(array[1].to_bytes).to eq([4, 5, 6].pack("q<*"))
    { i32: "l<*", u8: "C*", f64: "E*", f32: "e*" }.each do |dtype, form|
      bytes = array.to(dtype).to_bytes
      expect(bytes).to eq([1, 2, 3, 4, 5, 6].pack(form))
      expect(described_class.from_bytes(bytes, 2, 3, dtype: dtype)).to eq(array)
    end
    expect(md([true, false]).to_bytes).to eq("\x01\x00".b)
    expect(described_class.from_bytes("\x00\x01", dtype: :bool)).to same_as([false, true])
    expect(md([]).to_bytes).to eq("")
    expect { described_class.from_bytes(nil) }.to raise_error(TypeError, "nil is not a String")
    expect { described_class.from_bytes("abc") }.to raise_error(ArgumentError, "3 bytes are no whole number of f64 (8 bytes)")
    expect { described_class.from_bytes("a" * 8, 2) }.to raise_error(ArgumentError, "8 bytes for shape [2] of f64, which is 16")
    expect { md(["a"]).to_bytes }.to raise_error(TypeError, "objects have no bytes")
  end

  describe "files of NumPy's" do
    def npy(header, bytes, version = 1)
      text = "#{header}\n"
      StringIO.new("\x93NUMPY".b + [version, 0].pack("CC") + [text.bytesize].pack(version == 1 ? "S<" : "L<") + text + bytes)
    end

    it "are written as NumPy writes them" do
      io = StringIO.new("".b)
      expect(array.write(io)).to be(array)
      # numpy.save of numpy.array([[1, 2, 3], [4, 5, 6]])
      header = "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }".ljust(117)
      expect(io.string).to eq("\x93NUMPY\x01\x00v\x00".b + header.b + "\n".b + [1, 2, 3, 4, 5, 6].pack("q<*"))
    end

    it "come back as they were" do
      [array, array.t, md([1.5, -0.0]), md([[[true]]]), md([1, 255], dtype: :u8), md([1.5], dtype: :f32), md([-7], dtype: :i32), md([]), md(2, 0)].each do |original|
        Tempfile.create("ikra") do |file|
          original.write(file.path)
          copy = described_class.read(file.path)
          expect([copy.dtype, copy.shape, copy.to_a]).to eq([original.dtype, original.shape, original.to_a])
        end
      end
    end

    it "are read in either order of bytes and of dimensions" do
      expect(described_class.read(npy("{'descr': '>i8', 'fortran_order': False, 'shape': (3,), }", [1, -2, 3].pack("q>*")))).to same_as([1, -2, 3])
      expect(described_class.read(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", [1.5, -2].pack("g*")))).to have_attributes(dtype: :f32, to_a: [1.5, -2.0])
      fortran = described_class.read(npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", [1, 4, 2, 5, 3, 6].pack("E*"), 2))
      expect(fortran).to same_as([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
      expect(described_class.read(npy("{'shape': (), 'fortran_order': False, 'descr': '|b1'}", "\x01", 3))).to same_as([true])
    end

    it "are read in all widths" do
      kinds = { "|i1" => ["c*", :i32, -3], "<i2" => ["s<*", :i32, -300], ">u2" => ["S>*", :i32, 60_000], "<u4" => ["L<*", :i64, 4_000_000_000], ">u8" => ["Q>*", :i64, 2**62],
                "|u1" => ["C*", :u8, 200] }
      kinds.each do |kind, (form, dtype, value)|
        file = npy("{'descr': '#{kind}', 'fortran_order': False, 'shape': (1,), }", [value].pack(form))
        expect(described_class.read(file)).to have_attributes(dtype: dtype, to_a: [value])
      end
      halves = { 0x3c00 => 1.0, 0xc000 => -2.0, 0x0001 => 2.0**-24, 0x7bff => 65_504.0, 0x7c00 => Float::INFINITY, 0x3555 => 0.333251953125, 0x8000 => -0.0 }
      expect(described_class.read(npy("{'descr': '<f2', 'fortran_order': False, 'shape': (7,), }", halves.keys.pack("S<*")))).to same_as(halves.values)
    end

    it "are left as they are where the elements cannot be computed" do
      Tempfile.create("kept") do |file|
        md([1, 2, 3]).write(file.path)
        gone = md([1]).tap(&:free)
        expect { (md([1, 2, 3]) / 0).write(file.path) }.to raise_error(ZeroDivisionError)
        expect { gone.write(file.path) }.to raise_error(ArgumentError, "the array's elements are freed")
        expect(described_class.read(file.path)).to same_as([1, 2, 3])
      end
    end

    it "are named by Strings and Pathnames" do
      require "pathname"
      Tempfile.create("named") do |file|
        path = Pathname(file.path)
        md([1.5, 2.5]).write(path)
        expect([described_class.read(path), described_class.read(file)]).to all(same_as([1.5, 2.5]))
      end
    end

    it "are refused where they end too early" do
      io = StringIO.new
      md([1, 2]).write(io)
      (6..(io.string.bytesize - 1)).each do |size|
        expect { described_class.read(StringIO.new(io.string.byteslice(0, size))) }.to raise_error(ArgumentError, /\Athe file ends (within its header|before its elements)/)
      end
    end

    it "are refused where they are none, or hold something else" do
      expect { described_class.read(StringIO.new("PNG")) }.to raise_error(ArgumentError, /\Athis is no file of NumPy's/)
      expect { described_class.read(npy("{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }", "")) }.to raise_error(ArgumentError, /kind "<c16"/)
      expect { described_class.read(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (-2, -3), }", "12345678" * 6)) }.to raise_error(ArgumentError, "dimension 0 is negative: -2")
      expect { described_class.read(npy("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1,), }", "")) }.to raise_error(ArgumentError, /kind that arrays do not know/)
      expect { described_class.read(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", "12345678")) }.to raise_error(ArgumentError, "the file ends before its elements: 8 bytes of 16")
      expect { described_class.read(npy("{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", [2**63].pack("Q<"))) }.to raise_error(RangeError)
      claimed = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (65536, 65536), }", "")
      expect { described_class.read(claimed) }.to raise_error(ArgumentError, "the file ends before its elements: 0 bytes of 34359738368")
      huge = npy("{'descr': '<f8', 'fortran_order': True, 'shape': (99999999999999999999, 2), }", "12345678")
      expect { described_class.read(huge) }.to raise_error(ArgumentError)
      expect { described_class.read(StringIO.new("\x93NUMPY\x03\x00\xff\xff\xff\xff{".b)) }.to raise_error(ArgumentError, "the file ends within its header")
      ["0x10", "1_0", "1.5", "x", "1e3"].each do |size|
        expect { described_class.read(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (#{size},), }", "")) }.to raise_error(ArgumentError, /says no shape/)
      end
      expect { described_class.read(npy("", "", 9)) }.to raise_error(ArgumentError, "the file is of version 9: 1 to 3 are known")
      expect { md(["a"]).write(StringIO.new) }.to raise_error(TypeError)
      expect { described_class.read("/nowhere.npy") }.to raise_error(Errno::ENOENT)
    end
  end

  describe "NArray", if: defined?(::NArray) do
    it "comes and goes with its dimensions in the other order" do
      original = NArray.int(3, 2).indgen!
      expect(described_class.from_narray(original)).to have_attributes(dtype: :i32, to_a: original.to_a)
      expect(described_class.from_narray(NArray.float(4).indgen! * 0.5)).to same_as([0.0, 0.5, 1.0, 1.5])
      expect(described_class.from_narray(NArray.sint(2, 2).indgen!)).to have_attributes(dtype: :i32, to_a: [[0, 1], [2, 3]])
      expect(described_class.from_narray(NArray.byte(2).indgen!).dtype).to be(:u8)
      %i[i32 u8 f64 f32].each { |dtype| expect(array.to(dtype).to_narray.to_a).to eq(array.to(dtype).to_a) }
      expect(array.t.to(:f64).to_narray.shape).to eq([2, 3])
      expect { array.to_narray }.to raise_error(TypeError, "NArray has no elements of kind i64")
      expect { described_class.from_narray(NArray.complex(1)) }.to raise_error(TypeError, /no kind for the elements of NArray/)
      [NArray.float(0), NArray.sint(3, 0), described_class.zeros(0).to_narray].each do |empty|
        made = described_class.from_narray(empty)
        expect([made.shape, made.map { |x| x }.to_a, made.sum, (made + 1).to_a]).to eq([[0], [], 0, []])
      end
      expect { described_class.from_narray([1]) }.to raise_error(TypeError, "Array is neither an NArray nor a Numo::NArray")
    end

    # NArray has its dimensions in the other order, and Integers of 32 bits.
    def beside(rank, kind)
      sizes = Array.new(rank) { rand(1..6) }
      kind == :float ? NArray.float(*sizes).random!(20.0) - 10.0 : NArray.int(*sizes).random!(40) - 20
    end

    # NArray adds Floats in another order, and has 1 for true.
    def agree(mine, others)
      mine = mine.to_flat_a if mine.is_a?(described_class)
      others = others.to_a.flatten if others.is_a?(NArray)
      expect(Array(mine).map { |x| { true => 1, false => 0 }.fetch(x, x) }).to match([*others].map { |x| x.is_a?(Float) ? be_within(1e-9 * [x.abs, 1].max).of(x) : x })
    end

    it "does with elements what NArray does" do
      srand(20_251)
      NArray.srand(20_251)
      [1, 2, 3].product(%i[float int], [1, 2]).each do |rank, kind, _|
        one = beside(rank, kind)
        other = one.clone.tap { |copy| copy[true] = kind == :float ? NArray.float(one.total).random!(10.0) + 0.5 : NArray.int(one.total).random!(9) + 1 }
        mine, others = described_class.from_narray(one), described_class.from_narray(other)
        %i[+ - * / %].each do |name|
          # In C, quotients and remainders are rounded toward zero.
          next agree(mine.abs.public_send(name, others), one.abs.public_send(name, other)) if kind == :int && %i[/ %].include?(name)
          next if name == :%

          agree(mine.public_send(name, others), one.public_send(name, other))
          agree(mine.public_send(name, 3), one.public_send(name, 3)) unless name == :/
        end
        agree(mine**2, one**2)
        agree(-mine, -one)
        agree(mine.abs, one.abs)
        { eq: :eq, ne: :ne, :< => :<, :<= => :<=, :> => :>, :>= => :>= }.each { |name, its| agree(mine.public_send(name, others), one.public_send(its, other)) }
        %i[floor ceil round].each { |name| agree(mine.public_send(name), one.public_send(name)) } if kind == :float
        %i[& | ^].each { |name| agree(mine.public_send(name, others), one.public_send(name, other)) } if kind == :int
      end
    end

    it "comes to what NArray comes to, along each dimension" do
      NArray.srand(5)
      [1, 2, 3].product(%i[float int]).each do |rank, kind|
        one = beside(rank, kind)
        mine = described_class.from_narray(one)
        %i[sum min max].each do |name|
          agree(mine.public_send(name), one.public_send(name))
          rank.times { |axis| agree(mine.public_send(name, axis: axis), one.public_send(name, rank - 1 - axis)) }
        end
        agree(mine.mean, one.mean)
        agree(mine.argmax, one.to_a.flatten.index(one.max))
        agree(mine.flatten.sort, one.flatten.sort)
        agree(mine.flatten.cumsum, one.flatten.cumsum)
        agree(mine.count { |x| x > 1 }, one.gt(1).count_true)
        agree(mine.any? { |x| x > 9 } ? 1 : 0, one.gt(9).any? ? 1 : 0)
        agree(mine[mine > 1], one[one > 1]) if (one > 1).any?
      end
    end

    it "has views where NArray has copies" do
      one = NArray.float(5, 4).random!(10.0)
      mine = described_class.from_narray(one)
      agree(mine.t, one.transpose(1, 0))
      agree(mine[1, true], one[true, 1])
      agree(mine[true, 1..3], one[1..3, true])
      agree(mine[-2..-1, 0], one[0, -2..-1])
      agree(mine.reshape(2, 10), one.reshape(10, 2))
      agree(mine.transpose(1, 0)[2, true], one.transpose(1, 0)[true, 2])
      mine[1..2, 0..1] = 7
      one[0..1, 1..2] = 7
      agree(mine, one)
      mine[mine > 6] = 0
      one[one > 6] = 0
      agree(mine, one)
      cube = NArray.int(2, 3, 4).indgen!
      agree(described_class.from_narray(cube).transpose(2, 0, 1), cube.transpose(1, 2, 0))
    end

    it "multiplies matrices and knows the functions of Math as NArray does" do
      one, other = NArray.float(5, 4).random!(10.0), NArray.float(5, 4).random!(10.0) + 0.5
      mine, others = described_class.from_narray(one), described_class.from_narray(other)
      agree(mine.matmul(others.t), NArray.ref(NMatrix.ref(one) * NMatrix.ref(other).transpose))
      agree(mine.row(0).dot(others.row(1)), NVector.ref(one[true, 0]) * NVector.ref(other[true, 1]))
      %i[sqrt exp log sin cos tan atan sinh tanh log10 log2].each { |name| agree(others.public_send(name), NMath.public_send(name, other)) }
      agree(mine.atan2(others), NMath.atan2(one, other))
    end
  end

  # The methods of Numo::NArray that are used: shape, to_binary, from_binary, to_a and cast.
  describe "Numo::NArray" do
    before do
      narray = Class.new do
        attr_reader :shape

        def initialize(binary, shape)
          @binary, @shape = binary, shape
        end

        def to_binary = @binary

        def self.from_binary(binary, shape) = new(binary, shape)
      end
      stub_const("Numo", Module.new)
      Numo.const_set(:NArray, narray)
      %i[DFloat SFloat Int64 Int32 Int16 UInt8 UInt64 DComplex].each { |name| Numo.const_set(name, Class.new(narray)) }
    end

    it "comes and goes by its bytes" do
      { i64: :Int64, i32: :Int32, u8: :UInt8, f64: :DFloat, f32: :SFloat }.each do |dtype, name|
        numo = array.to(dtype).t.to_numo
        expect([numo.class, numo.shape]).to eq([Numo.const_get(name), [3, 2]])
        expect(described_class.from_narray(numo)).to have_attributes(dtype: dtype, to_a: array.to(dtype).t.to_a)
      end
      expect(described_class.from_narray(Numo::Int16.new([-1, 2].pack("s<*"), [2, 1]))).to have_attributes(dtype: :i32, to_a: [[-1], [2]])
      expect(described_class.from_narray(Class.new(Numo::Int32).new([5].pack("l<"), []))).to have_attributes(dtype: :i32, shape: [1], to_a: [5])
      expect { described_class.from_narray(Numo::UInt64.new([2**63].pack("Q<"), [1])) }.to raise_error(RangeError)
      expect { described_class.from_narray(Numo::DComplex.new("", [0])) }.to raise_error(TypeError, "arrays have no kind for the elements of Numo::DComplex")
    end
  end

  it "is copied from a MemoryView" do
    pointer = Fiddle::Pointer["abcdef"]
    expect(described_class.from_memory_view(pointer)).to have_attributes(dtype: :u8, to_a: "abcdef".bytes)
    expect { described_class.from_memory_view(Object.new) }.to raise_error(ArgumentError)
    expect { described_class.from_memory_view(pointer, dtype: :object) }.to raise_error(ArgumentError, "objects have no bytes")
  end

  it "shows a MemoryView, of the elements as they are then" do
    part = array.to(:f32).t[true, 0..0]
    view = Fiddle::MemoryView.new(array)
    expect([view.format, view.item_size, view.ndim, view.shape, view.byte_size, view.readonly?]).to eq(["q", 8, 2, [2, 3], 48, true])
    array[0, 0] = 100
    expect([view[0, 0], view[1, 2], view.to_s]).to eq([1, 6, [1, 2, 3, 4, 5, 6].pack("q*")])
    view.release
    expect(Fiddle::MemoryView.new(part).then { |shown| [shown.shape, shown.strides, shown[2, 0], shown.to_s] }).to eq([[3, 1], [4, 4], 3.0, [1, 2, 3].pack("f*")])
    expect(Fiddle::MemoryView.new(array[1, 1..2]).to_s).to eq([5, 6].pack("q*"))
    expect { Fiddle::MemoryView.new(md(["a"])) }.to raise_error(ArgumentError)
    GC.start
  end

  it "goes round through MemoryView" do
    [array, array.t, md([1.5, -0.0]), md([[1, 255]], dtype: :u8), md([0.5], dtype: :f32), md([7], dtype: :i32), array * 2].each do |original|
      copy = described_class.from_memory_view(original)
      expect([copy.dtype, copy.shape, copy.to_a]).to eq([original.dtype, original.shape, original.to_a])
    end
    expect(described_class.from_memory_view(md([true, false]), dtype: :bool)).to same_as([true, false])
  end

  describe "MemoryView that may be written" do
    # Gets a writable view as C code does: Fiddle gets only views for reading.
    def written(array)
      ruby = Fiddle.dlopen(nil)
      get = Fiddle::Function.new(ruby["rb_memory_view_get"], [Fiddle::TYPE_UINTPTR_T, Fiddle::TYPE_VOIDP, Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
      release = Fiddle::Function.new(ruby["rb_memory_view_release"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT, need_gvl: true)
      view = Fiddle::Pointer.malloc(256, Fiddle::RUBY_FREE)
      view[0, 256] = "\0" * 256
      # A C bool: its lowest byte.
      return if (get.call(Fiddle.dlwrap(array), view, 1) & 255).zero?

      _object, data, size, read_only = view[0, 32].unpack("Q4")
      expect(read_only & 255).to eq(0)
      yield Fiddle::Pointer.new(data, size)
      release.call(view)
      array
    end

    it "becomes the array's when it is released" do
      array = md([[1, 2, 3], [4, 5, 6]])
      pending, copy = array * 10, array.dup
      during = nil
      written(array) do |memory|
        expect(memory[0, memory.size].unpack("q*")).to eq([1, 2, 3, 4, 5, 6])
        during = array + 0
        memory[8, 8] = [99].pack("q")
        expect(array.to_a).to eq([[1, 2, 3], [4, 5, 6]])
      end
      expect([array, pending, copy, during].map(&:to_a)).to eq([[[1, 99, 3], [4, 5, 6]], [[10, 20, 30], [40, 50, 60]], [[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 5, 6]]])
      expect((array * 2).sum).to eq(236)
    end

    it "is of a view's elements alone, and is not lost to what is written meanwhile" do
      array = md([[1, 2, 3], [4, 5, 6]], dtype: :f32)
      written(array.t[1..2, true]) do |memory|
        expect(memory[0, memory.size].unpack("e*")).to eq([2.0, 5.0, 3.0, 6.0])
        array.map! { |x| x * 100 }
        memory[0, 16] = [-2.0, -5.0, -3.0, -6.0].pack("e*")
      end
      expect(array.to_a).to eq([[100.0, -2.0, -3.0], [400.0, -5.0, -6.0]])
    end

    it "has true for any byte but 0 that is written to booleans" do
      array = md([true, false, true])
      written(array) { |memory| memory[0, 3] = [7, 2, 0].pack("C*") }
      expect([array.to_a, array.to_bytes.bytes, array.count(true)]).to eq([[true, true, false], [1, 1, 0], 2])
      md([9, 0, 1], dtype: :u8).write_to_memory_view(array)
      expect([array.to_a, array.to_bytes.bytes]).to eq([[true, false, true], [1, 0, 1]])
    end

    it "is not there for frozen arrays" do
      expect(written(md([1, 2]).freeze) { raise "there is one" }).to be_nil
      expect(written(md([1, 2])[0..0].freeze) { raise "there is one" }).to be_nil
    end

    it "is written" do
      target = md([[0.0] * 2] * 3)
      expect(md([[1.5, 2.5], [3.5, 4.5], [5.5, 6.5]]).write_to_memory_view(target)).to be_a(described_class)
      expect(target.to_a).to eq([[1.5, 2.5], [3.5, 4.5], [5.5, 6.5]])
      md([7.0, 8.0]).write_to_memory_view(target[true, 1][0..1])
      expect(target.to_a).to eq([[1.5, 7.0], [3.5, 8.0], [5.5, 6.5]])
      expect { md([1.0]).write_to_memory_view(Object.new) }.to raise_error(ArgumentError, "an object of Object shows no memory that may be written")
      expect { md([1.0]).write_to_memory_view(target) }.to raise_error(ArgumentError, "the memory is of shape [3, 2] with 8 bytes for each element, not [1] with 8")
      expect { md([1], dtype: :i32).write_to_memory_view(md([1])) }.to raise_error(ArgumentError, /with 8 bytes for each element, not \[1\] with 4/)
      expect { md([1, 2]).write_to_memory_view(md(2)) }.to raise_error(ArgumentError, 'the memory has elements of format "d", which are none of kind i64')
      expect { md([1], dtype: :i32).write_to_memory_view(md([1.0], dtype: :f32)) }.to raise_error(ArgumentError, /elements of format "f", which are none of kind i32/)
      md([true, false]).write_to_memory_view(bytes = md(2, dtype: :u8))
      expect(bytes).to same_as([1, 0])
      expect { md([1.0]).write_to_memory_view(md([1.0]).freeze) }.to raise_error(ArgumentError, /no memory that may be written/)
    end
  end

  it "is copied from a MemoryView of itself with its kind, and with no elements" do
    expect(described_class.from_memory_view(md([true, false]))).to have_attributes(dtype: :bool, to_a: [true, false])
    empty = md([0, 1, 2]).reverse[3..]
    expect(described_class.from_memory_view(empty)).to same_as([])
    expect(described_class.from_memory_view(Fiddle::MemoryView.new(empty))).to same_as([])
  end

  it "raises what its elements raise when they are to be shown" do
    expect { Fiddle::MemoryView.new(md([1, 2]) / 0) }.to raise_error(ZeroDivisionError, "divided by 0")
    view = Fiddle::MemoryView.new(md([1, 2])).tap(&:release)
    expect { described_class.from_memory_view(view) }.to raise_error(ArgumentError, "the MemoryView was released")
  end

  it "says what is not loaded" do
    hide_const("NArray") if defined?(::NArray)
    expect { array.to_narray }.to raise_error(NameError, /narray is not loaded/)
    expect { array.to_numo }.to raise_error(NameError, /numo-narray is not loaded/)
  end
end
