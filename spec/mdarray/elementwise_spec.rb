# frozen_string_literal: true

RSpec.describe Ikra::MDArray do
  def outcome
    yield.inspect
  rescue ZeroDivisionError => error
    error.message
  end

  integers = [[7, -7, 3], [2, 9, -1]]
  floats = [[0.5, -2.25, 1e10], [3.0, -0.0, 0.125]]
  others = [[2, 3, -2], [5, -4, 1]]

  on_quick_backends do
    it "does with each two elements what Ruby does" do
      %i[+ - * / % < <= > >= & | ^].each do |name|
        expect(md(integers).public_send(name, md(others))).to same_as(deep_zip(integers, others) { |x, y| x.public_send(name, y) }), name.to_s
      end
      %i[+ - * / % < <= > >=].each do |name|
        expect(md(floats).public_send(name, md(others))).to same_as(deep_zip(floats, others) { |x, y| x.public_send(name, y) }), name.to_s
        expect(md(others).public_send(name, md(floats) + 0.5)).to same_as(deep_zip(others, floats) { |x, y| x.public_send(name, y + 0.5) }), name.to_s
      end
      [[1], [1.0]].each { |list| expect((md(list) % md([0.0])).then { |array| outcome { array.to_a } }).to eq(outcome { [list[0] % 0.0] }) }

      expect(md(integers).eq(md(integers).dup)).to same_as([[true] * 3] * 2)
      expect(md(integers).ne(md(others))).to same_as([[true] * 3] * 2)
      expect(md(integers) ** 3).to same_as(deep_map(integers) { |x| x**3 })
      # CUDA's pow may differ in the last digit.
      expect((md(floats).abs ** 0.5).to_a.flatten).to match(floats.flatten.map { |x| be_within(1e-14 * x.abs).of(x.abs**0.5) })
      expect(md(integers) << 2).to same_as(deep_map(integers) { |x| x << 2 })
      expect(md(integers) >> 1).to same_as(deep_map(integers) { |x| x >> 1 })
    end

    it "takes numbers on either side" do
      [3, -2, 2.5].each do |number|
        %i[+ - * / %].each do |name|
          expect(md(integers).public_send(name, number)).to same_as(deep_map(integers) { |x| x.public_send(name, number) }), "#{name} #{number}"
          expect(number.public_send(name, md(integers))).to same_as(deep_map(integers) { |x| number.public_send(name, x) }), "#{number} #{name}"
          expect(number.public_send(name, md(floats) + 7)).to same_as(deep_map(floats) { |x| number.public_send(name, x + 7) }), "#{number} #{name}"
        end
      end
      expect(2 < md(integers)).to same_as(deep_map(integers) { |x| 2 < x })
    end

    it "has the functions of Math" do
      list = [0.25, 0.5, 1.0]
      (Ikra::MDArray::Math.singleton_methods - %i[atan2 hypot acosh]).each do |name|
        expect(md(list).public_send(name).to_a).to match(list.map { |x| Math.public_send(name, x) }.map { |x| x.infinite? ? x : be_within(1e-14 * x.abs).of(x) }), name.to_s
        expect(Ikra::MDArray::Math.public_send(name, 0.5)).to eq(Math.public_send(name, 0.5))
      end
      expect(md(list).atan2(2.0).to_a).to match(list.map { |x| be_within(1e-14).of(Math.atan2(x, 2.0)) })
      expect(Ikra::MDArray::Math.hypot(3, md([4, 5]))).to same_as([5.0, Math.hypot(3, 5)])
      expect(md([4, 9]).sqrt).to same_as([2.0, 3.0])
    end

    it "has the methods of numbers" do
      numbers = [2.5, -2.5, 0.0, 1e10]
      %i[floor ceil round truncate abs zero? positive? negative? nan? finite? -@].each do |name|
        expect(md(numbers).public_send(name)).to same_as(numbers.map(&name)), name.to_s
      end
      %i[even? odd? zero? floor -@ abs ~ positive?].each do |name|
        expect(md([3, -4, 0]).public_send(name)).to same_as([3, -4, 0].map(&name)), name.to_s
      end
      expect(md([3]).nan? | md([3]).finite?).to same_as([true])
      expect(md([5, -1]).clamp(0, 3)).to same_as([3, 0])
      expect(md([5, 2]).minimum(md([4, 3]))).to same_as([4, 2])
      expect(md([5.0, 2.0]).maximum(3)).to same_as([5.0, 3.0])
      expect(+md([1])).to same_as([1])
      expect(md([7, 8]).fdiv(2)).to same_as([3.5, 4.0])
    end

    it "divides Integers that no Float holds as Ruby does" do
      list, by = [3 * (2**53 + 1), -(2**63), 2**62 + 1, 0, 5], [3, 2**53 + 1, 2**61 - 1, 0, 0]
      wanted = list.zip(by).map { |x, y| x.fdiv(y) }
      expect(md(list).fdiv(md(by))).to same_as(wanted)
      expect(md(list).fdiv(3)).to same_as(list.map { |x| x.fdiv(3) })
      expect(md([3, 2**31 - 1], dtype: :i32).fdiv(2**62 + 1)).to same_as([3, 2**31 - 1].map { |x| x.fdiv(2**62 + 1) })
      expect([md([1]).fdiv(2**64), md([1]).fdiv(2.5), md([1.5]).fdiv(md([2])), md([1, 2], dtype: :u8).fdiv(md([0.5], dtype: :f32))].map(&:to_a)).to eq([[2.0**-64], [0.4], [0.75], [2.0, 4.0]])
      expect(md([1.5], dtype: :f32).fdiv(2).dtype).to be(:f32)
    end

    it "clamps between what Ruby clamps between, and leaves NaN" do
      expect(md([-1.5, -0.0, 0.5, 2.0, Float::NAN]).clamp(0, 1.0).to_a.map(&:inspect)).to eq(%w[0.0 -0.0 0.5 1.0 NaN])
      expect(md([1, 5, 9]).clamp(md([2, 2, 2]), 5)).to same_as([2, 5, 5])
      [[5, 1], [1.0, 0], [Float::NAN, 1], [1, Float::NAN], [3, 3], [-Float::INFINITY, Float::INFINITY]].each do |least, greatest|
        ruby, ours = [-> { [2.0.clamp(least, greatest)] }, -> { md([2.0]).clamp(least, greatest).to_a }].map do |clamp|
          clamp.call
        rescue ArgumentError => error
          error.message
        end
        expect(ours).to eq(ruby), "#{least} #{greatest}"
      end
    end

    it "combines booleans" do
      one, other = md([true, true, false]), md([true, false, false])
      expect([one & other, one | other, one ^ other, ~one, one.eq(other)].map(&:to_a))
        .to eq([[true, false, false], [true, true, false], [false, true, false], [false, false, true], [true, false, true]])
      expect(Ikra::MDArray.where(one, md([1, 2, 3]), 0)).to same_as([1, 2, 0])
      expect(Ikra::MDArray.where(one, 1.5, md([1, 2, 3]))).to same_as([1.5, 1.5, 3.0])
    end

    it "repeats dimensions of size 1" do
      row, column = [[1, 2, 3]], [[10], [20]]
      expect(md(row) + md(column)).to same_as(deep_zip(row, column) { |x, y| x + y })
      expect(md(integers) * md([2, 0, 1])).to same_as([[14, 0, 3], [4, 0, -1]])
      expect(md(integers) + md([[[1]], [[2]]])).to same_as([1, 2].map { |n| deep_map(integers) { |x| x + n } })
      expect { md(integers) + md([1, 2]) }.to raise_error(ArgumentError, "shapes [2, 3] and [2] do not fit")
    end

    it "gives the kinds that the document says" do
      kinds = %i[u8 i32 i64 f32 f64]
      table = kinds.map { |one| kinds.map { |other| (md([1, 2], dtype: one) + md([1, 2], dtype: other)).tap(&:to_a).dtype } }
      expect(table).to eq([%i[u8 i32 i64 f32 f64], %i[i32 i32 i64 f64 f64], %i[i64 i64 i64 f64 f64], %i[f32 f64 f64 f32 f64], %i[f64 f64 f64 f64 f64]])
      expect(kinds.map { |kind| (md([1, 2], dtype: kind) + 1).dtype }).to eq(kinds)
      expect(kinds.map { |kind| (1.5 * md([1, 2], dtype: kind)).dtype }).to eq(%i[f64 f64 f64 f32 f64])
    end

    it "computes Floats of 32 bits in 32 bits" do
      single = ->(x) { [x].pack("e").unpack1("e") }
      one = Array.new(40) { |i| single.call(Math.sin(i) * 10.0**(i - 20)) }
      other = Array.new(40) { |i| single.call(Math.cos(i) * 10.0**(10 - i / 2)) }
      %i[+ - * /].each { |name| expect(md(one, dtype: :f32).public_send(name, md(other, dtype: :f32))).to same_as(one.zip(other).map { |x, y| single.call(x.public_send(name, y)) }) }
      expect((md(one, dtype: :f32) * 0.1 + 3.0) / 7).to same_as(one.map { |x| single.call(single.call(single.call(x * single.call(0.1)) + 3.0) / 7) })
      expect(md([1e38], dtype: :f32) * 10).to same_as([Float::INFINITY])
    end

    it "computes a block in 32 bits where it is told to" do
      single = ->(x) { [x].pack("e").unpack1("e") }
      values = Array.new(300) { |i| single.call(Math.sin(i) * 10.0**(i % 20 - 10)) }
      tenth = single.call(0.1)
      wanted = values.map { |x| single.call(single.call(single.call(single.call(x * x) + tenth) / single.call(x - 3.0)) + single.call(single.call(x.abs)**tenth)) }
      array = md(values, dtype: :f32)
      offset = 0.1
      found = array.map(dtype: :f32, precision: :f32) { |x| (x * x + 0.1) / (x - 3) + x.abs**offset }
      # On GPUs, powers are NVIDIA's.
      found.to_a.zip(wanted) { |x, y| expect(x).to be_within(y.abs * 1e-6).of(y) }
      expect(array.map(precision: :f32) { |x| (x * 0.1 - 1) / 3 }).to same_as(((array * 0.1 - 1) / 3).to_a)
      expect(array.map(precision: :f32) { |x| x.abs < 0.1 }).to same_as((array.abs < 0.1).to_a)
      # The block decides the precision of its values, but not that of the pending expression.
      doubles = md(values) * 1.1
      expect(doubles.map(precision: :f32) { |x| x }).to same_as(values.map { |x| x * 1.1 })
      expect(doubles.map(precision: :f32) { |x| x + 0 }).to same_as(values.map { |x| single.call(x * 1.1) })
    end

    it "computes in 64 bits without a block, whatever blocks are told for all" do
      list = Array.new(300) { |i| Math.sin(i) * 10.0**(i % 9 - 4) }
      matrix = list.each_slice(20).to_a
      methods = {
        operators: -> { ((md(list) * 3 + 0.1) / 7).to_a + (md([1.0]) > 1.0 - 1e-12).to_a + md(list).sin.floor.to_a },
        reduced: -> { [(md([0.1]) * 3).sum, *%i[sum mean variance stddev minmax argmin inject].map { |name| (md(list) * 0.3).public_send(name, *(:+ if name == :inject)) }] },
        along: -> { %i[sum mean variance min max argmin argmax].map { |name| md(matrix).public_send(name, axis: 0).to_a } },
        under_way: -> { [*%i[cumsum cumprod cummin cummax].flat_map { |name| [md(list), md(matrix)].map { |one| one.public_send(name).to_a } }, md(matrix).scan(:+, axis: 0).to_a] },
        products: -> { [md(matrix).matmul(md(matrix).t).to_a, md(list).dot(list), md(matrix).dot([0.1] * 20).to_a] },
        made: -> { [Ikra::MDArray.linspace(0, 1, 7), Ikra::MDArray.arange(0, 1, 0.1), Ikra::MDArray.full(2, 0.1), Ikra::MDArray.where(md(list) > 0.1, 0.1, md(list))].map(&:to_a) },
        drawn: -> { Ikra.srand(5) && [Ikra::MDArray.rand(5), Ikra::MDArray.rand(5, within: 0.5..0.7), Ikra::MDArray.randn(5)].map(&:to_a) },
        parts: -> { [md(list)[md(list) > 0.1], md(matrix)[[3, 1]], md(matrix).t, md(list).sort].map(&:to_a) + [md(list).count(list[3]), md(list).include?(list[7])] },
        pictures: -> { [md([[0.1, 1e300], [0.7, 1e299]]).to_png, md(matrix).heatmap] }
      }
      wanted = methods.transform_values { |method| method.call.inspect }
      begin
        Ikra.config.precision = :f32
        methods.each { |name, method| expect([name, method.call.inspect]).to eq [name, wanted[name]] }
        expect(md(list).map { |x| x * 0.1 }).to same_as(md(list).map(precision: :f32) { |x| x * 0.1 }.to_a)
        expect(md(list).map { |x| x * 0.1 }.to_a).not_to eq(list.map { |x| x * 0.1 })
        expect(md(list).sum { |x| x * 0.1 }).to eq(md(list).map { |x| x * 0.1 }.sum)
        expect(list.psum { |x| x * 0.1 }).to eq(list.pmap { |x| x * 0.1 }.psum)
        expect([list.psum, list.preduce(:+), list.pscan(:+).last, list.plazy.reduce(:+)]).to eq [list.sum, *[list.inject(:+)] * 3]
      ensure
        Ikra.config.precision = :f64
      end
    end

    it "traps where a result does not fit" do
      expect { (md([1, 200], dtype: :u8) + 100).to_a }.to raise_error(RangeError, "element [1]: 300 does not fit u8 (0 to 255)")
      expect { (-md([[0], [1]], dtype: :u8)).to_a }.to raise_error(RangeError, "element [1, 0]: -1 does not fit u8 (0 to 255)")
      expect { (md([2**30], dtype: :i32) * 2).to_a }.to raise_error(RangeError, "element [0]: 2147483648 does not fit i32 (-2147483648 to 2147483647)")
      expect { (md([2**62]) * 2).to_a }.to raise_error(Ikra::IntegerOverflow)
      expect { (md([1, 0]).then { |a| 6 / a }).to_a }.to raise_error(ZeroDivisionError, "divided by 0")
      expect { md([1.0, -1.0]).sqrt.to_a }.to raise_error(Math::DomainError)
      expect(~md([1, 255], dtype: :u8)).to same_as([254, 0])
      expect(md([200], dtype: :u8) < 1000).to same_as([true])
    end

    it "traps where a number is wider than the array, whoever looks" do
      bytes, words = md([200, 1], dtype: :u8), md([-1, 7], dtype: :i32)
      { maximum: [300, [300, 300]], minimum: [-5, [-5, -5]], :% => [-3, [-1, -2]], :| => [1000, [1000, 1001]], :^ => [256, [456, 257]], :>> => [-1, [400, 2]] }.each do |name, (number, wanted)|
        message = "element [0]: #{wanted[0]} does not fit u8 (0 to 255)"
        [:to_a, :sum, :sync, ->(array) { array.map { |x| x }.to_a }, ->(array) { (array + 0).to_a }].each do |look|
          expect { look.to_proc.call(bytes.public_send(name, number)) }.to raise_error(RangeError, message), "#{name} #{look}"
        end
      end
      { :% => [2**40, (2**40) - 1], :& => [2**31, 2**31], maximum: [2**40, 2**40], :| => [-(2**40), -1], :>> => [-31, -(2**31)], :/ => [-1, 1] }.each do |name, (number, wanted)|
        result = words.public_send(name, number)
        next expect(result[0]).to eq(wanted) if wanted.between?(-(2**31), (2**31) - 1) && name != :| && name != :>>

        expect { result.to_a }.to raise_error(RangeError)
      end
      expect { bytes.clamp(300, 400).to_a }.to raise_error(RangeError, "element [0]: 300 does not fit u8 (0 to 255)")
      expect { (md([-(2**31)], dtype: :i32) / -1).to_a }.to raise_error(RangeError, /\Aelement \[0\]: 2147483648 does not fit i32/)
    end

    it "computes with numbers that are wider than the array where the results fit" do
      bytes = md([200, 1], dtype: :u8)
      results = [bytes.minimum(300), bytes.maximum(-5), bytes.clamp(-5, 100), bytes % 300, bytes & 1000, bytes & -1, bytes - 1 + 1, 255 - bytes, 300 & bytes, bytes >> 1, 1000 % md([7, 3], dtype: :u8)]
      expect(results.map(&:dtype).uniq).to eq([:u8])
      expect(results.map(&:to_a)).to eq([[200, 1], [200, 1], [100, 1], [200, 1], [200, 0], [200, 1], [200, 1], [55, 254], [8, 0], [100, 0], [6, 1]])
      expect { (300 - bytes).to_a }.to raise_error(RangeError, "element [1]: 299 does not fit u8 (0 to 255)")
      expect([1000 < bytes, bytes < 1000, 2 * md([1.5], dtype: :f32), 2.5 - md([1, 2]), 10 / md([3, -3]), 2**md([3, 4])].map(&:to_a))
        .to eq([[false, false], [true, true], [3.0], [1.5, 0.5], [3, -4], [8, 16]])
    end

    it "compares with every Integer as Ruby does" do
      whole, fractions, single = [-1, 0, (2**63) - 1], [-1.5, 9007199254740992.0, 9007199254740994.0, 1e300, Float::INFINITY, Float::NAN], [16777216.0, -2.0]
      numbers = [0, -(2**64), 2**64, (2**53) + 1, -(2**53) - 1, 2**2000, -(2**2000), (10**300).to_i, 16777217]
      { whole => :i64, fractions => :f64, single => :f32 }.each do |list, dtype|
        array = md(list, dtype: dtype)
        numbers.product(%i[< <= > >=]) do |number, name|
          wanted = [list.map { |x| x.public_send(name, number) }, list.map { |x| number.public_send(name, x) }]
          expect([array.public_send(name, number).to_a, number.public_send(name, array).to_a]).to eq(wanted), "#{dtype} #{name} #{number}"
        end
        wanted = numbers.map { |number| [list.map { |x| x == number }, list.map { |x| x != number }, list.include?(number)] }
        expect(numbers.map { |number| [array.eq(number).to_a, array.ne(number).to_a, array.include?(number)] }).to eq(wanted)
      end
      expect(md([0.1], dtype: :f32).eq(0.1)).to same_as([true])
    end

    it "compares objects as Ruby does" do
      words = md(["a", nil, "c"], dtype: :object)
      expect([words.eq("a"), words.ne(nil), words.eq(md(%w[a b c]))]).to match([same_as([true, false, false]), same_as([true, false, true]), same_as([true, false, true])])
    end

    it "converts to another array, also where it is of the kind" do
      array = md([1, 2])
      copies = [array.to(:i64), (array + 0).to(:i64)]
      copies.each { |copy| copy[0] = 9 }
      expect([array, *copies]).to match([same_as([1, 2]), same_as([9, 2]), same_as([9, 2])])
      total = nil
      expect(Ikra.explain { total = ((array + 1).to(:i64) * 2).sum }.sections.size).to eq(1)
      expect(total).to eq(10)
    end

    it "converts" do
      expect(md([1.9, -1.9]).to(:i64)).to same_as([1, -1])
      expect(md([0, 2]).to(:bool)).to same_as([false, true])
      expect(md([true, false]).to(:f32)).to same_as([1.0, 0.0])
      expect(md([true, false]).to(:u8)).to same_as([1, 0])
      expect(md([1, 2]).to(:f64)).to same_as([1.0, 2.0])
      expect(md([1, 2]).to(:object).dtype).to be(:object)
      expect(md([1, 2], dtype: :object).to(:i32)).to have_attributes(dtype: :i32, to_a: [1, 2])
      expect { md([[1], [nil]], dtype: :object).to(:i32) }.to raise_error(TypeError, "element [1, 0]: nil is not a number")
      expect { md([1, 256]).to(:u8).to_a }.to raise_error(RangeError, "element [1]: 256 does not fit u8 (0 to 255)")
      expect { md([1.0, Float::NAN]).to(:i64).to_a }.to raise_error(FloatDomainError, "element [1]: NaN")
      expect { md([1e10]).to(:i32).to_a }.to raise_error(RangeError, /\Aelement \[0\]: 10000000000 does not fit i32/)
      expect { md([[1.0, 1e30]]).to(:i64).to_a }.to raise_error(RangeError, /\Aelement \[0, 1\]: 1000000000000000019884624838656 does not fit i64/)
      expect { md([-Float::INFINITY]).to(:u8).to_a }.to raise_error(FloatDomainError, "element [0]: -Infinity")
      expect(md([-(2.0**63), 255.9]).to(:i64)).to same_as([-(2**63), 255])
      array = md([1, 2])
      array[true] = md([1.0, 1e30])
      expect { array.sync }.to raise_error(RangeError, /\Aelement \[1\]: 1000000000000000019884624838656 does not fit i64/)
    end

    it "makes one kernel of an expression, and no array" do
      a, b = md([[1.0, 2.0], [3.0, 4.0]]), md([10.0, 20.0])
      total = nil
      explanation = Ikra.explain { total = (a * 2 + b).sum }
      expect(total).to eq(80.0)
      expect(explanation.sections.size).to eq(1)
      expect(Ikra.explain { ((a * 2 + b).sqrt - a.t).to_a }.sections.size).to eq(1)
    end

    it "makes parts of a long one" do
      array = md([1, 2])
      200.times { array += 1 }
      expect(array).to same_as([201, 202])
    end

    it "keeps what a loop extends short, by storing what a second kernel would compute again" do
      x, slope = md([1.0, 2.0, 3.0]), 0.25
      w, plain = md([0.0] * 3), [0.0] * 3
      lengths = Array.new(12) do
        guess = x * w + 1.0
        explanation = Ikra.explain { (guess * guess).sum }
        w -= guess * x * slope
        plain = plain.each_with_index.map { |v, i| v - ((((i + 1.0) * v) + 1.0) * (i + 1.0) * slope) }
        explanation.sections.map { |section| section.code(:ir).lines.size }
      end
      expect(lengths.last(9).uniq.size).to eq(1)
      expect(w).to same_as(plain)
    end

    it "stores no shared part where memory is too small for it" do
      whole = md([1.0, 2.0])
      part = whole * 3.0
      expect((part + 1.0).sum).to eq(11.0)
      allow(Ikra::MDArray.const_get(:Run)).to receive(:expression).and_raise(Ikra::DeviceMemoryError)
      expect((part + 2.0).sum).to eq(13.0)
    end

    it "computes what is shared once" do
      a = md([1.5, 2.5])
      b = a * a
      expect(b * b + b).to same_as([1.5, 2.5].map { |x| x**2 * x**2 + x**2 })
      expect(b).to same_as([2.25, 6.25])
    end
  end

  it "names the line where an operator was written down" do
    array = md([[1, 0]])
    quotient = array * 2 +
               6 / array; line = __LINE__
    later = quotient + 1
    [-> { later.to_a }, -> { quotient.sum }, -> { quotient.map { |x| x } }].each do |look|
      expect(&look).to raise_error(ZeroDivisionError) { |error| expect(error.backtrace.first).to start_with("#{__FILE__}:#{line}:") }
    end
    small = md([100], dtype: :u8) + 200; line = __LINE__
    expect { small.to_a }.to raise_error(RangeError) { |error| expect(error.backtrace.first).to start_with("#{__FILE__}:#{line}:") }
    expect { small.sum }.to raise_error(RangeError, "element [0]: 300 does not fit u8 (0 to 255)")
    expect { (md([1] * 600 + [0]).then { |a| 1 / a }).sum }.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq(600) }
    whole = md([[0.5, Float::NAN]]).t.to(:i64); line = __LINE__
    expect { whole.to_a }.to raise_error(FloatDomainError) { |error| expect(error.backtrace.first).to start_with("#{__FILE__}:#{line}:") }
  end

  it "says what it does not take" do
    expect { md([true]) + 1 }.to raise_error(TypeError, "+ is for numbers, not for elements of kind bool")
    expect { md([1.0]) & 1 }.to raise_error(TypeError, "& is for Integers, not for elements of kind f64")
    expect { md(["a"]) * 2 }.to raise_error(TypeError, "* is for numbers, not for elements of kind object")
    expect { md([1]) + "a" }.to raise_error(TypeError, "an object of String can't be coerced into Ikra::MDArray")
    expect { md([1]) + nil }.to raise_error(TypeError, "nil can't be coerced into Ikra::MDArray")
    expect { md([1]) + 2**64 }.to raise_error(RangeError, "18446744073709551616 does not fit i64")
    expect { md([1.0]).even? }.to raise_error(TypeError, "even? is for Integers, not for elements of kind f64")
    expect { 2 * md([true]) }.to raise_error(TypeError, "* is for numbers, not for elements of kind bool")
    expect { 2.divmod(md([1])) }.to raise_error(TypeError, "divmod of a number takes no Ikra::MDArray")
  end

  it "rounds to 32 bits as the machine does" do
    random = Random.new(3)
    values = Array.new(20_000) { [random.rand(2**64)].pack("Q").unpack1("E") } + [0.0, -0.0, 1e-45, 7e-46, -1e-46, 3.4028235677973366e38, 3.4028234663852886e38, Float::MIN, Float::MAX]
    values += Array.new(5_000) { |i| [random.rand(2**32)].pack("L").unpack1("e") * (1 + 2.0**-24 * (i % 3 - 1)) }
    values.reject!(&:nan?)
    expect(values.map { |x| [Ikra.__single(x)].pack("E") }).to eq(values.map { |x| [[x].pack("e").unpack1("e")].pack("E") })
    # Array#pack converts this number to infinity.
    expect(Ikra.__single(3.4028235677973362e38)).to eq(3.4028234663852886e38)
  end
end
