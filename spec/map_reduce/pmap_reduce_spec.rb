# frozen_string_literal: true

RSpec.describe "pmap_reduce" do
  include ReduceAsRuby::Examples

  point = Struct.new(:x, :y)
  order = Struct.new(:city, :price)
  average = ->(_key, values) { values.sum / values.size }

  it "gives pairs in the order of their emission" do
    expect(1..40).to(reduce_as_ruby { |x, out| (x % 4).times { |i| out.emit(x % 3, x * i) } })
    expect(1..3).to(reduce_as_ruby { |_x, _out| nil })
    expect([]).to(reduce_as_ruby { |x, out| out.emit(x, x) })
  end

  it "combines Integers and Floats by operators" do
    %i[+ * min max & |].each do |operator|
      expect(1..30).to(reduce_as_ruby(operator) { |x, out| out.emit(x % 4, x); out.emit(-1, 1 << (x % 2)) })
    end
    floats = Array.new(200) { |i| ((i * 7919) % 101 - 50) / 3.0 }
    %i[+ min max].each do |operator|
      expect(floats).to(reduce_as_ruby(operator) { |x, out| out.emit(x.floor % 5, x) })
    end
  end

  it "adds Floats exactly, in any order" do
    terms = [1e300, 1.0, -1e300, 0.1, 0.2, -0.0, 5e-324, 1e16, 1.0, -1e16]
    expect(terms * 3).to(reduce_as_ruby(:+) { |x, out| out.emit(0, x) })
    expect([-0.0, -0.0]).to(reduce_as_ruby(:+) { |x, out| out.emit(x > 1, x) })
    expect([1, 0.5, 2**53, 1]).to(reduce_as_ruby(:+) { |x, out| out.emit(:sum, x) })
    expect([Float::INFINITY, -1.0]).to(reduce_as_ruby(:+) { |x, out| out.emit(:sum, x) })
  end

  it "raises where a sum leaves 64 bits, but not on the way" do
    great = 2**62
    expect([great, great, -great]).to(reduce_as_ruby(:+) { |x, out| out.emit(0, x) })
    on_each = ->(backend) { [great, great].pmap_reduce(:+, backend: backend) { |x, out| out.emit(0, x) } }
    backends.each { |backend| expect { on_each.call(backend) }.to raise_error(Ikra::IntegerOverflow, /sum of a group/) }
  end

  it "combines by a block, in the order of emission" do
    expect(1..50).to(reduce_as_ruby(->(a, b) { a * 3 % 1_000_003 + b }) { |x, out| out.emit(x % 3, x) })
    expect(1..50).to(reduce_as_ruby(->(_a, b) { b }) { |x, out| out.emit(x % 3, [x, x + 1]) })
    expect(1..50).to(reduce_as_ruby(:gcd) { |x, out| out.emit(x % 2, x * 12) })
  end

  it "reduces the values of each key" do
    orders = Array.new(60) { |i| order.new(%w[Kyoto Nara Osaka][i % 3], i * 1.25) }
    expect(orders).to(reduce_as_ruby(reduce: average) { |o, out| out.emit(o.city, o.price) })
    expect(orders).to(reduce_as_ruby(reduce: ->(city, prices) { [city, prices.max, prices.size] }) { |o, out| out.emit(o.city, o.price) })
    expect(orders).to(reduce_as_ruby(:+, reduce: ->(_city, sums) { sums[0] * 2 }) { |o, out| out.emit(o.city, o.price) })
    expect(1..20).to(reduce_as_ruby(reduce: :eql?.to_proc) { |x, out| out.emit(x % 3, x) })
    expect((1..20).pmap_reduce(reduce: :eql?) { |x, out| out.emit(x % 3, x) }).to eq(1 => false, 2 => false, 0 => false)
    expect(1..20).to(reduce_as_ruby(reduce: ->(k, vs) { k.nil? ? vs.first : vs.last }) { |x, out| out.emit(x.even? ? x % 3 : nil, x) })
  end

  it "takes numbers, Symbols, Strings, tuples, Structs and objects for keys" do
    points = Array.new(30) { |i| point.new(i % 3, i % 2) }
    people = Array.new(30) { |i| DoAsRuby::Person.new("p#{i % 4}", i % 5) }
    friends = people.first(3)
    expect(points).to(reduce_as_ruby(:+) { |p, out| out.emit(p, 1) })
    expect(points).to(reduce_as_ruby(:+) { |p, out| out.emit([p.x, p.y], 1); out.emit(p.x, 2); out.emit(p.x.to_f, 3) })
    expect(points).to(reduce_as_ruby(:+) { |p, out| out.emit(point.new(p.x, 0), 1) })
    expect(people).to(reduce_as_ruby(:+) { |p, out| out.emit(p.name, 1); out.emit(p.age > 2 ? :old : nil, p.age) })
    expect(0...30).to(reduce_as_ruby(:+) { |i, out| out.emit(friends[i % 3], i) })
    expect(%w[ab abc b ab ü über]).to(reduce_as_ruby(:+) { |w, out| out.emit(w[0], 1); out.emit(w[0, 2], w.size); out.emit("ab", 10) })
  end

  it "tells 1 from 1.0, and groups 0.0 and -0.0 as Ruby does" do
    expect([1, 1.0, 1, 0.0, -0.0]).to(reduce_as_ruby(:+) { |x, out| out.emit(x, 1) })
    expect([0.0, -0.0, 2.0]).to(reduce_as_ruby(:+) { |x, out| out.emit(x, 1) })
  end

  it "makes a key of each NaN" do
    expect([0.0, 1.0, 0.0]).to(reduce_as_ruby(:+) { |x, out| out.emit(x / 0.0 * 0.0, 1) })
  end

  it "copies and freezes Strings that are keys, and keeps other keys" do
    list = [+"a", +"b", +"a"]
    found = list.pmap_reduce(:+) { |text, out| out.emit(text, 1) }
    expect(found).to eq("a" => 2, "b" => 1)
    expect(found.keys).to all be_frozen
    expect(list).to all satisfy { |text| !text.frozen? }
    person = DoAsRuby::Person.new("p", 1)
    expect([person].pmap_reduce(:+) { |p, out| out.emit(p, 1) }.keys.first).to be person
  end

  it "takes values of several kinds" do
    expect(1..20).to(reduce_as_ruby { |x, out| out.emit(x % 2, x.even? ? x : x / 2.0); out.emit(:s, "text"); out.emit(nil, nil) })
    expect(1..20).to(reduce_as_ruby(reduce: ->(_k, vs) { vs.size }) { |x, out| out.emit(x % 2, x % 3 == 0 ? nil : x) })
  end

  it "emits from methods, and from several lines of a chain" do
    counter = Class.new do
      def count(x, out) = out.emit(x % 3, 1).emit(:all, 1)
    end.new
    expect(1..30).to(reduce_as_ruby(:+) { |x, out| counter.count(x, out) })
  end

  it "orders keys" do
    list = Array.new(50) { |i| (i * 37) % 23 }
    expect(list.pmap_reduce(:+, order: :key) { |x, out| out.emit(x, 1) }.to_a).to eq list.tally.sort
    expect(list.pmap_reduce(:+, order: :none) { |x, out| out.emit(x, 1) }).to eq list.tally
    expect { list.pmap_reduce(:+, order: :key) { |x, out| out.emit(x.even? ? :a : 1, 1) } }.to raise_error(ArgumentError, /comparison of/)
  end

  it "raises what a block raises, with its element" do
    expect([1, 2, 0, 3]).to(reduce_as_ruby(:+) { |x, out| out.emit(6 / x, 1) })
    expect([1, 2]).to(reduce_as_ruby(->(a, b) { a / (b - 2) }) { |x, out| out.emit(0, x) })
    expect([1, 2]).to(reduce_as_ruby(reduce: ->(k, vs) { vs.size / k }) { |x, out| out.emit(x - 1, x) })
    backends.each do |backend|
      [3, 0].pmap_reduce(:+, backend: backend) { |x, out| out.emit(6 / x, 1) }
      raise "not reached"
    rescue ZeroDivisionError => e
      expect(e.ikra.index).to eq 1
    end
  end

  it "leaves what it was given as it was where it raises" do
    people = Array.new(3) { |i| DoAsRuby::Person.new("p", i) }
    expect do
      people.pmap_reduce(:+) do |person, out|
        person.age += 1
        out.emit(person.age / (person.age - 3), 1)
      end
    end.to raise_error(ZeroDivisionError)
    expect(people.map(&:age)).to eq [0, 1, 2]
  end

  it "ends by break" do
    expect([1, 2, 3].pmap_reduce(:+) { |x, out| (break :out) if x == 2; out.emit(x, 1) }).to eq :out
  end

  it "runs plain Ruby where that is asked for" do
    expect { @found = (1..9).pmap_reduce(:+, unsupported: :ruby, order: :key) { |x, out| out.emit(x % 2, "#{x}".freeze.hash.to_s.size * 0) } }.to output(/plain Ruby/).to_stderr
    expect(@found).to eq(0 => 0, 1 => 0)
  end

  it "checks its arguments" do
    expect { [1].pmap_reduce(:+) }.to raise_error(ArgumentError, "no block that emits pairs")
    expect { [1].pmap_reduce(3) { |x, out| out.emit(x, x) } }.to raise_error(TypeError, /combine: 3/)
    expect { [1].pmap_reduce(:+, order: :last) { |x, out| out.emit(x, x) } }.to raise_error(ArgumentError, /order: :last/)
    expect { [1].pmap_reduce(:+, lazy: 1) { |x, out| out.emit(x, x) } }.to raise_error(ArgumentError, /lazy: 1/)
    expect { [1].pmap_reduce(:+, colour: 1) { |x, out| out.emit(x, x) } }.to raise_error(ArgumentError, /colour/)
  end

  it "groups many keys", :aggregate_failures do
    list = Array.new(100_000) { |i| (i * 7919) % 5003 }
    texts = list.map { |i| "key #{i}, and more" }
    expect(list).to(reduce_as_ruby(:+, on: :cpu) { |x, out| out.emit(x, 1) })
    expect(list).to(reduce_as_ruby(:+, on: :cpu) { |x, out| out.emit(x * 0.5, x); out.emit(x, 0) })
    expect(texts).to(reduce_as_ruby(:+, on: :cpu) { |x, out| out.emit(x[4, 4], 1) })
  end
end
