# frozen_string_literal: true

RSpec.describe Ikra::MDArray do
  nested = Array.new(3) { |i| Array.new(4) { |j| Array.new(2) { |k| (i * 31 + j * 17 + k * 7) % 23 - 11 } } }
  let(:array) { md(nested) }
  # Elements along a dimension.
  rows = { 0 => ->(list) { Array.new(4) { |j| Array.new(2) { |k| list.map { |plane| plane[j][k] } } } },
           1 => ->(list) { list.map { |plane| plane.transpose } },
           2 => ->(list) { list } }
  along = ->(list, axis, &block) { rows.fetch(axis).call(list).map { |plane| plane.map(&block) } }

  on_quick_backends do
    it "ends with the value of break" do
      line = md((0...9).to_a)
      expect([line.any? { |x| break x if x == 3 }, line.any? { |x| break false if x == 3 }, line.all? { |x| x == 3 ? (break 5) : true }]).to eq([3, false, 5])
      expect([line.none? { |x| break nil if x == 3 }, line.sum(100) { |x| x == 3 ? (break x) : 0 }]).to eq([nil, 3])
      expect([line.sum(axis: 0) { |x| x == 3 ? (break :s) : 0 }, line.count(axis: 0) { |x| break :c if x == 3 }, line.any?(axis: 0) { |x| break :a if x == 3 }]).to eq(%i[s c a])
      expect([line.sort { break 7 }, array.sort { break [9, 9] }, md(%w[b a]).sort { break "s" }]).to eq([7, [9, 9], "s"])
    end

    it "counts all elements along a dimension" do
      expect([md([1, 2]).count(axis: 0), md([1, 2]).count(axis: 0) { |x| x > 1 }, array.count(axis: 1)]).to match([2, 1, same_as([[4, 4]] * 3)])
    end

    it "combines elements with a block" do
      list = (1..1000).to_a
      expect(md(list).inject { |x, y| x + y }).to eq(500_500)
      expect(md(list).inject(0.5) { |x, y| x + y }).to eq(500_500.5)
      expect(md(list).reduce(:+)).to eq(500_500)
      expect(md(list).inject(7, :+)).to eq(500_507)
      floats = md(Array.new(1000) { |i| (i % 89) / 7.0 })
      expect(floats.inject { |x, y| x + y }).to eql(floats.sum)
      expect(floats[100..899].inject(2, :+)).to eql(2 + floats[100..899].sum)
      expect((floats * 2).inject(0.0) { |x, y| y + x }).to eql((floats * 2).sum)
      expect(md([2**62] * 300).inject { |x, y| x + y }).to eq(300 * (2**62))
      expect(1 / md([-0.0] * 300).inject { |x, y| x + y }).to eq(-Float::INFINITY)
      expect(md(list).inject { |x, y| y }).to eq(1000)
      expect(md(list).inject { |x, y| x }).to eq(1)
      expect((md(list) * 2).inject { |x, y| x > y ? x : y }).to eq(2000)
      expect(md([3]).inject { |x, y| x + y }).to eq(3)
      expect(md([]).inject { |x, y| x + y }).to be_nil
      expect(md([]).inject(4) { |x, y| x + y }).to eq(4)
      expect(md([true, false]).inject { |x, y| x && y }).to be(false)
      expect(md([1, 2]).inject { |x, y| break 9 }).to eq(9)
    end

    it "combines along the last dimension, or another" do
      expect(array.inject { |x, y| x + y }).to same_as(along.call(nested, 2, &:sum))
      expect(array.inject(axis: 0) { |x, y| x + y }).to same_as(along.call(nested, 0, &:sum))
      expect(array.inject(10, axis: -2) { |x, y| x + y }).to same_as(along.call(nested, 1) { |list| list.sum(10) })
      long = Array.new(2) { |i| Array.new(700) { |j| i * j % 13 } }
      expect(md(long).sum(axis: 1)).to same_as(long.map(&:sum))
      expect(md(long).t.sum(axis: 0)).to same_as(long.map(&:sum))
      expect(md(long).inject { |x, y| y }).to same_as(long.map(&:last))
    end

    it "sums, counts and finds the extremes" do
      all = nested.flatten
      expect([array.sum, array.min, array.max, array.mean, array.argmin, array.argmax, array.count, array.minmax])
        .to eq([all.sum, all.min, all.max, all.sum.fdiv(24), all.index(all.min), all.index(all.max), 24, all.minmax])
      [0, 1, 2].each do |axis|
        expect(array.sum(axis: axis)).to same_as(along.call(nested, axis, &:sum))
        expect(array.min(axis: axis)).to same_as(along.call(nested, axis, &:min))
        expect(array.max(axis: axis)).to same_as(along.call(nested, axis, &:max))
        expect(array.mean(axis: axis)).to same_as(along.call(nested, axis) { |list| list.sum.fdiv(list.size) })
        expect(array.argmin(axis: axis)).to same_as(along.call(nested, axis) { |list| list.index(list.min) })
        expect(array.argmax(axis: axis)).to same_as(along.call(nested, axis) { |list| list.index(list.max) })
        expect(array.count(axis: axis) { |x| x > 0 }).to same_as(along.call(nested, axis) { |list| list.count(&:positive?) })
        expect(array.any?(axis: axis) { |x| x > 8 }).to same_as(along.call(nested, axis) { |list| list.any? { |x| x > 8 } })
        expect(array.all?(axis: axis) { |x| x < 9 }).to same_as(along.call(nested, axis) { |list| list.all? { |x| x < 9 } })
        expect(array.none?(axis: axis) { |x| x > 8 }).to same_as(along.call(nested, axis) { |list| list.none? { |x| x > 8 } })
      end
      expect([array.count(&:even?), array.count(all.first), array.any? { |x| x == all.last }, array.all? { |x| x < 100 }, array.none? { |x| x > 100 }, array.any?(Integer)])
        .to eq([all.count(&:even?), all.count(all.first), true, true, true, true])
      expect([array.min(2), array.max { |x, y| y <=> x }, array.minmax { |x, y| y <=> x }]).to eq([all.min(2), all.min, all.minmax.reverse])
      expect([array.include?(all.last), array.include?(99), array.include?(2**70), array.member?(nil), md([0.5]).include?(0.5)]).to eq([true, false, false, false, true])
      expect([array.sum(10), array.sum(0.5), array.sum(1, axis: 0).to_a[0][0]]).to eq([all.sum + 10, all.sum + 0.5, nested.sum { |plane| plane[0][0] } + 1])
      expect(array.sum { |x| x * 0.5 }).to eq(all.sum * 0.5)
      expect(array.variance).to be_within(1e-12).of(all.sum { |x| (x - all.sum / 24.0)**2 } / 24)
      expect(array.stddev(axis: 0).shape).to eq([4, 2])
      expect(md([1, 2], dtype: :u8).sum).to eq(3)
      expect(md([200, 100], dtype: :u8).max(axis: 0)).to eq(200)
      expect(md([[0.1, 0.2]], dtype: :f32).sum(axis: 1)).to have_attributes(dtype: :f32)
    end

    it "reduces what is pending, what a block gives and what a view shows by the kernel that computes it" do
      [1, 31, 32, 33, 8191, 8192, 8193, 70_001].each do |size|
        numbers = Ikra::MDArray.new(size) { |i| (i * 7919 % 10_007) * 0.1 - 300 }
        kept = (numbers * 3 - 1).sync
        pending = -> { numbers * 3 - 1 }
        list = kept.to_a
        expect([pending.().sum, pending.().min, pending.().max, pending.().argmin, pending.().argmax])
          .to eq([kept.sum, list.min, list.max, list.index(list.min), list.index(list.max)])
        expect([numbers.sum { |x| x * 3 - 1 }, kept.reverse[0..-1].sum, kept.count { |x| x > 0 }, pending.().count(&:positive?)])
          .to eq([kept.sum, kept.reverse.dup.sum, list.count(&:positive?), list.count(&:positive?)])
      end
      whole = Ikra::MDArray.new(500, 40) { |i, j| i * 1000 + j }
      [whole.t, whole[100..399, 3..7], whole[true, 5]].each do |view|
        all = view.to_flat_a
        expect([view.sum, view.min, view.argmax, (view + 1).sum]).to eq([all.sum, all.min, all.index(all.max), all.sum + all.size])
      end
    end

    it "says that it is one kernel" do
      array = md([1.0, 2.0])
      kernels = ->(&work) { Ikra.explain(&work).sections.map { |section| [section.reduction, section.kernels] } }
      # The interpreter stores a column first.
      count = Ikra.config.backend == :reference ? 2 : 1
      expect(kernels.call { (array * 2 + array).sum }).to eq([[:sum, count]])
      expect(kernels.call { (array * 2 + array).argmin }).to eq([[:min, count]])
      expect(kernels.call { array.count { |x| x > 1 } }).to eq([[:count, count]])
      expect(Ikra.explain { (array * 2 + array).max }.to_s).to include("Reduction: max, ", "# kernels: #{count}\n")
      expect(kernels.call { array.sum }).to eq([])
    end

    it "computes what is pending once more only for the second who looks, and keeps it then" do
      pending = md([1, 2, 3]) * 2
      sections = Ikra.explain { [pending.sum, pending.max, pending.min, pending.to_a] }.sections
      expect(sections.map(&:reduction)).to eq([:sum, nil])
    end

    it "adds beyond 64 bits, compensates Floats, and keeps what is not finite" do
      large = Ikra::MDArray.new(9000) { |i| i + 2**62 }
      expect([(large + 1).sum, large.sum { |x| x - 1 }]).to eq([(0...9000).sum { |i| i + 2**62 + 1 }, (0...9000).sum { |i| i + 2**62 - 1 }])
      tenths = md(Array.new(10_000, 0.1))
      expect((tenths + 0.0).sum).to eq(Array.new(10_000, 0.1).sum)
      expect((md([1e100, 1.0, -1e100]) * 1).sum).to eq(1.0)
      expect((md([1.0, Float::INFINITY]) * 1).sum).to eq(Float::INFINITY)
      expect((md([1.0, Float::INFINITY]) * md([1, 0])).sum).to be_nan
      expect([(md([-0.0, -0.0]) * 1.0).sum, (md([0.0, -0.0]) * 1).min].map { |x| 1 / x }).to all(eq(Float::INFINITY))
      expect((md([200, 100], dtype: :u8) - 1).sum).to eq(298)
      expect((md([0.1, 0.2], dtype: :f32) * 3).sum).to eq((md([0.1, 0.2], dtype: :f32) * 3).to_a.sum)
    end

    it "raises what the elements raise, and has nothing of them then" do
      zeroes = Ikra::MDArray.new(20_000) { |i| i % 9973 == 9972 ? 0 : 1 }
      expect { (7 / zeroes).sum }.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq(9972) }
      expect { zeroes.sum { |x| 7 / x } }.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq(9972) }
      expect((7 / (zeroes + 1)).sum).to eq(zeroes.to_a.sum { |x| 7 / (x + 1) })
      expect { (md([1.0, Float::NAN]) * 2).max }.to raise_error(ArgumentError, /\Acomparison of Float with Float failed/)
      expect((md([Float::NAN]) * 2).max).to be_nan
      expect { md([1, 2]).sum { |x| x > 1 } }.to raise_error(TypeError, /sum is for numbers, not for elements of kind bool/)
      expect { md([1, 2]).sum { |x| x > 1 ? 1 : 0.5 } }.to raise_error(Ikra::CompileError, /of several kinds/)
      expect(md([1, 2, 3]).sum { |x| x > 1 ? (break x) : x }).to eq(2)
      total = 0
      expect([md([1, 2]).sum { |x| total += x; x * 10 }, total]).to eq([30, 3])
    end

    it "counts what Ruby counts" do
      expect([nil, "x", 2**70, true, 1, 1.0].map { |item| md([1, 2, 1]).count(item) }).to eq([0, 0, 0, 0, 2, 2])
      expect([md([true, false]).count(true), md([true]).count(1), md(%w[a b]).count("a"), md([9007199254740992.0]).count(9007199254740993)]).to eq([1, 0, 1, 0])
      expect([md([[1, 2], [1, 3]]).count(1, axis: 0), md([[1, 2]]).count("x", axis: 0), md([%w[a b]]).count("a", axis: 1)]).to match([same_as([2, 0]), same_as([0, 0]), same_as([1])])
      expect([md([5, 3, 8]).take(2), md([5, 3, 8]).first(2), md([5, 3, 8]).first(9)]).to eq([[5, 3], [5, 3], [5, 3, 8]])
      expect { md([5, 3, 8]).first(-1) }.to raise_error(ArgumentError, "attempt to take negative size")
    end

    it "asks for none along a dimension without elements" do
      array = md(3, 0)
      expect([array.any?(axis: 1) { |x| x > 0 }, array.all?(axis: 1) { |x| x > 0 }, array.none?(axis: 1), md(0).any?(axis: 0)])
        .to match([same_as([false] * 3), same_as([true] * 3), same_as([true] * 3), be(false)])
    end

    it "means Integers that add up to more than 64 bits" do
      list = [[2**62, 2**62], [1, 2], [-(2**63), -(2**63)]]
      expect(md(list).mean(axis: 1)).to same_as(list.map { |row| row.sum.fdiv(2) })
      expect([md(list[0]).mean(axis: 0), md(list[0]).mean]).to eq([4.611686018427388e+18] * 2)
      expect(md(list).mean(axis: 0)).to same_as(list.transpose.map { |column| column.sum.fdiv(3) })
    end

    it "reduces objects, on the host" do
      words = [%w[a b], %w[d C]]
      expect([md(words).max, md(words).min, md(words).minmax]).to eq(["d", "C", %w[C d]])
      expect([md(words).max(axis: 0), md(words).min(axis: 1)]).to match([same_as(%w[d b]), same_as(%w[a C])])
      expect([md(words).inject(:+), md(words).inject("z", axis: 0) { |x, y| x + y }]).to match([same_as(%w[ab dC]), same_as(%w[zad zbC])])
      expect([md(words).scan { |x, y| x + y }, md(words).scan(:+, axis: 0)]).to match([same_as([%w[a ab], %w[d dC]]), same_as([%w[a b], %w[ad bC]])])
    end

    it "has answers for nothing" do
      empty = md([])
      expect([empty.sum, empty.min, empty.argmax, empty.count, empty.any? { true }, empty.all? { false }]).to eq([0.0, nil, nil, 0, false, true])
      expect(empty.mean).to be_nan
      expect(md(0, 2).sum(axis: 0)).to same_as([0.0, 0.0])
      expect(md(2, 0).sum(axis: 0)).to same_as([])
      expect { md(2, 0).max(axis: 1) }.to raise_error(ArgumentError, "no elements along dimension 1")
    end

    it "compares NaN with nothing" do
      expect { md([1.0, Float::NAN]).max }.to raise_error(ArgumentError, /\Acomparison of Float with Float failed/)
      expect { md([Float::NAN, 1.0]).argmin }.to raise_error(ArgumentError)
      expect { md([[1.0, Float::NAN], [2.0, 3.0]]).min(axis: 1) }.to raise_error(ArgumentError)
      expect { md([1.0, Float::NAN]).sort }.to raise_error(ArgumentError)
      expect(md([Float::NAN]).max).to be_nan
      expect(md([1.0, Float::NAN]).sum).to be_nan
    end

    it "gives all values on the way" do
      list = Array.new(900) { |i| i % 7 - 3 }
      expect(md(list).scan { |x, y| x + y }).to same_as(list.pscan(:+))
      expect(md(list.map(&:to_f)).scan { |x, y| x > y ? x : y }).to same_as(list.map(&:to_f).pscan { |x, y| x > y ? x : y })
      expect(md(Array.new(70_000, 0.1)).scan { |x, y| x + y + 0.0 }[-1]).to eq(md(Array.new(70_000, 0.1)).inject { |x, y| x + y + 0.0 }) if Ikra.config.backend == :cpu
      expect(md(list).cumsum).to same_as(list.pscan(:+))
      expect(md(list.first(30)).cumprod).to same_as(list.first(30).pscan(:*))
      expect(md(list.map { |x| x * 0.5 }).scan("+")).to same_as(list.map { |x| x * 0.5 }.pscan(:+))
      expect(md(list, dtype: :i32).cumsum).to same_as(list.pscan(:+))
      expect(md(list, dtype: :f32).cumsum).to same_as(list.map(&:to_f).pscan(:+))
      expect(md(list.each_slice(30).to_a).flatten.cumsum).to same_as(list.pscan(:+))
      expect(md(list)[1..-2].cumsum).to same_as(list[1..-2].pscan(:+))
      expect(md(list.each_slice(30).to_a).t[4, true].cumsum).to same_as(list.each_slice(30).map { |row| row[4] }.pscan(:+))
      expect((md(list) * 2).cumsum).to same_as(list.map { |x| x * 2 }.pscan(:+))
      expect(md(Array.new(70_000, 0.1)).cumsum[-1]).to eq 7000.0
      expect(array.cumsum).to same_as(nested.map { |plane| plane.map { |row| row.pscan(:+) } })
      expect(array.scan(axis: 0, &:+)).to same_as(nested.each_with_index.map { |_, i| Array.new(4) { |j| Array.new(2) { |k| (0..i).sum { |n| nested[n][j][k] } } } })
      long = Array.new(600) { |i| [i % 5, i % 3] }
      expect(md(long).cumsum(axis: 0)).to same_as(long.transpose.map { |column| column.pscan(:+) }.transpose)
    end

    it "gives the least and the greatest on the way" do
      list = Array.new(9000) { |i| (i * 7919) % 10_007 - 5000 }
      expect(md(list).cummax).to same_as(list.each_with_object([]) { |x, all| all << [*all.last, x].max })
      expect(md(list.map { |x| x / 4.0 }).cummin).to same_as(list.each_with_object([]) { |x, all| all << [*all.last, x / 4.0].min })
      expect(md([3, 1, 2], dtype: :u8).cummin).to same_as([3, 1, 1])
      expect(md([3, 1, 2], dtype: :u8).cummin.dtype).to eq :u8
      expect(md([[3, 1], [1, 2]]).cummin(axis: 0)).to same_as([[3, 1], [1, 1]])
      expect(md([[3, 1], [1, 2]], dtype: :i32).cummax.dtype).to eq :i32
      expect { md([1.0, Float::NAN]).cummax }.to raise_error(ArgumentError, /\Acomparison of Float with Float failed/)
      expect(md([Float::NAN]).cummax[0]).to be_nan
      expect(md(0).cummax).to same_as([])
    end

    it "begins sums of one dimension with 0.0, and others with the first element" do
      expect(md([-0.0, -0.0]).cumsum).to same_as([0.0, 0.0])
      expect(md([-0.0]).scan(:+)[0]).to eql([-0.0].sum)
      expect(md([[-0.0, -0.0]]).cumsum).to same_as([[0.0, 0.0]])
      expect(md([[-0.0, -0.0], [-0.0, 1.0]]).cumsum).to same_as([[-0.0, -0.0], [-0.0, 1.0]])
      expect(md([-0.0, -0.0]).inject(:+)).to eql(-0.0)
      expect(md([0.0, -0.0]).sort).to same_as([-0.0, 0.0])
      expect(md([-0.0, 0.0]).sort(descending: true)).to same_as([0.0, -0.0])
    end

    it "tells of sums and products beyond 64 bits" do
      expect { md([2**62, 2**62]).cumsum }.to raise_error(Ikra::IntegerOverflow)
      expect { md([2**40, 2**40, 0]).cumprod }.to raise_error(Ikra::IntegerOverflow)
      expect(md([2**62, 2**62]).cumsum(overflow: :wrap)).to same_as([2**62, -(2**63)])
      expect { md([true, false]).cumsum }.to raise_error(TypeError, "cumsum is for numbers, not for elements of kind bool: to(:i64) makes 1 of true")
    end

    it "sorts" do
      [0, 1, 2, 31, 32, 33, 1000, 100_000].each do |size|
        next if size > 1000 && Ikra.config.backend != :cpu

        list = Array.new(size) { |i| (i * 7919) % 10_007 - 5000 }
        expect(md(list).sort).to same_as(list.sort)
        expect(md(list.map { |x| x / 4.0 }).sort(descending: true)).to same_as(list.map { |x| x / 4.0 }.sort.reverse)
        expect(md(list, dtype: :i32).sort).to same_as(list.sort)
        expect(md(list.map { |x| x % 256 }, dtype: :u8).sort).to same_as(list.map { |x| x % 256 }.sort)
        expect(md(list.map { |x| x / 4.0 }, dtype: :f32).sort).to same_as(list.map { |x| x / 4.0 }.sort)
      end
      expect(array.sort(axis: 0, descending: true)).to same_as(array.sort(axis: 0).to_a.reverse)
      expect(md([%w[b a], %w[c d]]).sort).to same_as([%w[a b], %w[c d]])
      expect(md([[Float::NAN], [1.0]]).sort.to_a.flatten.last).to eq 1.0
      expect { md([1, 2]).sort(descending: true) { |x, y| x <=> y } }.to raise_error(ArgumentError)
      expect { md([true, false]).sort }.to raise_error(ArgumentError, /comparison of TrueClass with false failed/)
      expect(md([3, 1, 2]).sort).to same_as([1, 2, 3])
      expect(array.sort).to same_as(nested.map { |plane| plane.map(&:sort) })
      expect(array.sort(axis: 1)).to same_as(nested.map { |plane| plane.transpose.map(&:sort).transpose })
      expect(md([3, -1, 2]).sort { |x, y| y.abs <=> x.abs }).to same_as([3, 2, -1])
    end

    it "multiplies matrices" do
      one, other = Array.new(3) { |i| Array.new(4) { |j| i * 4 + j - 5 } }, Array.new(4) { |i| Array.new(2) { |j| (i * 2 + j) * 0.5 } }
      product = ->(a, b) { a.map { |row| b.transpose.map { |column| row.zip(column).sum { |x, y| x * y } } } }
      expect(md(one).matmul(md(other))).to same_as(product.call(one, other))
      expect(md(one).dot(other)).to same_as(product.call(one, other))
      expect(md(one).matmul(md(one).t)).to same_as(product.call(one, one.transpose))
      expect(md(one).dot([1, 2, 3, 4])).to same_as(product.call(one, [[1], [2], [3], [4]]).flatten)
      expect(md([1, 2, 3]).matmul(md(one))).to same_as(product.call([[1, 2, 3]], one).flatten)
      expect(md([1, 2, 3]).dot([4, 5, 6])).to eq(32)
      stack = md([one, one])
      expect(stack.matmul(other)).to same_as([product.call(one, other)] * 2)
      expect(md([[1.5]], dtype: :f32).matmul(md([[2.0]], dtype: :f32)).dtype).to be(:f32)
      expect { md(one).matmul(md(one)) }.to raise_error(ArgumentError, "shapes [3, 4] and [3, 4] do not fit")
      expect { md([1, 2]).dot([1, 2, 3]) }.to raise_error(ArgumentError, "shapes [2] and [3] do not fit")
    end

    it "first stores in order what a product reads often: views and pending arrays" do
      plain = Array.new(6) { |i| Array.new(5) { |j| ((i * 7) + (j * 3)) % 11 - 4.5 } }
      array = md(plain)
      times = ->(a, b) { a.map { |row| b.transpose.map { |column| row.zip(column).sum(0.0) { |x, y| x * y } } } }
      halves = plain.map { |row| row.map { |x| x * 0.5 } }
      expect(array.t.matmul(array * 0.5)).to same_as(times.call(plain.transpose, halves))
      pending = array * 0.5
      sections = Ikra.explain { array.matmul(pending.t) }.sections
      expect(sections.map(&:operation).last).to be(:matmul)
      expect(pending.where).not_to be(:pending)
      expect(array.matmul(pending.t)).to same_as(times.call(plain, halves.transpose))
      # a vector's product reads each element once
      expect(array.t.matmul(md([1.0] * 6))).to same_as(times.call(plain.transpose, [[1.0]] * 6).flatten)
    end
  end

  it "checks options also where there are no elements" do
    calls = { sort: [], cumsum: [], cumprod: [], cummin: [], cummax: [], scan: [:+], count: [], sum: [], min: [2], minmax: [], matmul: [[]] }
    calls.each do |name, args|
      expect { md(0).public_send(name, *args, speed: 1) }.to raise_error(ArgumentError, /\Aunknown option speed: /)
    end
    expect { md(0).count(speed: 1) { true } }.to raise_error(ArgumentError, /\Aunknown option speed: /)
    expect { md(1).all?(Float, speed: 1) }.to raise_error(ArgumentError, /\Aunknown option speed: /)
  end

  it "names the line where the program called" do
    big = md([[2**62, 2**62]])
    calls = [
      -> { big[0].inject(:+) }, -> { big.inject(:*) }, -> { big.scan(:+) }, -> { big.cumsum }, -> { big.cumprod(axis: 1) }, -> { big.sum(axis: 1) },
      -> { big.t.sum(axis: 0) }, -> { big.matmul(md([[1], [1]])) }, -> { [[2**62, 2**62]].pmap { |x, y| [x, y].inject(:+) } },
      -> { [2**62].pmap(&:succ) && [2**63 - 1].pmap(&:succ) }
    ]
    calls.each do |call|
      place = "#{__FILE__}:#{call.source_location[1]}"
      expect(&call).to raise_error(Ikra::IntegerOverflow) { |error| expect(error.backtrace.first[/\A.+?:\d+/]).to eq(place) }
    end
    expect(calls[0].source_location[1]).not_to eq(calls[6].source_location[1])
  end

  it "says what it is not for" do
    expect { md([true]).sum }.to raise_error(TypeError, "sum is for numbers, not for elements of kind bool: to(:i64) makes 1 of true")
    %i[cumsum cumprod cummin cummax argmin argmax].each do |name|
      expect { md(["a"]).public_send(name) }.to raise_error(TypeError, "#{name} is for numbers, not for elements of kind object")
      expect { md([[true]]).public_send(name) }.to raise_error(TypeError, /\A#{name} is for numbers, not for elements of kind bool/)
      expect { md([[true]]).public_send(name, axis: 0) }.to raise_error(TypeError, /\A#{name} is for numbers, not for elements of kind bool/)
    end
    expect { array.inject }.to raise_error(LocalJumpError)
    %i[any? all? none?].each { |name| expect { array.public_send(name, 0..9, axis: 0) }.to raise_error(ArgumentError, "#{name} along a dimension takes no pattern") }
    %i[min max].each { |name| expect { array.public_send(name, 2, axis: 0) }.to raise_error(ArgumentError, "#{name} along a dimension takes no count") }
    %i[min max minmax].each { |name| expect { array.public_send(name, axis: 0) { |x, y| y <=> x } }.to raise_error(ArgumentError, "#{name} along a dimension takes no block") }
    expect { array.inject(1, 2, :+) }.to raise_error(ArgumentError, "wrong number of arguments (given 2, expected 0..1)")
    expect { md([2**62, 2**62]).sum(axis: 0) }.to raise_error(Ikra::IntegerOverflow)
    expect(md([2**62, 2**62]).sum).to eq(2**63)
  end
end
