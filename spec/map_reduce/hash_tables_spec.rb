# frozen_string_literal: true

# Updates of captured Hashes that kernels group while they make them.
RSpec.describe "captured Hashes in tables of kernels", :aggregate_failures do
  # Whether the kernel grouped the pairs. The section runs in this very call.
  def in_kernel?(&section) = Ikra.explain(&section).to_s.include?("in the kernel")

  # Runs a section on each backend, and plain Ruby, each with a Hash of its own. `tables`: whether kernels group.
  def compare(make, list, tables: true, &section)
    want = make.call
    list.each(&section.call(want))
    backends.each do |backend|
      found = make.call
      used = in_kernel? { list.peach(backend: backend, &section.call(found)) }
      expect(found.to_a.inspect).to eq(want.to_a.inspect), "on #{backend}"
      expect(used).to eq(tables), "on #{backend}"
      expect(found.keys.grep(String)).to all be_frozen
      again = make.call
      list.peach(backend: backend, &section.call(again))
      expect(again.to_a.inspect).to eq(want.to_a.inspect), "again on #{backend}"
    end
  end

  list = [[1, 5], [2, 7], [1, 3], [2, 9], [1, 5], [3, -1], [2, 0], [4, 4]]

  # Each kind of update, with what the Hash may be.
  [
    ["h[k] += v", -> { Hash.new(0) }, -> { Hash.new(1).merge!(2 => 10, 7 => nil) }, -> { Hash.new(0.5) }, -> { Hash.new { |h, k| h[k] = h.size * 100 } }],
    ["h[k] -= v", -> { Hash.new(0) }, -> { Hash.new(1).merge!(2 => 10) }, -> { Hash.new(0.5) }],
    ["k > 1 ? h[k] += v : h[k] -= v", -> { Hash.new(3) }],
    ["h[k] &= v", -> { Hash.new(-1) }, -> { Hash.new(6).merge!(2 => 5) }],
    ["h[k] |= v", -> { Hash.new(0) }, -> { Hash.new(8) }],
    ["h[k] = (h[k] || 0) + v", -> { {} }, -> { { 2 => nil, 3 => false, 1 => 4 } }, -> { Hash.new(2) }],
    ["h[k] = h.fetch(k, 0) + v", -> { {} }, -> { Hash.new(2) }],
    ["h.store(k, (h[k] || -2) - v)", -> { {} }],
    ["h[k] ||= 0; h[k] += v", -> { {} }, -> { { 1 => 3 } }],
    ["h[k] = 0 unless h[k]; h[k] += v", -> { {} }],
    ["h[k] = 0 unless h.key?(k); h[k] += v", -> { {} }],
    ["h[k] = [h[k], v].min", -> { Hash.new(4) }, -> { Hash.new(4.5) }, -> { Hash.new(4).merge!(2 => -3) }],
    ["h[k] = [v, h[k]].max", -> { Hash.new(4) }, -> { Hash.new(5.0) }],
    ["h[k] = [h[k] || 4, v].max", -> { {} }],
    ["h[k] = [h[k], v].compact.max", -> { {} }, -> { { 2 => 8, 1 => nil } }],
    ["h[k] = [v, h[k]].compact.min", -> { {} }],
    ["h[k] = v if h[k].nil? || v < h[k]", -> { {} }, -> { { 2 => 8, 1 => nil } }],
    ["h[k] = v if h[k].nil? || h[k] <= v", -> { {} }],
    ["h[k] = v if v < h[k]", -> { Hash.new(4) }, -> { Hash.new(4.5) }, -> { Hash.new(4).merge!(3 => -3, 2 => 4) }],
    ["h[k] = v if v <= h[k]", -> { Hash.new(4) }, -> { Hash.new(4).merge!(3 => -1.0) }],
    ["h[k] = v if h[k] < v", -> { Hash.new(4) }, -> { Hash.new(-7) }, -> { Hash.new(4).merge!(2 => 5) }],
    ["h[k] = v if v >= h[k]", -> { Hash.new(5) }, -> { Hash.new(5.0) }]
  ].each do |text, *makes|
    it "take `#{text}`" do
      section = eval("->(h) { ->((k, v)) { #{text} } }") # rubocop:disable Security/Eval
      makes.each { |make| compare(make, list, &section) }
    end
  end

  # The order in which keys are first stored, values that are no numbers of 64 bits, and updates of another kind.
  {
    "h[k] = v if v < h[k]" => [-> { Hash.new(4).merge!(2 => 8) }, -> { Hash.new { 4 } }],
    "h[k] = v if h[k].nil? || v < h[k]" => [-> { Hash.new(4) }],
    "h[k] += v" => [-> { Hash.new(0.5r) }],
    "h[k] = v" => [-> { {} }],
    "h[k] ||= v" => [-> { {} }],
    "(h[k] ||= []) << v" => [-> { {} }],
    "h[k] += v.to_s" => [-> { Hash.new("") }],
    "h[k] |= v > 3" => [-> { Hash.new(false) }],
    "h[k] += v.even? ? v : 0.5" => [-> { Hash.new(0) }]
  }.each do |text, makes|
    it "leave `#{text}` to chains" do
      section = eval("->(h) { ->((k, v)) { #{text} } }") # rubocop:disable Security/Eval
      makes.each { |make| compare(make, list, tables: false, &section) }
    end
  end

  it "take all keys that tables take" do
    words = ["", "a", "12345678", "a longer word than that", "\u00fc", "\u00fc".b, "\xff".dup.force_encoding("US-ASCII"), "a".b]
    compare(-> { Hash.new(0).merge!("a" => 3) }, words * 3) { |h| ->(word) { h[word] += 1 } }
    compare(-> { Hash.new(0) }, ["the cat", "", "The dog a cat", "the"]) { |h| ->(line) { line.downcase.split.each { |word| h[word] += 1 } } }
    compare(-> { Hash.new(0).merge!([1, :a] => 3) }, (0..40).to_a) { |h| ->(x) { h[[x % 3, x.even? ? :a : nil]] += x } }
    compare(-> { Hash.new(0) }, (0..40).to_a) { |h| ->(x) { h[x % 3 == 0 ? x : x % 3 == 1 ? "w#{x % 4}" : [x / 9, [x.odd?]]] += x } }
    compare(-> { Hash.new(0) }, [0.0, -0.0, 1.5, 2.0, 1.5]) { |h| ->(x) { h[x] += 1 } }
    compare(-> { Hash.new(0) }, [nil, true, false, nil]) { |h| ->(x) { h[x] += 1 } }
    compare(-> { Hash.new(0) }, %i[a b a]) { |h| ->(x) { h[x] += 1; h[:c] += 2 } }
    compare(-> { Hash.new(0) }, (0...3000).to_a) { |h| ->(x) { h[x * 31 % 2003] += x } }
    point = Struct.new(:x)
    compare(-> { Hash.new(0) }, [point.new(1), point.new(2)], tables: false) { |h| ->(at) { h[at] += at.x } }
    nan = Hash.new(0)
    backends.each { |backend| (0..5).peach(backend: backend) { |x| nan[x.odd? ? 0.0 / 0 : 1.0] += 1 } }
    expect([nan.size, nan[1.0]]).to eq [3 * backends.size + 1, 3 * backends.size]
  end

  it "add Floats exactly" do
    backends.each do |backend|
      sums = Hash.new(0)
      expect(in_kernel? { [2e15, 0.1, -2e15, 0.1].peach(backend: backend) { |x| sums[:all] += x } }).to be true
      expect(sums).to eq(all: 0.2)
      sums = { all: 1e16, rest: 2**53 }
      [1.0, 1.0].peach(backend: backend) { |x| (sums[:all] += x; sums[:rest] += x) }
      expect(sums).to eq(all: 1e16 + 2, rest: 2.0**53 + 2)
    end
    compare(-> { Hash.new(0.5) }, list) { |h| ->((k, v)) { h[k] -= v * 0.25 } }
    compare(-> { Hash.new(0.0) }, list) { |h| ->((k, v)) { h[k] = v * 0.5 if v * 0.5 > h[k] } }
  end

  it "leave NaN, infinity and zeros of unknown signs to chains" do
    [[0.0 / 0, 1.0], [Float::INFINITY, 1.0], [1e300, 1.0], [5e-324, 0.5], [-0.0, 0.0], [-0.0]].each do |values|
      compare(-> { Hash.new(0.0) }, values, tables: false) { |h| ->(x) { h[:a] += x } }
      compare(-> { { a: -0.0 } }, values, tables: false) { |h| ->(x) { h[:a] += x } }
    end
    compare(-> { { a: -0.0, b: -0.0 } }, [0.0, 0.0], tables: false) { |h| ->(x) { h[:a] -= x } }
    compare(-> { { a: -0.0 } }, [1.0, -1.0], tables: false) { |h| ->(x) { h[:a] -= x } }
    compare(-> { { a: -0.0 } }, [1, -1], tables: false) { |h| ->(x) { h[:a] -= x } }
    compare(-> { { a: -0.0 } }, [0], tables: false) { |h| ->(x) { h[:a] -= x } }
    compare(-> { { a: 0.0 } }, [1.0, -1.0]) { |h| ->(x) { h[:a] -= x } }
    compare(-> { { a: -0.0 } }, [0, 0]) { |h| ->(x) { h[:a] += x } }
    compare(-> { { a: 0.0 / 0 } }, [1.0, -1.0]) { |h| ->(x) { h[:a] += x } }
  end

  it "raise only for totals beyond 64 bits" do
    backends.each do |backend|
      wide = { a: -2**63, b: 2**62 }
      expect(in_kernel? { [2**62, 2**62, -2**62].peach(backend: backend) { |x| wide[:a] += x } }).to be true
      expect(wide).to eq(a: -2**62, b: 2**62)
      2.times do
        expect { [2**62, 1, -1].peach(backend: backend) { |x| wide[:b] += x } }.to raise_error(Ikra::IntegerOverflow, /wide/)
      end
      expect(wide).to eq(a: -2**62, b: 2**62)
      low = Hash.new(-2**63)
      [2**63 - 1, 2**63 - 1].peach(backend: backend) { |x| low[1] += x }
      expect(low).to eq(1 => 2**63 - 2)
      expect { [-2**63].peach(backend: backend) { |x| low[1] -= x } }.to raise_error(Ikra::IntegerOverflow)
    end
  end

  it "write nothing where an element raises" do
    backends.each do |backend|
      counts = Hash.new(0).merge!(1 => 1)
      2.times do
        expect { [1, 2, 0].peach(backend: backend) { |x| counts[x] += 6 / x } }.to raise_error(ZeroDivisionError)
        expect { [1, nil].peach(backend: backend) { |x| counts[x] += x } }.to raise_error(TypeError, /nil can't be coerced/)
        expect { [1, nil].peach(backend: backend) { |x| counts[1] = x if counts[1] < x } }.to raise_error(ArgumentError, /comparison of Integer with nil/)
      end
      bare = { 1 => 1 }
      expect { [1, 2].peach(backend: backend) { |x| bare[x] += 1 } }.to raise_error(NoMethodError) { |error|
        expect(error.backtrace.first).to start_with "#{__FILE__}:#{__LINE__ - 1}"
      }
      frozen = Hash.new(0).freeze
      expect { [1].peach(backend: backend) { |x| frozen[x] += 1 } }.to raise_error(FrozenError)
      expect([counts, bare, frozen]).to eq [{ 1 => 1 }, { 1 => 1 }, {}]
      expect { { 1 => 2 }.merge!(counts).each { [1].peach(backend: backend) { |x| counts[x] += 1 } } }.not_to raise_error
      expect { counts.each { [5, 6].peach(backend: backend) { |x| counts[x] += 1 } } }.to raise_error(RuntimeError, /can't add a new key/)
      expect(counts).to eq(1 => 2)
    end
  end

  it "stand beside results, other variables, and changed objects" do
    at = Struct.new(:count)
    backends.each do |backend|
      counts, lists, most, total, last = Hash.new(0), {}, Hash.new(0), 0, nil
      objects = Array.new(40) { |i| at.new(i) }
      squares = objects.pmap(backend: backend) do |object|
        x = object.count
        counts[x % 3] += x
        (lists[x % 4] ||= []) << x
        most[x % 5] = x if x > most[x % 5]
        total += x
        last = x
        object.count += 1
        x * x
      end
      expect(squares).to eq((0...40).map { |x| x * x })
      expect(counts.to_a).to eq [[0, 273], [1, 247], [2, 260]]
      expect(lists.transform_values(&:sum).to_a).to eq [[0, 180], [1, 190], [2, 200], [3, 210]]
      expect(most.to_a).to eq [[1, 36], [2, 37], [3, 38], [4, 39], [0, 35]]
      expect([total, last, objects.map(&:count)]).to eq [780, 39, (1..40).to_a]
      odd = (1..6).pselect(backend: backend) do |x|
        counts[:all] += 1
        x.odd?
      end
      expect([odd, counts[:all]]).to eq [[1, 3, 5], 6]
      (0...3000).peach(backend: backend) { |x| (total += x; counts[-x] += x) }
      expect([total, counts.size, counts[-2999]]).to eq [780 + 1499 * 3000 + 1500, 3003, 2999]
    end
  end

  it "number updates by elements, in whatever order these run" do
    first = Class.new do
      attr_accessor :count

      def initialize(count) = @count = count
      def name = @count
    end
    second = Class.new(first) { def name = -@count }
    backends.each do |backend|
      want, found = [1, 2].map do
        objects = Array.new(60) { |i| (i % 3 == 0 ? second : first).new(i % 7) }
        [objects + objects.first(20), Hash.new(0)]
      end
      step = lambda do |object, counts|
        object.count += 1
        counts[object.name] += object.count
      end
      want.first.each { |object| step.call(object, want.last) }
      counts = found.last
      found.first.peach(backend: backend) do |object|
        object.count += 1
        counts[object.name] += object.count
      end
      expect(counts.to_a).to eq(want.last.to_a), "on #{backend}"
      expect(found.first.map(&:count)).to eq want.first.map(&:count)
    end
  end

  it "give way to a break, several ticks, Ikra.resident and sections at once" do
    backends.each do |backend|
      counts = Hash.new(0)
      (1..100).peach(backend: backend) do |x|
        counts[x % 3] += x
        break if x == 7
      end
      expect(counts).to eq(1 => 12, 2 => 7, 0 => 9)
      (0..5).peach(3, backend: backend) { |x| counts[x % 2] += 1 }
      expect(counts).to eq(1 => 21, 2 => 7, 0 => 18)
      Ikra.resident { 2.times { (0..5).peach(backend: backend) { |x| counts[x % 2] += 1 } } }
      expect(counts).to eq(1 => 27, 2 => 7, 0 => 24)
      other = Hash.new(0)
      Ikra.concurrently do
        (0..5).peach(backend: backend) { |x| counts[x % 2] += 1 }
        (0..5).peach(backend: backend) { |x| other[x % 2] += 1 }
      end
      expect([counts, other]).to eq [{ 1 => 30, 2 => 7, 0 => 27 }, { 0 => 3, 1 => 3 }]
      found = (0..9).pfind(backend: backend) { |x| (other[0] += 1; x == 4) }
      expect([found, other[0]]).to eq [4, 8]
      pairs = (0..9).pmap_reduce(:+, backend: backend) { |x, out| (other[x % 2] += 1; out.emit(x % 3, x)) }
      expect([pairs, other]).to eq [{ 0 => 18, 1 => 12, 2 => 15 }, { 0 => 13, 1 => 8 }]
    end
  end

  it "go on where the values change their kinds from call to call" do
    backends.each do |backend|
      sums = Hash.new(0)
      section = ->(x) { sums[x > 2] += x }
      [[1, 20], [1.5, 2.5], [1, 2.5], [3, 4], [1r, 2], [5, 6]].each { |values| values.peach(backend: backend, &section) }
      expect(sums).to eq([1, 20, 1.5, 2.5, 1, 2.5, 3, 4, 1r, 2, 5, 6].each_with_object(Hash.new(0)) { |x, all| all[x > 2] += x })
      most = Hash.new(0)
      section = ->(x) { most[x % 2] = x if x > most[x % 2] }
      [1, 2, 8].peach(backend: backend, &section)
      most.default = 5
      [3, 4].peach(backend: backend, &section)
      most.default = nil
      [9, 10].peach(backend: backend, &section)
      expect(most.to_a).to eq [[1, 9], [0, 10]]
    end
  end

  it "compute what plain Ruby computes, for random updates" do
    random = Random.new(7)
    keys = ["k", "k % 3", "[k, v % 2]", "k.to_s", "k.even? ? k : k.to_s", "k * 0.5", "[[k], :a, nil]", "k > 4"]
    values = ["v", "v * 0.25", "-v", "v * 1099511627776"]
    updates = ["h[K] += V", "h[K] -= V", "h[K] = [h[K], V].max", "h[K] = [V, h[K]].min", "h[K] = V if V > h[K]", "h[K] = V if h[K] >= V",
               "h[K] = (h[K] || 1) + V", "h[K] = V if h[K].nil? || V < h[K]", "h[K] = h.fetch(K, 2) - V"]
    60.times do
      key, value, update = keys.sample(random: random), values.sample(random: random), updates.sample(random: random)
      text = "(x % 3).times { |i| k += i; #{update.gsub("K", key).gsub("V", value)} }"
      section = eval("->(h) { ->(x) { k = x * 7 % 11; v = x * 37 % 23 - 9; #{text} } }") # rubocop:disable Security/Eval
      elements = Array.new(random.rand(1..200)) { random.rand(1000) }
      start = [0, 1.5, -3, 40].sample(random: random)
      kept = Array.new(random.rand(4)) { |i| [[i, i.to_s, [i, 0]].sample(random: random), random.rand(-9..9)] }.to_h
      want = Hash.new(start).merge!(kept)
      elements.each(&section.call(want))
      backends.each do |backend|
        found = Hash.new(start).merge!(kept)
        elements.peach(backend: backend, &section.call(found))
        expect(found.to_a.inspect).to eq(want.to_a.inspect), "#{text} from #{start} and #{kept} on #{backend}"
      end
    end
  end
end
