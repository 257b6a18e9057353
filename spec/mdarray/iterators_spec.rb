# frozen_string_literal: true

RSpec.describe Ikra::MDArray do
  nested = [[5, -3, 8], [0, 7, -1]]
  let(:array) { md(nested) }

  on_quick_backends do
    it "maps" do
      scale = 0.5
      expect(array.map { |x| x * scale }).to same_as(deep_map(nested) { |x| x * scale })
      expect(array.t.collect { |x| x > 0 }).to same_as(deep_map(nested.transpose) { |x| x > 0 })
      expect((array + 1).map(&:even?)).to same_as(deep_map(nested) { |x| (x + 1).even? })
      expect(array.map(dtype: :f32) { |x| x + 0.1 }).to have_attributes(dtype: :f32)
      expect(array.map { 1 }).to same_as([[1] * 3] * 2)
      expect(array.map.with_index { |x, i| x * i }).to eq(nested.flatten.each_with_index.map { |x, i| x * i })
    end

    it "gives the value of break where it maps in place" do
      expect(array.map! { |x| x == 8 ? (break :out) : x }).to be(:out)
      expect(array).to same_as(nested)
    end

    it "maps in place", :stress do
      copy = array.dup
      expect(array.map! { |x| x * 2 }).to be(array)
      array[true, 1].map! { |x| x + 1.7 }
      expect(array).to same_as(nested.map { |a, b, c| [a * 2, (b * 2 + 1.7).truncate, c * 2] })
      expect(copy).to same_as(nested)
      expect { array.map! { |x| 10 / x }.sync }.to raise_error(ZeroDivisionError)
      expect(array[0, 0]).to eq(10)
    end

    it "gives blocks the indices", :stress do
      expect(array.map_with_index { |x, i, j| x * 100 + i * 10 + j }).to same_as(nested.each_with_index.map { |row, i| row.each_with_index.map { |x, j| x * 100 + i * 10 + j } })
      expect(md([4, 5]).map_with_index { |x, i| x - i }).to same_as([4, 4])
      sum = 0
      expect(array.peach_with_index { |x, i, j| sum += x * i * j }).to be(array)
      expect(sum).to eq(7 - 2)
    end

    it "goes over elements for what the block does", :stress do
      sum = 0
      expect(array.peach { |x| sum += x }).to be(array)
      expect(sum).to eq(16)
      found = nil
      expect(array.peach { |x| break x * 10 if x == 7 }).to eq(70)
      expect(found).to be_nil
      expect(array.peach.to_a).to eq(nested.flatten)
    end

    it "is gone over in order, by any block, as Ruby's own lists are" do
      seen = []
      for x in array do seen << "#{x}!" end
      expect(seen).to eq(nested.flatten.map { |number| "#{number}!" })
      expect(array.each { |number| seen << number }).to be(array)
      expect(array.each { |number| break seen.clear.push(number) if number == 8 }).to eq([8])
      expect { array.each { |number| puts number } }.to output("#{nested.flatten.join("\n")}\n").to_stdout
      pairs = []
      expect(array.each_with_index { |number, index| pairs << [number, index] }).to be(array)
      expect([pairs, array.each_with_index.to_a]).to all(eq(nested.flatten.each_with_index.to_a))
      expect(array.each.with_index(1).to_a).to eq(nested.flatten.each.with_index(1).to_a)
      expect(array.each_slice(2).to_a).to eq(nested.flatten.each_slice(2).to_a)
      expect(array.each.size).to eq(6)
      expect { array.each(backend: :cpu) { |number| number } }.to raise_error(ArgumentError)
    end

    it "selects", :stress do
      expect(array.select { |x| x > 0 }).to same_as([5, 8, 7])
      expect(array.t.filter(&:odd?)).to same_as(nested.transpose.flatten.select(&:odd?))
      expect((array * 2).reject { |x| x > 0 }).to same_as([-6, 0, -2])
      long = Array.new(70_000) { |i| i * 7919 % 10_007 }
      [[0, 1000], [5000, 70_000], [10_006, 256], [10_007, 257]].each do |limit, count|
        expect(md(long)[0...count].select { |x| x >= limit }.to_a).to eq(long.first(count).select { |x| x >= limit })
      end
      expect(md(long).reshape(100, 700).t[true, 3..5].reject(&:odd?)).to same_as(long.each_slice(700).to_a.transpose.flat_map { |row| row[3..5] }.reject(&:odd?))
      expect(array.select { |x| x > 100 }).to have_attributes(shape: [0], dtype: :i64)
      expect(array.select { |_| false }).to have_attributes(shape: [0], dtype: :i64)
      expect(array.reject { nil }).to same_as(nested.flatten)
    end

    it "combines several arrays" do
      expect(array.combine(array.map(&:abs)) { |x, y| x + y }).to same_as(deep_map(nested) { |x| x + x.abs })
      expect(array.combine([10, 20, 30], 0.5, array * 2) { |x, y, z, w| x * y + z - w }).to same_as(nested.map { |row| row.zip([10, 20, 30]).map { |x, y| x * y + 0.5 - x * 2 } })
      expect(array.row(0).zip(array.row(1))).to same_as(nested[0].zip(nested[1]))
      expect(array.zip(array)).to same_as(deep_map(nested) { |x| [x, x] })
      pairs = []
      expect(md([1, 2]).zip([3, 4]) { |x, y| pairs << [x, y] }).to be_nil
      expect(pairs).to eq([[1, 3], [2, 4]])
      expect { array.combine(md([1, 2])) { |x, y| x + y } }.to raise_error(ArgumentError, "shapes [2, 3] and [2] do not fit")
      expect { array.combine { |x| x } }.to raise_error(ArgumentError, "no array to combine with")
    end

    it "gives neighbours as pstencil does" do
      grid = Array.new(5) { |i| Array.new(6) { |j| (i * 7 + j * 3) % 11 } }
      offsets = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]]
      expect(md(grid).stencil(offsets, 0) { |n, w, c, e, s| n + w - 4 * c + e + s }).to same_as(grid.pstencil(offsets, 0) { |n, w, c, e, s| n + w - 4 * c + e + s })
      expect(md(grid).t.stencil([[0, -1], [1, 1]], -1) { |v| v[0, -1] * v[1, 1] }).to same_as(grid.transpose.pstencil([[0, -1], [1, 1]], -1) { |v| v[0, -1] * v[1, 1] })
      expect((md(grid[0]) * 2).stencil([-1, 1], 0.5) { |a, b| (a + b) * 0.5 }).to same_as(grid[0].map { |x| x * 2 }.pstencil([-1, 1], 0.5) { |a, b| (a + b) * 0.5 })
      expect { md(grid).stencil([-1, 1], 0) { |a, b| a + b } }.to raise_error(ArgumentError, "offsets of 1 dimensions, for an array of 2")
    end

    it "gives the elements of objects to blocks, which may change them", :stress do
      people = Array.new(4) { |i| DoAsRuby::Person.new("p#{i}", i * 10) }
      array = md(people).reshape(2, 2)
      expect(array.map(&:age)).to same_as([[0, 10], [20, 30]])
      array.peach { |person| person.age += 1 }
      array.t[0].each { |person| person.age += 100 }
      expect(people.map(&:age)).to eq([101, 11, 121, 31])
      expect(array.map { |person| person }.to_a.flatten).to eq(people)
      expect(array.select { |person| person.age > 100 }.to_a).to eq([people[0], people[2]])
      expect(array.max_by(&:age)).to be(people[2])
    end

    it "is the whole of Enumerable on the host" do
      expect(array.each_slice(4).to_a).to eq(nested.flatten.each_slice(4).to_a)
      expect(array.sort_by { |x| -x }).to eq(nested.flatten.sort_by { |x| -x })
      expect(array.group_by(&:even?).transform_values(&:to_a)).to eq(nested.flatten.group_by(&:even?))
      expect(array.each.next).to eq(5)
      expect([array.include?(7), array.first, array.first(2), array.uniq.size, array.lazy.map { |x| x + 1 }.first]).to eq([true, 5, [5, -3], 6, 6])
      expect(array.each_with_object([]) { |x, all| all << x }).to eq(nested.flatten)
    end

    it "runs blocks as plain Ruby where that is asked for" do
      logger = Ikra.logger
      Ikra.logger = Struct.new(:lines) { def warn(line) = lines << line }.new([])
      log = []
      expect(array.map(unsupported: :ruby) { |x| log << x; x + 1 }).to same_as(deep_map(nested) { |x| x + 1 })
      expect(log).to eq(nested.flatten)
      expect(md(2, 2, unsupported: :ruby) { |i, j| "#{i}#{j}".to_i }).to same_as([[0, 1], [10, 11]])
      expect(array.map_with_index(unsupported: :ruby, dtype: :f64) { |x, i, j| "#{x + i + j}".to_i })
        .to same_as(nested.each_with_index.map { |row, i| row.each_with_index.map { |x, j| (x + i + j).to_f } })
      expect(array.select(unsupported: :ruby) { |x| x.to_s.size == 1 }).to same_as([5, 8, 0, 7])
      expect(array.combine(1, unsupported: :ruby) { |x, y| "#{x}#{y}".to_i }).to same_as(deep_map(nested) { |x| "#{x}1".to_i })
      list = Array.new(600) { |i| i % 7 }
      expect(md(list).inject(unsupported: :ruby) { |x, y| "#{x + y}".to_i }).to eq(list.sum)
      expect(md(list).inject(5, unsupported: :ruby) { |x, y| "#{x + y}".to_i }).to eq(list.sum + 5)
      expect(md([list, list]).inject(unsupported: :ruby, axis: 0) { |x, y| "#{x + y}".to_i }).to same_as(list.map { |x| x * 2 })
      expect(md(list).reshape(2, 300).scan(unsupported: :ruby) { |x, y| "#{x + y}".to_i }).to same_as(list.each_slice(300).map { |part| part.pscan(:+) })
      expect(array.stencil([[0, -1], [0, 1]], 0, unsupported: :ruby) { |x, y| "#{x + y}".to_i }).to same_as(nested.pstencil([[0, -1], [0, 1]], 0) { |x, y| x + y })
      expect(array.stencil([[0, -1], [0, 1]], 0, unsupported: :ruby) { |v| "#{v[0, -1]}".to_i }).to same_as(nested.pstencil([[0, -1], [0, 1]], 0) { |v| v[0, -1] })
      expect(array.any?(unsupported: :ruby) { |x| "#{x}" == "7" }).to be(true)
      expect(array.all?(unsupported: :ruby) { |x| "#{x}".size < 3 }).to be(true)
      expect(array.map(unsupported: :ruby, dtype: :bool) { |x| "#{x}"["-"] }).to same_as(deep_map(nested, &:negative?))
      expect { array.map(unsupported: :ruby) { |x| "#{x}" } }.to raise_error(TypeError, /values of several kinds, or of one that arrays of numbers cannot hold: String/)
      expect(Ikra.logger.lines).to all(start_with("Ikra runs a block as plain Ruby:"))
    ensure
      Ikra.logger = logger
    end
  end

  it "says what is wrong with a block" do
    expect { array.map { |x, y| x + y } }.to raise_error(ArgumentError, "the block has 2 parameters, and it is given one element: give it 1, or none")
    expect { array.map_with_index { |x, i| x + i } }.to raise_error(ArgumentError, "the block has 2 parameters, and it is given an element and 2 indices: give it 3, or none")
    expect { array.inject { |x| x } }.to raise_error(ArgumentError, "the block has 1 parameter, and it is given two values: give it 2, or none")
    expect { array.peach { |x| puts x } }.to raise_error(Ikra::CompileError)
    expect { array.combine(1) }.to raise_error(LocalJumpError)
    expect { array.map(unknown: 1) { |x| x } }.to raise_error(ArgumentError, /unknown/)
    expect { array.map { |x| x > 0 ? x : 0.5 } }.to raise_error(StandardError)
  end
end
