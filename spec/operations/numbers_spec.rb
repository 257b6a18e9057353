# frozen_string_literal: true

# Operations whose sections give a number, or true or false, for each element. These values are processed where they
# are.
RSpec.describe "Operations by numbers" do
  sizes = [0, 1, 2, 31, 32, 33, 1000, 100_000]
  lists = {
    "Integers" => ->(size) { Array.new(size) { |i| ((i * 7919) % 1009) - 500 } },
    "Floats" => ->(size) { Array.new(size) { |i| (((i * 7919) % 1009) - 500) / 8.0 } }
  }
  many = ->(name) { name == :cpu || name == :cuda }

  lists.each do |kind, make|
    on_every_backend do |name|
      sizes.select { |size| size <= 1000 || many.(name) }.each do |size|
        it "does as Ruby does with #{size} #{kind}" do
          list = make.(size).freeze
          on = name
          expect(list).to(do_as_ruby(:select, on: on) { |x| x > 300 })
          expect(list).to(do_as_ruby(:select, on: on) { |x| x * x > 81.0 })
          expect(list).to(do_as_ruby(:reject, on: on) { |x| x > 300 })
          expect(list).to(do_as_ruby(:partition, on: on) { |x| x < 0 })
          expect(list).to(do_as_ruby(:count, on: on) { |x| x < 0 })
          expect(list).to(do_as_ruby(:filter_map, on: on) { |x| x + 1 if x < 0 })
          expect(list).to(do_as_ruby(:find_index, on: on) { |x| x == 9 })
          expect(list).to(do_as_ruby(:group_by, on: on) { |x| x > 0 })
          expect(list).to(do_as_ruby(:group_by, on: on) { |x| (x / 100).floor })
          expect(list).to(do_as_ruby(:group_by, on: on) { |x| x * 0.5 })
          expect(list).to(do_as_ruby(:uniq, on: on) { |x| (x / 3).floor })
          expect(list).to(do_as_ruby(:max_by, on: on) { |x| x % 97 })
          expect(list).to(do_as_ruby(:minmax_by, on: on) { |x| x % 97 })
          expect(list.psort_by(backend: on) { |x| -(x % 97) }).to eq(list.each_with_index.sort_by { |x, i| [-(x % 97), i] }.map(&:first))
          expect(list.pmin_by(3, backend: on) { |x| x % 97 }).to eq(list.each_with_index.sort_by { |x, i| [x % 97, i] }.map(&:first).first(3))
          expect(list.pmax_by(3, backend: on) { |x| x % 97 }).to eq(list.each_with_index.sort_by { |x, i| [x % 97, i] }.map(&:first).reverse.first(3))
        end
      end
    end

    it "runs over #{kind} as inject does" do
      sizes.each do |size|
        list = make.(size).freeze
        expect(list.pscan(:+)).to eq((1..size).zip(list).each_with_object([]) { |(_, x), all| all << (all.empty? ? x : all.last + x) })
        expect(list.first(20).pscan(3, :*)).to eq(list.first(20).each_with_object([]) { |x, all| all << ((all.empty? ? 3 : all.last) * x) })
      end
      expect(make.(1000).pscan(:+).last).to eq make.(1000).inject(:+)
    end
  end

  it "keeps to Ruby where numbers leave 64 bits, are of several kinds, or are none" do
    expect([2**62, 2**62, -1].pscan(:+)).to eq [2**62, 2**63, 2**63 - 1]
    expect([2**40, 2**40, 0].pscan(:*)).to eq [2**40, 2**80, 0]
    expect([2**64, 1].pscan(:+)).to eq [2**64, 2**64 + 1]
    expect([1, 0.5, 2].pscan(:+)).to eq [1, 1.5, 3.5]
    expect([1.0, Float::NAN, 2.0].pscan(:+).map(&:to_s)).to eq %w[1.0 NaN NaN]
    expect([-0.0].pscan(:+).first.to_s).to eq "-0.0"
    expect([3, 1, 2].pscan(:-)).to eq [3, 2, 0]
  end

  it "runs over numbers with an operator of the program's own" do
    program = <<~RUBY
      class Integer
        alias plus +
        def +(other) = plus(other).plus(1)
      end
      p [1, 2, 3].pscan(:+)
    RUBY
    expect(run_ruby(program)).to eq "[1, 4, 8]\n"
  end

  it "gives memory back at once" do
    list = (0...1000).to_a
    Garbage.uncollected do
      before = Ikra.memory[:arrays]
      list.pselect(&:odd?)
      list.psort_by { |x| -x }
      list.pgroup_by { |x| x % 3 }
      list.pcount { |x| break x if x == 5 }
      Ikra::MDArray.new(list).then { |array| before += 2 if array.select { |x| x > 5 }.size == 994 }
      expect(Ikra.memory[:arrays]).to eq before
    end
  end

  on_every_backend do |name|
    it "takes keys of all kinds" do
      list = (0...40).to_a
      expect(list).to(do_as_ruby(:group_by, on: name) { |x| [1, 2.5, nil, :a, true][x % 5] })
      expect(list).to(do_as_ruby(:group_by, on: name) { |x| x.even? ? x % 3 : x % 3 * 1.0 })
      expect(list).to(do_as_ruby(:uniq, on: name) { |x| x % 3 == 0 ? nil : x % 3 })
      expect(list).to(do_as_ruby(:select, on: name) { |x| x % 3 == 0 ? nil : x })
      expect(list).to(do_as_ruby(:select, on: name) { |_| true })
      expect(list).to(do_as_ruby(:reject, on: name) { |_| nil })
      expect([0.0, -0.0, 1.0, -0.0]).to(do_as_ruby(:group_by, on: name) { |x| x })
      expect([0.0, -0.0, 1.0, -0.0]).to(do_as_ruby(:uniq, on: name) { |x| x })
      expect([0.0, -0.0, -1.0, 0.0].each_with_index.to_a.psort_by(backend: name) { |x, _| x }.map(&:last)).to eq [2, 0, 1, 3]
      expect(list).to(do_as_ruby(:sort_by, on: name) { |x| x == 20 ? nil : x })
      expect(list.first(2)).to(do_as_ruby(:min_by, on: name) { |x| x == 1 })
      expect(list.first(1)).to(do_as_ruby(:min_by, on: name) { |x| x == 1 })
      expect(list.first(1)).to(do_as_ruby(:sort_by, on: name) { |x| x == 1 })
    end

    it "does not compare NaN, and finds none equal to another" do
      list = [1.0, 2.0, 3.0]
      expect { list.psort_by(backend: name) { |x| x == 2.0 ? Float::NAN : x } }.to raise_error(ArgumentError, /comparison of Float with/)
      expect { list.pmin_by(backend: name) { |x| x == 2.0 ? Float::NAN : x } }.to raise_error(ArgumentError, /comparison of Float with/)
      %i[min_by max_by].each { |method| expect(list).to(do_as_ruby(method, 0, on: name) { |x| x == 2.0 ? Float::NAN : x }) }
      %i[min max].each { |method| expect(list).to(do_as_ruby(method, 0, on: name) { |x, y| x * Float::NAN <=> y }) }
      runs = 0
      expect([list.pmin_by(0, backend: name) { |x| runs += 1; x }, list.pmax(0, backend: name) { |x, y| runs += 1; x <=> y }, runs]).to eq [[], [], 0]
      expect(list.pgroup_by(backend: name) { |x| x > 1.0 ? 0.0 / 0.0 : x }.values).to eq [[1.0], [2.0], [3.0]]
      expect(list.puniq(backend: name) { |_| 0.0 / 0.0 }).to eq list
      expect([1.0].psort_by(backend: name) { |_| 0.0 / 0.0 }).to eq [1.0]
    end

    it "ends with what break gives, and raises what the block raises" do
      list = (0...100).to_a
      expect(list.pselect(backend: name) { |x| break x if x == 50; x.odd? }).to eq 50
      expect(list.psort_by(backend: name) { |x| break :none if x == 50; x }).to eq :none
      expect { list.pselect(backend: name) { |_| raise "no" } }.to raise_error(RuntimeError, "no")
      expect { list.pgroup_by(backend: name) { |x| 1 / (x - 50) } }.to raise_error(ZeroDivisionError)
    end
  end
end
