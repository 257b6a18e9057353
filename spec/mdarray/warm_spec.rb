# frozen_string_literal: true

# A block that has run before takes the fast path, where nothing has changed. Only the natives that are called show it.
RSpec.describe "Blocks that run again" do
  # The number of sections that ran meanwhile.
  def sections
    count = 0
    allow(Ikra).to receive(:__section).and_wrap_original do |section, *arguments|
      count += 1
      section.call(*arguments)
    end
    yield
    count
  end

  # The same code each time, with other values.
  def doubled(array, &around) = (around || :itself.to_proc).call(array).map { |x| x * 2.0 }

  def scaled(array, scale) = array.map { |x| x * scale }

  def doubled_in_place(array) = array.map! { |x| x * 2.0 }

  let(:floats) { md([1.5, -2.0, 4.0]).tap { |array| 2.times { doubled(array) } } }

  on_quick_backends do
    it "are looked up once, and then launched" do
      array = md([1.5, -2.0, 4.0])
      first = doubled(array)
      made = nil
      # The fast path begins after the first section.
      expect(sections { made = Array.new(3) { doubled(array) } }).to eq(0)
      expect([first, *made]).to all same_as([3.0, -4.0, 8.0])
      expect(made.last).to have_attributes(dtype: :f64, shape: [3], frozen?: false, view?: false)
    end

    it "have a shape, which need not be the one before" do
      floats
      nested, long = [[1.0, 2.0], [3.0, 4.0]], Array.new(3000) { |i| i * 0.5 }
      expect(sections do
        expect(doubled(md(nested))).to same_as(deep_map(nested) { |x| x * 2.0 })
        expect(doubled(doubled(md([0.25])))).to same_as([1.0])
      end).to eq(0)
      # For few elements another kernel may be made.
      2.times { expect(doubled(md(long))).to same_as(long.map { |x| x * 2.0 }) }
    end

    it "run in place" do
      array = md([1.0, 2.0])
      copy = array.dup
      expect(doubled_in_place(array)).to be(array)
      expect(sections { 3.times { doubled_in_place(array) } }).to eq(0)
      expect([array, copy]).to match([same_as([16.0, 32.0]), same_as([1.0, 2.0])])
    end

    it "keep what others look at" do
      array = md([1.0, 2.0])
      doubled_in_place(array)
      view, pending = array[1..], array + 1.0
      doubled_in_place(array)
      expect([array, view, pending]).to match([same_as([4.0, 8.0]), same_as([8.0]), same_as([3.0, 5.0])])
    end

    it "are given the variables as they are now" do
      scaled(md([1.0, 2.0]), 3.0)
      expect(sections { expect([4.0, -0.5, 1e300].map { |scale| scaled(md([1.0, 2.0]), scale).to_a }).to eq([[4.0, 8.0], [-0.5, -1.0], [1e300, 2e300]]) }).to eq(0)
      expect(scaled(md([1.0, 2.0]), 3)).to same_as([3.0, 6.0])
      expect(scaled(md([1, 2]), 3)).to same_as([3, 6])
      expect(scaled(md([1, 2]), 2.5)).to same_as([2.5, 5.0])
      expect(scaled(md([1, 2]), (2**40) + 1)).to same_as([(2**40) + 1, (2**41) + 2])
      expect(scaled(md([1.0, 2.0]), 0.5)).to same_as([0.5, 1.0])
      expect { scaled(md([1.0, 2.0]), nil).sync }.to raise_error(TypeError, "nil can't be coerced into Float")
      expect { scaled(md([1, 2]), 2**62).sync }.to raise_error(Ikra::IntegerOverflow)
    end

    it "see variables that other code has assigned" do
      offset = 1.0
      add = -> { md([1.0]).map { |x| x + offset } }
      raise_it = -> { offset += 1.0 }
      expect(Array.new(3) { raise_it.call && add.call.to_a }).to eq([[3.0], [4.0], [5.0]])
      offset = 7
      expect(add.call).to same_as([8.0])
    end

    it "see self, and what is in it" do
      holder = Class.new do
        attr_writer :scale

        def initialize(scale) = @scale = scale
        def scaled(array) = array.map { |x| x * @scale }
      end
      one, other = holder.new(2.0), holder.new(3.0)
      2.times { one.scaled(md([1.0])) }
      expect([one, other].map { |object| object.scaled(md([1.5])).to_a }).to eq([[3.0], [4.5]])
      one.scale = 4
      expect(one.scaled(md([1.5]))).to same_as([6.0])
    end

    it "compute, reduce and look for elements of other arrays, of other values" do
      run = lambda do |x, y, number, **options|
        [(x * number + y).to_a, (x * y).sum, x.sum(**options) { |e| e * number }, x.combine(y, **options) { |a, b| a - b }.to_a,
         x.any?(**options) { |e| e > number }, x.stencil([-1, 0], x[0]) { |a, b| a + b }.to_a]
      end
      wanted = lambda do |x, y, number|
        [x.zip(y).map { |a, b| a * number + b }, x.zip(y).map { |a, b| a * b }.sum, x.map { |e| e * number }.sum, x.zip(y).map { |a, b| a - b },
         x.any? { |e| e > number }, [x[0], *x.each_cons(2).map(&:sum)]]
      end
      lists = [[[1.5, -2.0, 4.0], [0.5, 8.0, 2.0]], [[3, 4, -7], [5, 6, 1]], [[2.0, 0.25], [1.0, -4.0]]]
      [2, 0.5, -3].product(lists) do |number, (x, y)|
        expect(run.call(md(x), md(y), number)).to eq(wanted.call(x, y, number))
        expect(run.call(md(y), md(x), number, overflow: :raise)).to eq(wanted.call(y, x, number))
      end
      same = md([1.0, 2.0])
      expect(Array.new(3) { run.call(same, same, 2.0) }).to all eq(wanted.call([1.0, 2.0], [1.0, 2.0], 2.0))
      expect(run.call(same, md([3.0, 4.0]), 2.0)).to eq(wanted.call([1.0, 2.0], [3.0, 4.0], 2.0))
    end

    it "see views of other forms, and what cannot be computed" do
      array = md([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
      rows = array.to_a
      2.times do
        expect((array.t + array.t).to_a).to eq(rows.transpose.map { |row| row.map { |x| x * 2 } })
        expect((array[true, 1..] + array[true, 0..1]).to_a).to eq(rows.map { |row| row.each_cons(2).map(&:sum) })
        expect((array + array[0]).to_a).to eq(rows.map { |row| row.zip(rows[0]).map(&:sum) })
        expect((array[true, 0, :new] + array).to_a).to eq(rows.map { |row| row.map { |x| x + row[0] } })
        expect(array.sum(axis: 0).to_a).to eq(rows.transpose.map(&:sum))
        expect { (md([1, 2]) / md([1, 0])).sync }.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq(1) }
        expect((md([4, 2]) / md([1, 2])).to_a).to eq([4, 1])
      end
    end

    it "tell kinds of elements apart" do
      arrays = { f64: [1.5, 2.5], f32: [1.5, 2.5], i64: [3, -4], i32: [3, -4], u8: [3, 4] }.map { |dtype, list| md(list, dtype: dtype) }
      2.times { arrays.each { |array| expect(doubled(array)).to same_as(array.to_a.map { |x| x * 2.0 }) } }
      bytes, flags = md([1, 0], dtype: :u8), md([true, false])
      truth = ->(array) { array.map { |x| x ? 1 : 2 } }
      2.times { expect([truth.call(bytes), truth.call(flags)]).to match([same_as([1, 1]), same_as([1, 2])]) }
      expect(doubled(md([1.5, Float::INFINITY], dtype: :object))).to same_as([3.0, Float::INFINITY])
    end

    it "are within what makes elements of their own kind" do
      arrays = -> { [md([1.5, 2.25]), md([1.5, 2.25], dtype: :f32), md([3, 4]), md([3, 4], dtype: :u8)] }
      half = ->(array) { array.map! { |x| x * 1.5 } }
      3.times { expect(arrays.call.map { |array| half.call(array).to_a }).to eq([[2.25, 3.375], [2.25, 3.375], [4, 6], [4, 6]]) }
      large = md([200], dtype: :u8)
      expect { half.call(large).sync }.to raise_error(RangeError)
      expect(large).to same_as([200])
    end

    it "leave frozen arrays alone" do
      array = md([1.0, 2.0])
      2.times { doubled_in_place(array) }
      array.freeze
      expect { doubled_in_place(array) }.to raise_error(FrozenError)
      expect { doubled_in_place(array[0..0]) }.to raise_error(FrozenError)
      expect(doubled(array)).to same_as([8.0, 16.0])
      expect(doubled(array)).not_to be_frozen
    end

    it "go over views, pending arrays and empty ones as ever" do
      floats
      array = md([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
      expect(doubled(array.t)).to same_as([[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]])
      expect(doubled(array[1, true])).to same_as([8.0, 10.0, 12.0])
      expect(doubled(array[0])).to same_as([2.0, 4.0, 6.0])
      expect(doubled(array + 1.0)).to same_as([[4.0, 6.0, 8.0], [10.0, 12.0, 14.0]])
      expect(doubled(md([], dtype: :f64))).to same_as([])
      expect(doubled_in_place(array[true, 1])).to same_as([4.0, 10.0])
      expect(doubled_in_place(array[0])).to same_as([2.0, 8.0, 6.0])
      expect(array).to same_as([[2.0, 8.0, 6.0], [4.0, 10.0, 6.0]])
    end

    it "tell of arrays that were freed" do
      array = md([1.0])
      2.times { doubled(array) }
      array.free
      expect { doubled(array) }.to raise_error(ArgumentError, "the array's elements are freed")
    end

    it "know the kind of the elements of an array that was freed" do
      made = Array.new(3) { doubled(md([1.0])) }.each(&:free)
      expect(made.map(&:dtype)).to eq(%i[f64 f64 f64])
    end

    it "are counted as sections are" do
      draws = -> { md([1.0, 2.0]).map { |x| x + rand } }
      draws.call
      floats
      drawn = Array.new(2) do
        Ikra.srand(7)
        [draws.call.to_a, floats.map { |x| x + rand }.to_a, draws.call.to_a]
      end
      expect(drawn.first).to eq(drawn.last)
      expect(drawn.first.first).not_to eq(drawn.first.last)
    end

    it "are run with options, and with other defaults" do
      floats
      tenth = ->(**options) { md([1.0]).map(**options) { |x| x * 0.1 } }
      2.times { tenth.call }
      expect(tenth.call(precision: :f32).to_a).not_to eq([0.1])
      expect(tenth.call(dtype: :f32)).to have_attributes(dtype: :f32)
      expect { tenth.call(presicion: :f32) }.to raise_error(ArgumentError, /unknown option/)
      expect(tenth.call).to same_as([0.1])
      begin
        Ikra.config.precision = :f32
        expect(tenth.call.to_a).not_to eq([0.1])
      ensure
        Ikra.config.precision = :f64
      end
      expect(tenth.call).to same_as([0.1])
    end

    it "are run where the backend is another" do
      floats
      before = Ikra.config.backend
      Ikra.config.backend = :reference
      expect(Ikra.explain { doubled(floats) }.sections.map(&:backend)).to eq([:reference])
      expect(doubled(floats)).to same_as([3.0, -4.0, 8.0])
    ensure
      Ikra.config.backend = before
    end

    it "show up in profiles and explanations" do
      floats
      expect(Ikra.profile { doubled(floats) }.sections.size).to eq(1)
      expect(Ikra.explain { doubled(floats) }.sections.size).to eq(1)
      expect(sections { expect(doubled(floats)).to same_as([3.0, -4.0, 8.0]) }).to eq(0)
    end

    it "are sections where columns stay" do
      floats
      expect(Ikra.resident { [doubled(floats).to_a, doubled_in_place(md([1.0])).to_a] }).to eq([[3.0, -4.0, 8.0], [2.0]])
    end

    it "raise what they raised, and are told of" do
      divide = ->(array) { array.map { |x| 7 / x } }
      2.times { expect(divide.call(md([7, 2]))).to same_as([1, 3]) }
      array = md([1, 0, 2])
      2.times do
        expect { divide.call(array).sync }.to raise_error(ZeroDivisionError, "divided by 0") { |error| expect(error.ikra.index).to eq(1) }
      end
      poisoned = divide.call(array)
      expect { divide.call(poisoned).sync }.to raise_error(ZeroDivisionError)
      expect(divide.call(md([7, 2]))).to same_as([1, 3])
      in_place = -> { array.map! { |x| 7 / x } }
      2.times { expect { in_place.call.sync }.to raise_error(ZeroDivisionError) }
      expect(array).to same_as([1, 0, 2])
    end

    it "are left by break" do
      stop = ->(array) { array.map { |x| x > 2.0 ? (break x) : x * 2.0 } }
      2.times { expect(stop.call(md([1.0, 2.0]))).to same_as([2.0, 4.0]) }
      expect(stop.call(md([1.0, 3.0, 4.0]))).to eq(3.0)
    end

    it "have a parameter, or none" do
      index = ->(array) { array.map { Ikra.index } }
      2.times { expect(index.call(md([1.5, 2.5]))).to same_as([0, 1]) }
      2.times { expect { md([1.0]).map { |x, y| [x, y] } }.to raise_error(ArgumentError, /2 parameters/) }
      twice = lambda { |x| x * 2.0 }
      2.times { expect(md([1.0]).map(&twice)).to same_as([2.0]) }
      2.times { expect(md([1, -2]).map(&:abs)).to same_as([1, 2]) }
      2.times { expect { md([1.0]).map(&->(x, y) { x + y }) }.to raise_error(ArgumentError) }
    end

    it "call the Procs that they capture now" do
      apply = ->(change) { md([4.0]).map { |x| change.call(x) } }
      double, halve = ->(x) { x * 2.0 }, ->(x) { x / 2.0 }
      expect([double, double, halve, double].map { |change| apply.call(change).to_a }).to eq([[8.0], [8.0], [2.0], [8.0]])
    end

    it "read the constants and arrays that they reach now" do
      stub_const("FACTOR", 2.0)
      times = -> { md([1.5]).map { |x| x * FACTOR } }
      2.times { expect(times.call).to same_as([3.0]) }
      stub_const("FACTOR", 4)
      expect(times.call).to same_as([6.0])
      list = [1.0, 2.0]
      sums = -> { md([1.0]).map { |x| x + list[0] + list.size } }
      2.times { sums.call }
      list.replace([5.0])
      expect(sums.call).to same_as([7.0])
      other = md([10.0, 20.0])
      pairs = -> { md([1.0, 2.0]).map { |x| x + other[1] } }
      2.times { pairs.call }
      other[1] = 30.0
      expect(pairs.call).to same_as([31.0, 32.0])
    end

    it "run on several threads" do
      floats
      made = Array.new(4) { |number| Thread.new { Array.new(50) { |i| scaled(md([1.0, 2.0]), number + i.to_f).to_a } } }.map(&:value)
      expect(made).to eq(Array.new(4) { |number| Array.new(50) { |i| [number + i.to_f, 2 * (number + i.to_f)] } })
    end

    it "live through the GC" do
      floats
      scaled(floats, 2.0)
      begin
        GC.stress = true
        made = Array.new(3) { |i| [doubled(floats), scaled(floats, i.to_f), doubled_in_place(md([1.0, 2.0]))] }
      ensure
        GC.stress = false
      end
      expect(made.map { |arrays| arrays.map(&:to_a) }).to eq(Array.new(3) { |i| [[3.0, -4.0, 8.0], [1.5 * i, -2.0 * i, 4.0 * i], [2.0, 4.0]] })
    end
  end

  it "look up methods anew when these are others", unless: ENV["IKRA_BACKEND"] == "cuda" do
    expect(run_ruby(<<~RUBY)).to eq("[3.0]\n[3.0]\n[-1.0]\n[3.5]\n")
      Ikra.config.backend = :cpu
      array = Ikra::MDArray.new([1.5])
      double = -> { p array.map { |x| x * 2.0 }.to_a }
      2.times { double.call }
      Float.prepend(Module.new { def *(_other) = -1.0 })
      double.call
      class Float
        def twice = self + self
      end
      add = -> { array.map { |x| x.twice }.to_a }
      2.times { add.call }
      class Float
        def twice = self + 2.0
      end
      p add.call
    RUBY
  end

  it "run in a forked child", unless: ENV["IKRA_BACKEND"] == "cuda" do
    expect(run_ruby(<<~RUBY)).to eq("child [3.0, 8.0]\nparent [3.0]\n")
      Ikra.config.backend = :cpu
      array = Ikra::MDArray.new([1.5])
      double = ->(array) { array.map { |x| x * 2.0 } }
      2.times { double.call(array) }
      child = fork { puts "child \#{[*double.call(array).to_a, *double.call(Ikra::MDArray.new([4.0])).to_a]}" }
      Process.wait(child)
      puts "parent \#{double.call(array).to_a}"
    RUBY
  end

  it "choose where they run as sections do" do
    array = md([1.5, 2.5])
    made = Array.new(3) { doubled(array).to_a }
    expect(made).to eq([[3.0, 5.0]] * 3)
  end
end
