# frozen_string_literal: true

RSpec.describe "pselect, preject, ppartition, pfilter_map, pflat_map, pcount" do
  integers = ->(size) { Array.new(size) { |i| (i * 7919) % 101 - 50 } }
  floats = ->(size) { Array.new(size) { |i| ((i * 7919) % 101 - 50) / 8.0 } }
  union = ->(size) { Array.new(size) { |i| i % 3 == 1 ? nil : (i * 7919) % 101 - 50 } }
  objects = ->(size) { Array.new(size) { |i| DoAsRuby::Person.new(:anybody, (i * 7919) % 101) } }
  sizes = [0, 1, 2, 31, 32, 33, 1000]

  %i[select filter reject partition filter_map count].each do |method|
    it "#{method}s among Integers" do
      sizes.each { |size| expect(integers.call(size)).to do_as_ruby(method) { |x| x > 3 && x.odd? } }
    end

    it "#{method}s among Floats" do
      sizes.each { |size| expect(floats.call(size)).to do_as_ruby(method) { |x| x * 2 if x > 1.5 } }
    end

    it "#{method}s among what may be nil" do
      sizes.each { |size| expect(union.call(size)).to do_as_ruby(method) { |x| x } }
    end

    it "#{method}s among objects, and gives the very objects" do
      sizes.each { |size| expect { objects.call(size) }.to do_as_ruby(method) { |person| person.age > 50 } }
    end

    it "#{method}s by a Symbol, and by nothing that is true" do
      expect([1, 2, 3, 4]).to do_as_ruby(method, &:even?)
      expect([1, 2, 3, 4]).to do_as_ruby(method) { |_x| nil }
    end

    it "#{method}s over a Range" do
      expect(3...40).to do_as_ruby(method) { |x| x % 3 == 1 }
    end

    it "#{method}s among many" do
      expect(1..100_000).to do_as_ruby(method, on: :cpu) { |x| x % 7 == 3 }
    end

    it "#{method} raises what Ruby raises first, and changes nothing then" do
      seen = 0
      expect([5, 0, 2, 0]).to do_as_ruby(method) { |x| 10 / x > 3 }
      expect do
        [5, 0, 2].public_send(:"p#{method}") do |x|
          seen += x
          10 / x > 3
        end
      end.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq 1 }
      expect(seen).to eq 0
    end

    it "#{method} ends by break with its value" do
      expect([1, 2, 3].public_send(:"p#{method}") { |x| break x * 10 if x == 2 }).to eq 20
    end
  end

  it "keeps numbers where the section ran, and whatever else is true" do
    backends.each do |backend|
      blocks = [
        ->(x) { x * 2 if x > 3 }, ->(x) { x > 3 && x * 0.5 }, ->(x) { x > 3 ? x : (x > 1 ? 1.5 : nil) }, ->(x) { x > 3 ? :many : nil }, ->(x) { x > 3 }, ->(x) { x > 99 && x }, ->(x) { x },
        ->(x) { [x] if x > 3 }, ->(x) { x > 3 ? Integer : false }, ->(x) { x > 3 ? x : (x > 2 ? Float : nil) }
      ]
      [[], [3], [5, 1, 2, 8, 3], (1..2000)].product(blocks).each { |list, block| expect(list).to do_as_ruby(:filter_map, on: backend, &block) }
      section = Ikra.explain { [5, 1].pfilter_map(backend: backend, &blocks.first) }.sections.first
      expect(section.columns.map { |column| [column.name, column.storage] }).to include(%w[result i64], %w[result.there u8])
    end
  end

  it "gives what a block without parameters selects by index" do
    expect([10, 20, 30].pselect { Ikra.index == 1 }).to eq [20]
  end

  it "keeps what the block does to captured variables and to the elements" do
    sum = 0
    expect([1, 2, 3].pselect do |x|
      sum += x
      x > 1
    end).to eq [2, 3]
    expect(sum).to eq 6
    expect { Array.new(3) { |i| DoAsRuby::Person.new(:a, i) } }.to(do_as_ruby(:select) { |person| (person.age += 1) > 1 })
  end

  it "selects what the elements were, where the block changes the array" do
    list = [1, 2, 3, 4]
    expect(list.pselect do |x|
      list[3 - Ikra.index] = 9 if Ikra.index > 1
      x > 1
    end).to eq [2, 3, 4]
    expect(list).to eq [9, 9, 3, 4]
  end

  it "tells two blocks of one line and one operation apart" do
    2.times { expect([[1, 2, 3].pselect { |x| x > 1 }, [1, 2, 3].pselect { |x| x > 2 }]).to eq [[2, 3], [3]] }
  end

  it "takes the same block through different operations" do
    odd = ->(x) { x.odd? }
    expect([[1, 2].pselect(&odd), [1, 2].preject(&odd), [1, 2].pmap(&odd), [1, 2].pcount(&odd)]).to eq [[1], [2], [true, false], 1]
  end

  it "flattens one level of what the block gives" do
    expect([1, 2, 3]).to(do_as_ruby(:flat_map) { |x| [x, x * 10] })
    expect([[1, [2]], [3]]).to(do_as_ruby(:flat_map) { |x| x })
    expect([1, 2]).to(do_as_ruby(:flat_map) { |x| x })
    expect([]).to(do_as_ruby(:flat_map) { |x| [x] })
  end

  it "counts what is equal to an item, and all" do
    expect([1, 2, 1]).to do_as_ruby(:count, 1)
    expect([1, nil, nil]).to do_as_ruby(:count, nil)
    expect(1..5).to do_as_ruby(:count)
  end

  it "destructures, and takes a lambda and a method" do
    def self.big?(x) = x > 2
    expect([[1, 2], [3, 1]]).to(do_as_ruby(:select) { |a, b| a > b })
    expect([[1, 2], [3, 1]].pselect(&->(pair) { pair.first > 1 })).to eq [[3, 1]]
    expect([1, 2, 3].pselect(&method(:big?))).to eq [3]
  end
end
