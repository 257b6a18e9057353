# frozen_string_literal: true

RSpec.describe Ikra::MDArray do
  # The class and the message of what a block raises.
  def raised
    yield
    nil
  rescue StandardError => error
    [error.class, error.message]
  end

  on_quick_backends do
    division = [ZeroDivisionError, "divided by 0"]

    it "raises when somebody looks at what a block was to make, each time, and names the block's line" do
      line = __LINE__ + 1
      made = md([1, 0, 2]).map { |x| 10 / x }
      2.times do
        expect { made.to_a }.to raise_error(ZeroDivisionError, "divided by 0") { |error|
          expect(error.backtrace.first).to eq("#{__FILE__}:#{line}")
          expect(error.ikra.to_a).to eq([1, 0])
        }
      end
      looks = [-> { made[0] }, -> { made.sync }, -> { made.to_bytes }, -> { made.sum }, -> { made.max }, -> { made == made.dup }, -> { Marshal.dump(made) },
               -> { made.sort }, -> { made.select { |x| x > 1 } }, -> { made.cumsum }, -> { made.first }, -> { made.each_slice(2).to_a },
               -> { made[0] = 1 }, -> { made.map! { 1 }.sync }, -> { (0...3).pmap { |i| made[i] } }, -> { made.each { |x| x } }, -> { made.inject(:+) }]
      expect(looks.map { |look| raised(&look) }).to eq([division] * looks.size)
    end

    it "poisons what is computed from it, whether that can raise or not" do
      made = md(3) { |i| 6 / (1 - i) }
      whole = made.map { |x| x * 2.5 }
      twice = whole.combine(md([1, 2, 3])) { |x, i| i / i * x }
      [whole, twice, whole + 1, made.dup, made[1..], made.reshape(3, 1), twice.to(:f32), made.t].each do |array|
        expect(raised { array.to_a }).to eq(division)
      end
    end

    it "tells of the first line that raised, also where what comes after it is waited for, and raises for what was never made" do
      person = DoAsRuby::Person.new("x", 5)
      line = __LINE__ + 1
      made = md([1, 0, 2]).map { |x| 10 / x }
      expect { made.map { |x| person.age / x }.to_a }.to raise_error(ZeroDivisionError) { |error| expect(error.backtrace.first).to eq("#{__FILE__}:#{line}") }
    end

    it "leaves arrays that exist as they were where something else writes to a part of them, which is waited for" do
      array, made = md([1, 0, 2]), md([1, 0, 2]).map { |x| 10 / x }
      expect(raised { array.peach_with_index { |x, i| array[i] = 5 / x } }).to eq(division)
      expect(raised { array[0..1] = made[0..1] }).to eq(division)
      expect(raised { array[0..1].map! { |x| 5 / x } }).to eq(division)
      expect(array).to same_as([1, 0, 2])
    end

    it "tells once of what was written to a whole array, which then has what it had" do
      array, made = md([1, 0, 2]), md([1, 0, 2]).map { |x| 10 / x }
      line = __LINE__ + 1
      writes = [-> { array.map! { |x| 10 / x } }, -> { array[true] = made }, -> { array.fill(8 / array) }, -> { array[true] = made + 1 }]
      expect(array.map! { |x| 10 / x }).to be(array)
      expect(array.inspect).to eq("#<Ikra::MDArray 3 i64, poisoned>")
      expect { array.sum }.to raise_error(ZeroDivisionError) { |error| expect(error.backtrace.first).to eq("#{__FILE__}:#{line + 1}") }
      expect(array).to same_as([1, 0, 2])
      looks = [-> { array.to_a }, -> { array[0] }, -> { array.sync }, -> { array[0] = 5 }, -> { array[0..1] = 5 }, -> { array.max }, -> { array.sort },
               -> { array.each { |x| x } }, -> { (0...3).pmap { |i| array[i] } }, -> { array.t.to_a }, -> { Marshal.dump(array) }]
      writes.product(looks) do |write, look|
        write.call
        expect(raised(&look)).to eq(division)
        expect(array).to same_as([1, 0, 2])
      end
    end

    it "takes back all that was written to a whole array since the first write that raised, and nothing before that" do
      array = md([1, 0, 2])
      array.map! { |x| x + 1 }
      line = __LINE__ + 1
      array.map! { |x| 10 / (x - 1) }
      array.map! { |x| x / 0 }
      array[true] = 7
      expect { array.sync }.to raise_error(ZeroDivisionError) { |error| expect(error.backtrace.first).to eq("#{__FILE__}:#{line}") }
      expect(array).to same_as([2, 1, 3])
      20.times { |k| array.map! { |x| x + (10 / (k + 1)) } }
      expect(array.sum).to eq(6 + (3 * (1..20).sum { |k| 10 / k }))
    end

    it "tells once also where what is looked at has a copy of the elements, and keeps what is written after that" do
      looks = [->(a) { a.t.sum }, ->(a) { a == a.dup }, ->(a) { a.include?(3) }, ->(a) { a.dot(a) }, ->(a) { a.sort(axis: 0) }, ->(a) { a[a > 0].to_a },
               ->(a) { a.select { |x| x > 1 } }, ->(a) { a.count(3) }, ->(a) { a.dup.to_a }, ->(a) { (a + 1).to_a }, ->(a) { a.map { |x| x + 1 }.to_a }, ->(a) { a.t.to_a }]
      looks.each do |look|
        arrays = Array.new(3) { md([[1, 0], [2, 3]]) }
        arrays.each { |array| array.map! { |x| 6 / x } }
        expect(arrays.map { |array| raised { look.(array) } }).to eq([division] * 3)
        arrays[0].fill(4)
        arrays[1][0, 0] = 8
        expect(arrays.map(&:to_a)).to eq([[[4, 4], [4, 4]], [[8, 0], [2, 3]], [[1, 0], [2, 3]]])
      end
    end

    it "poisons for good what was made of an array in the meantime" do
      array = md([1, 0, 2])
      array.map! { |x| 10 / x }
      copy, pending, made, view = array.dup, array + 1, array.map { |x| x * 2 }, array[1..]
      expect(raised { array.sync }).to eq(division)
      2.times { expect([copy, pending, made].map { |other| raised { other.to_a } }).to eq([division] * 3) }
      expect(view).to same_as([0, 2])
    end

    it "has copies of its own also where a launch ends while they are made" do
      array = md([1, 2])
      allow(array.__storage).to receive(:unsure?).and_return(true, false)
      copy = array.dup
      copy.fill(7)
      expect([array.to_a, copy.to_a]).to eq([[1, 2], [7, 7]])
    end

    # The expected contents of an array, and its expected exception: that of the first write that raised, with the
    # contents before it.
    model = Class.new do
      attr_reader :list

      # @param poison [Array, nil] that of a copy, for good; it is emptied when the exception is raised
      def initialize(list, poison: nil)
        @list = list
        @poison = poison
      end

      # A whole write with the block's value. The contents stay where it raises.
      def write
        list = yield(@list)
        @list = list unless doubtful?
      rescue ZeroDivisionError
        @doubt = [:untold] unless doubtful?
      end

      # An exception that was raised by a copy is not raised again.
      def doubtful? = @poison || @doubt&.any?

      # Reads the array: gives whether that raises.
      def look
        doubtful?.tap { @poison ? @poison.clear : @doubt&.clear }
      end

      def copy = self.class.new(@list.dup, poison: @poison || (@doubt if doubtful?))
    end

    it "tells of each write that raised, and takes back what it wrote, in whatever order arrays are written, copied and looked at" do
      12.times do |seed|
        random = Random.new(seed)
        arrays = [[md([3, 1, 2, 5]), model.new([3, 1, 2, 5])]]
        40.times do |step|
          array, known = arrays.sample(random: random)
          k = random.rand(1..6)
          case random.rand(9)
          when 0, 1
            array.map! { |x| 60 / (x - k) }
            known.write { |list| list.map { |x| 60 / (x - k) } }
          when 2
            array.map! { |x| x + k }
            known.write { |list| list.map { |x| x + k } }
          when 3
            array[true] = array * k
            known.write { |list| list.map { |x| x * k } }
          when 4
            array.fill(k)
            known.write { |list| list.map { k } }
          when 5
            arrays << [array.dup, known.copy] if arrays.size < 6
          when 6
            other, of_other = arrays.sample(random: random)
            array[true] = other.map { |x| x - k } unless of_other.doubtful?
            known.write { of_other.list.map { |x| x - k } } unless of_other.doubtful?
          when 7
            told = raised { array[1] = k }
            expect([seed, step, told]).to eq([seed, step, known.look ? division : nil])
            known.write { |list| list.dup.tap { |changed| changed[1] = k } } unless told
          else
            told = raised { expect([seed, step, array.to_a]).to eq([seed, step, known.list]) }
            expect([seed, step, told]).to eq([seed, step, known.look ? division : nil])
          end
        end
        arrays.each do |array, known|
          known.look && raised { array.to_a }
          expect([seed, raised { array.to_a } || array.to_a]).to eq([seed, known.look ? division : known.list])
        end
      end
    end

    it "keeps an array's own elements when another is written to all of it" do
      one, other = md([1, 2, 3]), md([4, 5, 6])
      one[true] = other
      one[0] = 9
      other[1] = 0
      expect([one.to_a, other.to_a]).to eq([[9, 5, 6], [4, 0, 6]])
      one.fill(other)
      other.map! { |x| x + 1 }
      expect([one.to_a, other.to_a]).to eq([[4, 0, 6], [5, 1, 7]])
    end

    it "is told as it would have been told at once" do
      expect { md(2, 2, dtype: :u8) { |i, j| (i * 200) + (j * 100) }.sync }.to raise_error(RangeError, "element [1, 1]: 300 does not fit u8 (0 to 255)")
      line = __LINE__ + 1
      pending = md([4, 0]).then { |array| 8 / array }
      made = pending.map { |x| 1 / (x - 2) }
      expect { made.sync }.to raise_error(ZeroDivisionError) { |error| expect(error.backtrace.first).to start_with("#{__FILE__}:#{line}:") }
      made = md([1.0, -1.0]).map { |x| Math.sqrt(x) }
      expect { made.sync }.to raise_error(Math::DomainError, /out of domain/)
      made = md([1, 2]).map { |x| raise ArgumentError, "#{x} is even" if x.even?; x }
      expect { made.sync }.to raise_error(ArgumentError, "2 is even")
    end

    it "shows that it is poisoned, and shows no element" do
      made = md([1, 0]).map { |x| 1 / x }
      expect(made.inspect).to eq("#<Ikra::MDArray 2 i64, poisoned>")
      expect([made.where, made.shape, made.dtype, made.size]).to eq([:poisoned, [2], :i64, 2])
      expect(made.to_html).to eq("<p>MDArray 2 i64, poisoned</p>")
      made.free
      expect(made.inspect).to include("freed")
    end

    it "raises at once where the section may have to run again, or has more to do than store what the block gives" do
      array, count = md([1, 0]), 0
      expect { array.map { |x| count += 1; 1 / x } }.to raise_error(ZeroDivisionError)
      expect { array.map { |x| break 7 if x > 1; 1 / x } }.to raise_error(ZeroDivisionError)
      expect { array.sum { |x| 1 / x } }.to raise_error(ZeroDivisionError)
      expect { array.map { |i| [1, 2][i] / (i - 1) } }.to raise_error(ZeroDivisionError)
      expect(count).to eq(0)
    end
  end
end
