# frozen_string_literal: true

RSpec.describe Ikra::MDArray do
  nested = [[1, 2, 3], [4, 5, 6]]
  let(:array) { md(nested) }

  on_quick_backends do
    it "is read in blocks by its indices, as in Ruby" do
      array = self.array
      expect(md(4, 5) { |i, j| array[i - 1, j - 1] || -1 }).to same_as([[6, 4, 5, 6, -1], [3, 1, 2, 3, -1], [6, 4, 5, 6, -1], [-1] * 5])
      turned = array.t
      expect(md(3, 2) { |i, j| turned[i, j] * 2.0 }).to same_as(deep_map(nested.transpose) { |x| x * 2.0 })
      part = array[true, 1..2]
      expect((0...2).pmap { |i| part[i, -1] + part.size + part.shape[1] + part.ndim }).to eq([3 + 8, 6 + 8])
      pending = array * 10
      expect((0...4).pmap { |i| [array[-3 - i, 0], array[i + 2, 1], array[2**62 * (i - 2), 0], array[0, -(2**62)]] }).to eq(Array.new(4) { |i| [nil, nil, (1 if i == 2), nil] })
      expect((0...6).pmap { |i| pending[i / 3, i % 3] }).to eq(nested.flatten.map { |x| x * 10 })
      line = md([0.5, 1.5])
      expect(array.map_with_index { |x, i, _| x * line[i] }).to same_as([[0.5, 1.0, 1.5], [6.0, 7.5, 9.0]])
    end

    it "loses nothing that many elements add to one" do
      expected = (0...20_000).each_with_object([0, 0, 0]) { |x, sums| sums[x % 3] += x }
      sums = described_class.zeros(3, dtype: :i64)
      md((0...20_000).to_a).peach { |x| sums[x % 3] += x }
      expect(sums).to same_as(expected)
      halves = md([[0.5, 0.0], [0.0, 0.0]])
      turned = halves.t
      md((0...20_000).to_a).peach { |x| turned[x % 2, 0] -= 1 }
      (0...20_000).peach { |x| turned[x % 2, 1] += 0.5 }
      expect(halves).to same_as([[-9999.5, -10_000.0], [5000.0, 5000.0]])
      bits = md([0, -1])
      (0...64).peach { |i| bits[0] |= 1 << (i % 63) }
      (0...64).peach { |i| bits[1] &= ~(1 << (i % 62)) }
      expect(bits).to same_as([(1 << 63) - 1, -(1 << 62)])
    end

    it "adds to elements as Ruby does where it cannot be one step, or at all" do
      whole = md([1, 2, 3])
      (0...3).peach { |i| whole[i] += 1.5 }
      expect(whole).to same_as([2, 3, 4])
      narrow = described_class.zeros(3, dtype: :u8)
      (0...3).peach { |i| narrow[i] += i }
      expect((0...3).pmap { |i| whole[i] += i }).to eq([2, 4, 6])
      expect(narrow).to same_as([0, 1, 2])
      expect { (0...1).peach { |i| whole[i + 3] += 1 } }.to raise_error(NoMethodError, /\+.*nil/)
      full = md([2**63 - 2])
      expect { (0...2).peach { full[0] += 1 } }.to raise_error(Ikra::IntegerOverflow)
      expect(full).to same_as([2**63 - 2])
    end

    # The sum of an element's neighbours in two arrays, or 0 at an edge of the first. nil: there is no neighbour in the
    # second.
    def around(one, other)
      rows, columns = one.shape
      one.map_with_index(dtype: :i64) do |x, i, j|
        next 0 if i == 0 || j == 0 || i == rows - 1 || j == columns - 1

        below = other[i + 1, j + 1]
        below.nil? ? -1 : x + one[i - 1, j] + one[i, j + 1] + below
      end
    end

    def around_in_ruby(one, other)
      one.each_with_index.map do |row, i|
        row.each_with_index.map do |x, j|
          next 0 if i == 0 || j == 0 || i == one.size - 1 || j == row.size - 1

          below = other[i + 1] && other[i + 1][j + 1]
          below ? x + one[i - 1][j] + one[i][j + 1] + below : -1
        end
      end
    end

    it "may be of other shapes than those which the code was compiled for" do
      all = ->(rows, columns) { Array.new(rows) { |i| Array.new(columns) { |j| i * 100 + j } } }
      shapes = [[[5, 5], [5, 5]], [[4, 7], [4, 7]], [[7, 4], [7, 4]], [[5, 5], [4, 5]], [[5, 5], [5, 4]], [[5, 5], [9, 9]], [[3, 3], [1, 1]], [[5, 5], [5, 5]], [[1, 6], [2, 2]]]
      shapes.each do |one, other|
        lists = [all.call(*one), all.call(*other)]
        expect(around(*lists.map { |list| md(list) })).to same_as(around_in_ruby(*lists)), [one, other].inspect
      end
      rows = [all.call(4, 4), [[]]]
      expect(around(md(rows[0]), md(0, 3, dtype: :i64))).to same_as(around_in_ruby(*rows))
      expect(around(md(rows[0]).t, md(rows[0])[true, 1..3])).to same_as(around_in_ruby(rows[0].transpose, rows[0].map { |row| row[1..3] }))
    end

    it "is checked once for several indices and arrays of one shape" do
      one, other = md(8, 9) { |i, j| i * j }, md(8, 9) { |i, j| i + j }
      rows, columns = one.shape
      told = Ikra.explain do
        one.map_with_index do |x, i, j|
          if i == 0 || j == 0 || i == rows - 1 || j == columns - 1
            x
          else
            one[i + 1, j] & one[i - 1, j] & one[i, j - 1] & one[i, j + 1] & other[i - 1, j - 1] & other[i + 1, j + 1]
          end
        end
      end
      left = told.sections.flat_map(&:checks).select { |check| check.kind == :speculation }.sum(&:left)
      # that the row is one of the array's, which the number of elements says
      expect(left).to be <= 1
      expect(told.value[3, 4]).to eq(one[2, 4] & one[4, 4] & one[3, 3] & one[3, 5] & other[2, 3] & other[4, 5])
    end

    it "is read in its own iterators" do
      array = self.array
      expect(array.map_with_index { |x, i, j| x + array[i, j - 1] }).to same_as(nested.map { |row| row.each_index.map { |j| row[j] + row[j - 1] } })
    end

    it "is written in blocks" do
      array, out = self.array, md(3, 2)
      array.peach_with_index { |x, i, j| out[j, i] = x + 0.5 }
      expect(out).to same_as(deep_map(nested.transpose) { |x| x + 0.5 })
      row = out[1]
      (0...2).peach { |i| row[i] = i }
      expect(out[1]).to same_as([0.0, 1.0])
      flags = md(4, dtype: :bool)
      (0...4).peach { |i| flags[-1 - i] = i > 1 }
      expect(flags).to same_as([true, true, false, false])
    end

    it "traps where an element cannot be written, and changes nothing" do
      out = md(2, 2, dtype: :u8)
      expect { (0...3).peach { |i| out[i, 0] = i + 1 } }.to raise_error(IndexError, "index [2, 0] is outside of the array's shape")
      expect { (0...2).peach { |i| out[i, 0] = i * 256 } }.to raise_error(RangeError, "element [1, 0]: 256 does not fit u8 (0 to 255)")
      expect { (0...2).peach { |i| out[-3 - i, 0] = 1 } }.to raise_error(IndexError, "index [-3, 0] is outside of the array's shape")
      expect { (0...2).peach { |i| out[i, 0] = 0.0 / i } }.to raise_error(FloatDomainError)
      expect(out).to same_as([[0, 0], [0, 0]])
      out.freeze
      expect { (0...2).peach { |i| out[i, 0] = 1 } }.to raise_error(FrozenError, "can't modify frozen Ikra::MDArray")
    end

    it "raises at the line where it was looked at, or written to" do
      array, list = md(2, dtype: :u8), [0, 1]
      lines = [
        -> { list.peach { |i|
          array[7 + i] = 1 } }, # IndexError
        -> { list.peach { |i|
          array[i] = 256 } }, # RangeError
        -> { list.peach { |i|
          array[i] = 0.0 / 0 } }, # FloatDomainError
        -> { list.peach { |i|
          array[i] = nil } }, # TypeError
        -> { list.pmap { |i|
          array[i, 0, 0] } }, # ArgumentError
        -> { list.pmap { |i|
          i + array[i + 2] } } # NoMethodError or TypeError: there is nil
      ]
      lines.each do |look|
        line = look.source_location[1] + 1
        expect(&look).to raise_error(StandardError) { |error| expect(error.backtrace.first).to eq("#{__FILE__}:#{line}") }
      end
    end

    it "tells whoever looks for races of the lines in the block" do
      array = md(2)
      expect { [0, 1].peach(check: :races) { |i|
        array[0] = i } }
        .to raise_error(Ikra::RaceError, /element 0 \(at #{__FILE__}:#{__LINE__ - 1}\) .* element 1 \(at #{__FILE__}:#{__LINE__ - 1}\)/)
    end

    it "is stored to only what it may hold" do
      flags, integers, floats = md(2, dtype: :bool), md(2), md(2)
      [1, 1.0, nil].each { |value| expect { [0, 1].peach { |i| flags[i] = value } }.to raise_error(TypeError, "element [0]: what is stored is neither true nor false") }
      expect { [0, 1].peach { |i| flags[i] = i == 0 ? true : 1 } }.to raise_error(TypeError, "element [1]: what is stored is neither true nor false")
      expect { [0, 1].peach { |i| integers[i] = nil } }.to raise_error(TypeError, "element [0]: what is stored is not a number")
      expect { [0, 1].peach { |i| floats[i] = true } }.to raise_error(TypeError, "element [0]: what is stored is not a number")
      expect([flags, integers, floats]).to match([same_as([false, false]), same_as([0.0, 0.0]), same_as([0.0, 0.0])])
    end

    it "says that parts of it are made outside of blocks" do
      array = self.array
      message = /\Ain a block, array\[…\] is an element: give it an Integer for each dimension/
      expect { [0].pmap { |i| array[i][0] } }.to raise_error(Ikra::CompileError, message)
      expect { [0].pmap { |i| array[i, true] } }.to raise_error(Ikra::CompileError, message)
      expect { [0].pmap { |i| array[i, 0..1] } }.to raise_error(Ikra::CompileError, message)
      expect { [0].peach { |i| array[i] = 0 } }.to raise_error(Ikra::CompileError, message)
      expect { md(2) { |i| array[i][0] }.sync }.to raise_error(Ikra::CompileError, message)
      expect { [0].pmap { |i| array[i, nil] } }.to raise_error(TypeError, "nil is no index of an element")
      expect { [0].pmap { |i| array[1.5, i] } }.to raise_error(TypeError, "1.5 is no index of an element")
      rows = nil
      expect { rows = [[0, 1].pmap(unsupported: :ruby) { |i| array[i][0] }, md(2, unsupported: :ruby) { |i| array[i].sum }.to_a] }
        .to output(/plain Ruby/).to_stderr
      expect(rows).to eq([nested.map(&:first), nested.map(&:sum)])
    end

    it "is written in blocks while expressions look at it" do
      array = self.array
      before = array + 0
      (0...2).peach { |i| array[i, 0] = array[i, 0] + 100 }
      expect([before, array]).to match([same_as(nested), same_as([[101, 2, 3], [104, 5, 6]])])
    end

    it "may be of any kind" do
      %i[i64 i32 u8 f64 f32].each do |kind|
        array = md(nested, dtype: kind)
        out = md(6, dtype: kind)
        (0...6).peach { |i| out[i] = array[i / 3, i % 3] + 1 }
        expect(out).to same_as((array.flatten + 1).to_a)
      end
    end

    it "is found again when another array of its form is captured" do
      kernel = ->(array) { (0...2).pmap { |i| array[i, 0] } }
      results = [array, array * 2, md([[7], [8]]), array[true, 1..], md([[1.5], [2.5]])].map { |each| kernel.call(each) }
      expect(results).to eq([[1, 4], [2, 8], [7, 8], [2, 5], [1.5, 2.5]])
    end
  end

  it "says what kernels do not know of it" do
    array = self.array
    expect { (0...2).pmap { |i| array.sum + i } }.to raise_error(Ikra::CompileError, /kernels do not know Ikra::MDArray#sum/)
  end

  it "says what to do with one that an object or an Array holds" do
    holder, list = Struct.new(:grid).new(array), [array]
    advice = /Instead: assign the array to a local variable before the block \(grid = object\.grid\)/
    expect { (0...2).pmap { |i| holder.grid[i, 0] } }.to raise_error(Ikra::CompileError, /cannot hold an Ikra::MDArray, which grid of .* is.*#{advice}/m)
    expect { (0...2).pmap { |i| list[0][i, 0] } }.to raise_error(Ikra::CompileError, /which an element of an array is.*#{advice}/m)
    expect { [holder].pmap { |each| each.grid[0, 0] } }.to raise_error(Ikra::CompileError, advice)
    expect { list.pmap { |each| each[0, 0] } }.to raise_error(Ikra::CompileError, /which element 0 is.*#{advice}/m)
  end
end
