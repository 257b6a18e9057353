# frozen_string_literal: true

RSpec.describe "pzip, pcombine, pnew, pstencil, pmap!" do
  describe "#pzip" do
    it "gives what zip gives" do
      expect([1, 2, 3]).to do_as_ruby(:zip, [4, 5])
      expect(1..3).to do_as_ruby(:zip, [4, 5, 6, 7], 7..9)
    end

    it "runs a block for its effects" do
      run = lambda do |name|
        sum = 0
        value = [1, 2, 3].public_send(name, [10, 20], 5..9) { |x, y, z| sum += x * (y || 1) + z }
        [value, sum]
      end
      expect(run.call(:pzip)).to eq run.call(:zip)
      sum = 0
      [1, 2].pzip([3, 4]) { |pair| sum += pair.size * pair.last }
      expect(sum).to eq 14
    end
  end

  describe "#pcombine" do
    it "gives the block one of each, nil for what others lack", :stress do
      [0, 1, 2, 31, 32, 33, 1000].each do |size|
        list = Array.new(size) { |i| i }
        other = Array.new(size / 2) { |i| i * 0.5 }
        expected = list.zip(other, 3..2000).map { |x, y, z| y ? x + y + z : nil }
        expect(backends.map { |backend| list.pcombine(other, 3..2000, backend: backend) { |x, y, z| y ? x + y + z : nil } }).to all(eq(expected))
      end
    end

    it "goes over many" do
      list = (1..200_000)
      expect(list.pcombine(2..200_001, backend: :cpu) { |x, y| y - x }.uniq).to eq [1]
      expect(Array.pnew(400, 500, backend: :cpu) { |y, x| y * 500 + x }.flatten).to eq (0...200_000).to_a
      expect(list.pstencil([-1, 0, 1], 0, backend: :cpu) { |a, b, c| a + c - 2 * b }.uniq).to eq [0]
    end

    it "takes objects, a Symbol, break and an index", :stress do
      people = [DoAsRuby::Person.new(:a, 1), DoAsRuby::Person.new(:b, 2)]
      expect(people.pcombine(people.reverse) { |a, b| a.age > b.age ? a : b }).to all(equal(people[1]))
      expect([1, 2].pcombine([3, 4], &:+)).to eq [4, 6]
      expect([1, 2].pcombine([3, 4]) { |a, b| break a * b if a == 2 }).to eq 8
      expect([1, 2].pcombine([3, 4]).with_index(1) { |(a, b), i| a + b * i }).to eq [4, 10]
      expect([1, 2].pcombine(*Array.new(8) { [1, 2] }) { |a, b, c, d, e, f, g, h, i| a + b + c + d + e + f + g + h + i }).to eq [9, 18]
    end

    it "refuses what is no list, and none" do
      expect { [1].pcombine(5) { |a, b| a + b } }.to raise_error(TypeError, "wrong argument type Integer (must respond to :each)")
      expect { [1].pcombine { |a| a } }.to raise_error(ArgumentError)
      expect { [1].pcombine(*Array.new(9) { [1] }) { |a| a } }.to raise_error(ArgumentError)
    end
  end

  describe "Array.pnew" do
    it "makes arrays of one and more dimensions", :stress do
      expect(Array.pnew(4) { |i| i * i }).to eq [0, 1, 4, 9]
      expect(Array.pnew(0) { |i| i }).to eq []
      backends.each do |backend|
        expect(Array.pnew(2, 3, backend: backend) { |y, x| y * 10 + x }).to eq [[0, 1, 2], [10, 11, 12]]
        expect(Array.pnew(2, 3, 4, backend: backend) { |z, y, x| z * 100 + y * 10 + x })
          .to eq(Array.new(2) { |z| Array.new(3) { |y| Array.new(4) { |x| z * 100 + y * 10 + x } } })
      end
      expect([Array.pnew(0, 3) { 1 }, Array.pnew(3, 0) { 1 }]).to eq [[], [[], [], []]]
      expect([[2, 3, 0], [2, 0, 3], [0, 2, 3]].map { |sizes| Array.pnew(*sizes) { 1 } }).to eq [[[[], [], []], [[], [], []]], [[], []], []]
      expect(Array.pnew(3, 1, 2) { |z, _, x| (z * 2) + x }).to eq [[[0, 1]], [[2, 3]], [[4, 5]]]
      rows = Array.pnew(2, 2) { 0 }
      rows[0] << 1
      expect(rows).to eq [[0, 0, 1], [0, 0]]
    end

    it "makes objects, ends by break, and refuses sizes that are none" do
      expect(Array.pnew(3) { |i| DoAsRuby::Person.new(:a, i) }.map(&:age)).to eq [0, 1, 2]
      expect(Array.pnew(2, 2) { |y, x| break y + x if x == 1 }).to eq 1
      expect { Array.pnew(-1) { 1 } }.to raise_error(ArgumentError, "negative array size")
      expect { Array.pnew("a") { 1 } }.to raise_error(TypeError, "no implicit conversion of String into Integer")
      expect { Array.pnew }.to raise_error(ArgumentError, "no size")
      expect { Array.pnew(-1) }.to raise_error(ArgumentError, "negative array size")
    end

    it "is an Enumerator of the indices without a block, whose with_index is the operation again" do
      backends.each do |backend|
        expect(Array.pnew(3, backend: backend).with_index(5) { |i, n| i * 10 + n }).to eq [5, 16, 27]
        expect(Array.pnew(2, 3, backend: backend).with_index(1) { |(y, x), n| y * 100 + x * 10 + n }).to eq [[1, 12, 23], [104, 115, 126]]
        expect(Array.pnew(2, 3, backend: backend).each_with_index { |at, n| at[0] * 100 + at[1] * 10 + n }).to eq [[0, 11, 22], [103, 114, 125]]
        expect(Array.pnew(2, 2, 2, backend: backend).each { |z, y, x| z * 4 + y * 2 + x }).to eq [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
      end
      expect([Array.pnew(0).with_index { |i, n| i + n }, Array.pnew(2, 0).with_index { |_, n| n }]).to eq [[], [[], []]]
      expect(Array.pnew(4).with_index { |i, n| break [i, n] if i == 2 }).to eq [2, 2]
      expect { Array.pnew(4).with_index { |i, n| i / (2 - n) } }.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq 2 }
      cells = Array.pnew(2, 3)
      expect([cells.size, cells.next, cells.to_a]).to eq [6, [0, 0], [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]]
      expect([Array.pnew(3).to_a, Array.pnew(3).with_index(1).to_a]).to eq [[0, 1, 2], [[0, 1], [1, 2], [2, 3]]]
      expect(cells.inspect).to eq "#<Enumerator: Array:pnew(2, 3)>"
    end
  end

  describe "#pstencil" do
    # The block's values for any two offsets, for a flat list in a shape.
    def around(flat, sizes, offsets)
      strides = sizes.each_index.map { |dimension| sizes.drop(dimension + 1).reduce(1, :*) }
      spans = offsets.transpose.map(&:minmax)
      flat.each_index.map do |place|
        at = strides.zip(sizes).map { |stride, size| place / stride % size }
        next -1 unless at.zip(spans, sizes).all? { |index, (least, greatest), size| index + least >= 0 && index + greatest < size }

        one, other = offsets.map { |offset| flat[place + offset.zip(strides).sum { |by, stride| by * stride }] }
        one + (2 * other)
      end
    end

    it "looks at the neighbours that Ruby would, for any shape and offsets, of Arrays and of MDArrays" do
      random = Random.new(11)
      30.times do
        sizes = Array.new(random.rand(1..3)) { random.rand(1..6) }
        offsets = Array.new(2) { sizes.map { random.rand(-3..3) } }
        flat = Array.new(sizes.reduce(:*)) { random.rand(100) }
        nested = sizes.drop(1).reverse.reduce(flat) { |list, size| list.each_slice(size).to_a }
        backends.each do |backend|
          expect(nested.pstencil(offsets, -1, backend:) { |one, other| one + (2 * other) }.flatten).to eq(around(flat, sizes, offsets)), [sizes, offsets].inspect
          expect(Ikra::MDArray.new(nested).stencil(offsets, -1, backend:) { |one, other| one + (2 * other) }.to_flat_a).to eq(around(flat, sizes, offsets)), [sizes, offsets].inspect
        end
      end
    end

    plain = lambda do |list, offsets, fill, &block|
      list.each_index.map do |i|
        around = offsets.map { |o| i + o }
        around.all? { |j| j.between?(0, list.size - 1) } ? block.call(*list.values_at(*around)) : fill
      end
    end

    it "gives the block its neighbours, one each or to be asked" do
      [0, 1, 2, 31, 32, 33, 1000].each do |size|
        list = Array.new(size) { |i| (i * 7919) % 101 }
        [[-1, 1], [0, 2], [-2, 0], [1, -3], [0]].each do |offsets|
          expected = plain.call(list, offsets, nil) { |*xs| xs.sum * 2 }
          given = backends.map do |backend|
            offsets.size == 1 ? list.pstencil(offsets, nil, backend: backend) { |v| v[0] * 2 } : list.pstencil(offsets, nil, backend: backend) { |a, b| (a + b) * 2 }
          end
          expect(given).to all(eq(expected))
        end
        expect(list.pstencil([-1, 0, 1], 0.0) { |v| v[-1] + v[1] - 2.0 * v[0] })
          .to eq(plain.call(list, [-1, 0, 1], 0.0) { |a, b, c| a + c - 2.0 * b })
      end
    end

    it "goes over rows of rows" do
      grid = Array.new(5) { |y| Array.new(7) { |x| y * 7 + x * x } }
      offsets = [[-1, 0], [0, -1], [0, 1], [1, 0]]
      expected = Array.new(5) do |y|
        Array.new(7) { |x| y.between?(1, 3) && x.between?(1, 5) ? grid[y - 1][x] + grid[y][x - 1] * 2 + grid[y][x + 1] - grid[y + 1][x] : -1 }
      end
      backends.each do |backend|
        expect(grid.pstencil(offsets, -1, backend: backend) { |n, w, e, s| n + w * 2 + e - s }).to eq expected
        expect(grid.pstencil(offsets, -1, backend: backend) { |v| v[-1, 0] + v[0, -1] * 2 + v[0, 1] - v[1, 0] }).to eq expected
      end
      cube = Array.new(3) { |z| Array.new(3) { |y| Array.new(3) { |x| z * 9 + y * 3 + x } } }
      expect(cube.pstencil([[-1, -1, -1], [1, 1, 1]], nil) { |v| v[1, 1, 1] * 100 + v[-1, -1, -1] }.flatten.compact).to eq [2600]
    end

    it "gives an index beside" do
      expect([1, 2, 3].pstencil([-1, 0], 0).with_index(10) { |v, i| v[-1] + i }).to eq [0, 12, 14]
      expect([1, 2, 3].pstencil([-1, 0], 0).with_index(10) { |(a, b), i| a * b + i }).to eq [0, 13, 18]
    end

    it "gives neighbours that are objects, and passes them on to methods" do
      people = Array.new(4) { |i| DoAsRuby::Person.new(:a, i) }
      expect(people.pstencil([1], nil) { |v| v[1] }).to eq [*people.drop(1), nil]
      slope = ->(v) { v[1].age - v[-1].age }
      expect(people.pstencil([-1, 1], 0) { |v| slope.call(v) }).to eq [0, 2, 2, 0]
    end

    it "refuses offsets and rows that do not fit" do
      block = proc { |v| v }
      [[], 5, ["a"], [[1, 0], [1]], [[1, 0], 1], [[]], [nil]].each do |offsets|
        expect { [[1], [2]].pstencil(offsets, 0, &block) }.to raise_error(ArgumentError, /offsets/)
      end
      expect { [[1], [1, 2]].pstencil([[0, 1]], 0, &block) }.to raise_error(ArgumentError, "the rows are of several lengths: 1, 2")
      expect { [1, 2].pstencil([[0, 1]], 0, &block) }.to raise_error(ArgumentError, /arrays within arrays, 2 deep/)
      expect { [1, 2].pstencil([-1, 1, 0], 0) { |a, b| a + b } }.to raise_error(ArgumentError, /2 parameters, and there are 3 offsets/)
      many = ->(count) { (0...40).pstencil((0...count).to_a, 0) { |(first, *)| first + 1 }.first }
      expect(many.call(32)).to eq 1
      expect { many.call(33) }.to raise_error(ArgumentError, /33 offsets: at most 32 neighbours/)
      expect((0...40).pstencil((0...33).to_a, 0) { |v| v[32] }.first).to eq 32
      expect { [1, 2, 3].pstencil([-1, 0], 0) { |v| v[1] } }.to raise_error(IndexError, "no offset reaches there")
      expect { [1, 2, 3].pstencil([-1, 0], 0) { |v| v[-1, 0] } }.to raise_error(ArgumentError, "not as many numbers as there are dimensions")
    end
  end

  it "takes as many lists and dimensions as it says" do
    expect([1].pcombine(*[[2]] * 8) { |*all| all }).to eq [[1, *[2] * 8]]
    expect { [1].pcombine(*[[2]] * 9) { |*all| all } }.to raise_error(ArgumentError, /9 lists: at most 8/)
    expect(Array.pnew(1, 1, 1, 1, 1, 2) { |*at| at }.flatten).to eq [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    expect { Array.pnew(1, 1, 1, 1, 1, 1, 2) { |*at| at } }.to raise_error(ArgumentError, /7 sizes: at most 6/)
  end

  describe "#pmap!" do
    it "replaces the elements, and gives the array", :stress do
      list = [1, 2, 3]
      expect(list.pmap! { |x| x * 1.5 }).to equal list
      expect(list).to eq [1.5, 3.0, 4.5]
      list = [1, 2, 3]
      expect(list.pmap! { |x| x == 3 ? (break :left) : x * 10 }).to eq :left
      expect(list).to eq [10, 20, 3]
      list = [1.5, 3.0, 4.5]
      expect([5, 6].freeze).to(do_as_ruby(:map!) { |x| x })
      expect { [1, 0] }.to(do_as_ruby(:map!) { |x| x + 1 })
      expect { list.pmap! { |x| x > 3 ? raise("too many") : 0 } }.to raise_error(RuntimeError, "too many")
      expect(list).to eq [1.5, 3.0, 4.5]
      expect(list.pmap!.with_index { |_, i| i }).to eq [0, 1, 2]
      expect((1..2)).not_to respond_to(:pmap!)
    end
  end
end
