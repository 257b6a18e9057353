# frozen_string_literal: true

require "timeout"

RSpec.describe "psort, psort_by, pmin, pmax, pminmax and those by a key" do
  sizes = [0, 1, 2, 31, 32, 33, 64, 65, 100, 1000]
  integers = ->(size) { Array.new(size) { |i| (i * 7919) % 101 - 50 } }

  it "sorts numbers as Ruby does" do
    sizes.each do |size|
      expect(integers.call(size)).to do_as_ruby(:sort)
      expect(integers.call(size).map { |x| x / 8.0 }).to do_as_ruby(:sort)
      expect(integers.call(size).each_with_index.map { |x, i| i.odd? ? x : x + 0.5 }).to do_as_ruby(:sort)
    end
    expect(5..9).to do_as_ruby(:sort)
    expect([2**70, 1, -(2**70)]).to do_as_ruby(:sort)
    expect(%w[b a c]).to do_as_ruby(:sort)
    list = Array.new(100_000) { |i| (i * 7919) % 100_003 }
    expect(list.psort).to eq list.sort
    expect(list.psort_by { |x| -x }).to eq list.sort.reverse
  end

  it "finds the least and the greatest of many Floats, the very ones" do
    list = Array.new(20_000) { |i| ((i * 7919) % 20_011) * 1e-200 - 1e-197 }
    %i[min max minmax].each do |name|
      expect(list.public_send(:"p#{name}").inspect).to eq list.public_send(name).inspect
      [-0.0, 0.0, -Float::INFINITY, Float::INFINITY, 3, 2**70, 1r].each do |other|
        with_it = list.dup.tap { |changed| changed[777] = other }
        expect(with_it.public_send(:"p#{name}").inspect).to eq with_it.public_send(name).inspect
      end
      [nil, :a, Float::NAN].each { |other| expect { list.dup.tap { |changed| changed[777] = other } }.to do_as_ruby(name) }
    end
    expect(Ikra.explain { list.pminmax }.to_s).to include("Step: min over 20000 elements of Float", "Step: max over 20000 elements of Float")
    # Not flonums: both are objects.
    expect([list.pmin, list.pmax, *list.pminmax]).to match [be(list.min), be(list.max), be(list.min), be(list.max)]
    expect(list.pmin(3)).to eq list.min(3)
    expect([Array.new(20_000, 0.0).push(-0.0).pmin, Array.new(20_000, -0.0).push(0.0).pmax].inspect).to eq "[0.0, -0.0]"
  end

  it "asks Ruby for the least where Floats compare otherwise" do
    output = run_ruby(<<~RUBY)
      list = Array.new(20_000) { |i| i * 0.5 }
      own = Class.new(Array) { def min = :own }
      p own.new(list).pmin
      class Float
        alias_method :plain, :<=>
        def <=>(other) = -plain(other)
      end
      p list.pmin == list.min, list.pminmax == list.minmax
    RUBY
    expect(output).to eq ":own\ntrue\ntrue\n"
  end

  it "can be interrupted while it sorts numbers" do
    list = Array.new(3_000_000) { |i| ((i * 7919) % 3_000_017) / 3.0 }
    before = list.dup
    expect { Timeout.timeout(0.01) { list.psort } }.to raise_error(Timeout::Error)
    expect(list).to eq before
    expect(list.psort.each_cons(2).all? { |a, b| a <= b }).to be true
  end

  it "raises what does not compare" do
    expect([1, nil, 2]).to do_as_ruby(:sort)
    expect([3, :a]).to do_as_ruby(:sort)
    expect { [1.5, Float::NAN, 2.5].psort }.to raise_error(ArgumentError, /comparison of Float with/)
    expect { [1, 2, 3].psort_by { |x| x == 2 ? nil : x } }.to raise_error(ArgumentError, /comparison of .* failed/)
    expect { [1.0, 2.0].psort_by { |x| x == 2.0 ? Float::NAN : x } }.to raise_error(ArgumentError, /comparison of Float with/)
    expect { [1, 2].psort { |_, _| nil } }.to raise_error(ArgumentError, /\Acomparison of Integer with [12] failed\z/)
    expect([1, 2, 3]).to(do_as_ruby(:min_by) { |x| x == 2 ? :two : x })
  end

  it "sorts by a block that compares, on every backend, and keeps the order of what is equal" do
    sizes.each do |size|
      expect(integers.call(size)).to(do_as_ruby(:sort) { |a, b| b <=> a })
      pairs = integers.call(size).each_with_index.map { |x, i| [x % 7, i] }
      sorted = pairs.sort
      expect(backends.map { |backend| pairs.psort(backend: backend) { |a, b| a[0] <=> b[0] } }).to all(eq(sorted))
      expect(pairs.psort_by { |key, _| key }).to eq sorted
      expect(pairs.psort_by { |key, _| key / 2.0 }.map(&:first).map { |x| x / 2.0 }).to eq(sorted.map { |x, _| x / 2.0 })
      expect(pairs.psort_by { |key, _| key == 3 ? 2.5 : key }.map { |key, i| [key == 3 ? 2.5 : key, i] }).to eq(pairs.map { |key, i| [key == 3 ? 2.5 : key, i] }.sort)
    end
  end

  it "sorts objects, the very ones" do
    people = integers.call(200).map { |x| DoAsRuby::Person.new(:a, x) }
    expect(people.psort_by(&:age).map(&:__id__)).to eq(people.each_with_index.sort_by { |person, i| [person.age, i] }.map { |person, _| person.__id__ })
    expect(people.psort { |a, b| a.age <=> b.age }.map(&:__id__)).to eq(people.psort_by(&:age).map(&:__id__))
    expect { people.map(&:itself) }.to do_as_ruby(:max_by, &:age)
    expect { people.map(&:itself) }.to do_as_ruby(:min_by, &:age)
    expect { people.map(&:itself) }.to do_as_ruby(:minmax_by, &:age)
  end

  %i[min max minmax].each do |method|
    it "#{method} asks Ruby, or a block in kernels" do
      [0, 1, 2, 33, 256, 257, 1000].each do |size|
        expect(integers.call(size)).to do_as_ruby(method)
        expect(integers.call(size)).to(do_as_ruby(method) { |a, b| a % 10 == b % 10 ? a <=> b : a % 10 <=> b % 10 })
      end
      expect([1.5, -0.0, 2]).to do_as_ruby(method)
      expect(3..9).to(do_as_ruby(method) { |a, b| b <=> a })
      people = integers.call(300).map.with_index { |_, i| DoAsRuby::Person.new(:a, i) }
      expect { people }.to(do_as_ruby(method) { |a, b| a.age <=> b.age })
    end

    it "#{method}_by gives the first of several" do
      [0, 1, 2, 33, 1000].each do |size|
        pairs = integers.call(size).each_with_index.map { |x, i| [x % 5, i] }
        expect { pairs }.to do_as_ruby(:"#{method}_by", &:first)
        expect { pairs }.to(do_as_ruby(:"#{method}_by") { |x, _| -x / 2.0 })
      end
      expect([0.0, -0.0, 0]).to(do_as_ruby(:"#{method}_by") { |x| x })
      expect(%i[b a c]).to(do_as_ruby(:"#{method}_by") { |x| x })
    end
  end

  %i[min max min_by max_by].each do |method|
    it "#{method} gives several" do
      list = (1..40).map { |x| (x * 17) % 41 }
      [0, 1, 3, 50].each do |count|
        expect(list).to(method.end_with?("_by") ? do_as_ruby(method, count) { |x| -x } : do_as_ruby(method, count) { |a, b| b <=> a })
      end
      expect(list).to do_as_ruby(method, 3) unless method.end_with?("_by")
      expect { list.public_send(:"p#{method}", -1) { |x, _y| x } }.to raise_error(ArgumentError, "negative size (-1)")
    end
  end
end
