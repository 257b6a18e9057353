# frozen_string_literal: true

RSpec.describe "Captured Hashes", :aggregate_failures do
  # Runs a section on each backend, and plain Ruby, each with fresh Hashes.
  def compare(make, list, ticks: 1, &section)
    want = make.call
    ticks.times { list.each { |x| section.call(want).call(x) } }
    backends.each do |backend|
      found = make.call
      list.peach(ticks, backend: backend, &section.call(found))
      found.zip(want).each do |hash, expected|
        expect(hash.to_a.inspect).to eq(expected.to_a.inspect), "on #{backend}"
        expect(hash.keys.grep(String)).to all be_frozen
      end
    end
  end

  it "counts words", :stress do
    lines = ["the cat", "", "The dog a cat", "the"]
    backends.each do |backend|
      counts = Hash.new(0)
      lines.peach(backend: backend) { |line| line.downcase.split.each { |word| counts[word] += 1 } }
      expect(counts.to_a).to eq [["the", 3], ["cat", 2], ["dog", 1], ["a", 1]]
      expect(counts.keys).to all be_frozen
      expect(counts["none"]).to eq 0
    end
  end

  it "keeps what was there" do
    backends.each do |backend|
      counts = { 2 => 10, "x" => 1.5, 0 => 1 }
      (0..5).peach(backend: backend) { |x| counts[x % 3 * 2 % 3] += x if x % 3 != 2 }
      expect(counts.to_a).to eq [[2, 15], ["x", 1.5], [0, 4]]
    end
  end

  it "accumulates beside results" do
    backends.each do |backend|
      counts = Hash.new(0)
      squares = [1, 2, 3].pmap(backend: backend) do |x|
        counts[x.odd?] += x
        x * x
      end
      odd = (1..6).pselect(backend: backend) do |x|
        counts[:all] += 1
        x.odd?
      end
      expect(squares).to eq [1, 4, 9]
      expect(odd).to eq [1, 3, 5]
      expect(counts).to eq(true => 4, false => 2, :all => 6)
    end
  end

  it "leaves out what comes behind a break" do
    backends.each do |backend|
      counts = Hash.new(0)
      (1..100).peach(backend: backend) do |x|
        counts[x % 3] += x
        break if x == 7

        counts[:whole] += 1
      end
      expect(counts.to_a).to eq [[1, 12], [:whole, 6], [2, 7], [0, 9]]
    end
  end

  it "updates in each way" do
    list = [[1, 5], [2, 7], [1, 3], [2, 9], [1, 5], [3, -1], [2, 0]]
    compare(-> { [Hash.new(0)] }, list) { |h,| ->(x) { h[x[0]] += x[1] } }
    compare(-> { [Hash.new(0)] }, list) { |h,| ->(x) { h[x[0]] -= x[1] } }
    compare(-> { [Hash.new(-1)] }, list) { |h,| ->(x) { h[x[0]] &= x[1] } }
    compare(-> { [Hash.new(0)] }, list) { |h,| ->(x) { h[x[0]] |= x[1] } }
    compare(-> { [Hash.new(0)] }, list) { |h,| ->(x) { h[x[0]] = h[x[0]] + x[1] } }
    compare(-> { [Hash.new(4)] }, list) { |h,| ->(x) { h[x[0]] = x[1] if x[1] < h[x[0]] } }
    compare(-> { [Hash.new(4)] }, list) { |h,| ->(x) { h[x[0]] = x[1] if h[x[0]] < x[1] } }
    compare(-> { [Hash.new(4)] }, list) { |h,| ->(x) { h[x[0]] = x[1] if x[1] >= h[x[0]] } }
    compare(-> { [Hash.new(4)] }, list) { |h,| ->(x) { h[x[0]] = [h[x[0]], x[1]].min } }
    compare(-> { [Hash.new(4)] }, list) { |h,| ->(x) { h[x[0]] = [x[1], h[x[0]]].max } }
    compare(-> { [{ 2 => 3 }] }, list) { |h,| ->(x) { h[x[0]] = x[1] } }
    compare(-> { [{ 2 => [3] }] }, list) { |h,| ->(x) { (h[x[0]] ||= []) << x[1] } }
    compare(-> { [Hash.new { |h, k| h[k] = [] }] }, list) { |h,| ->(x) { h[x[0]] << x[1] } }
    compare(-> { [Hash.new { |h, k| h[k] = [] }] }, list) { |h,| ->(x) { h[x[0]].push(x[1]) } }
    compare(-> { [Hash.new { |h, k| h[k] = h.size * 100 }] }, list) { |h,| ->(x) { h[x[0]] += x[1] } }
    compare(-> { [Hash.new { |h, _| h.size * 3 }] }, list) { |h,| ->(x) { h[x[0]] += x[1] } }
    compare(-> { [Hash.new { |h, _| h.size * 3 }] }, list) { |h,| ->(x) { h[x[0]] = x[1] if h[x[0]] < x[1] } }
    compare(-> { [Hash.new { [] }] }, list) { |h,| ->(x) { h[x[0]] << x[1] } }
    compare(-> { [Hash.new([0])] }, list) { |h,| ->(x) { h[x[0]] << x[1] } }
    compare(-> { [Hash.new(3)] }, list) { |h,| ->(x) { x[0] == 2 ? h[x[0]] += x[1] : h[x[0]] -= x[1] } }
    compare(-> { [Hash.new(0.5)] }, list) { |h,| ->(x) { (h[x[0]] += x[1]; h[x[1]] -= 0.25) } }
    compare(-> { [Hash.new("")] }, list) { |h,| ->(x) { h[x[0]] += x[1].to_s } }
  end

  it "takes a literal for a value that is not there" do
    list = [[1, 5], [2, 7], [1, 3], [2, 9], [1, 5], [3, -1], [2, 0]]
    kept = [{}, { 2 => nil, 3 => false, 1 => 4 }, { 1 => true, 7 => 7 }]
    [*kept.map { |hash| -> { hash.dup } }, -> { Hash.new(2) }, -> { Hash.new { |h, k| h[k] = h.size } }].each do |make|
      hashes = -> { [make.call] }
      operators = %w[+ - & |].map { |operator| "h[k] = (h[k] || 1) #{operator} v" } + ["h[k] = (h[k] || 0.5) + v", "h.store(k, (h[k] || -2) - v)"]
      operators += ["h[k] ||= 3; h[k] += v", "h[k] = 3 unless h[k]; h[k] += v", "h[k] = 3 if !h[k]; h[k] -= v", "h[k] = [v, h[k] || 4].max",
                    "k > 1 ? h[k] = (h[k] || 1) + v : h[k] = (h[k] || 1) - v"]
      absent = ["h[k] = h.fetch(k, 0) + v", "h.store(k, h.fetch(k, -1) | v)", "h[k] = 3 unless h.key?(k); h[k] += v", "h[k] = [h.fetch(k, 4), v].min"]
      others = ["h[k] ||= v", "h[k] ||= nil", "h[k] = [h[k], v].compact.max", "h[k] = [v, h[k]].compact.min", "h[k] = v if h[k].nil? || v < h[k]",
                "h[k] = v if h[k].nil? || h[k] <= v", "h.store(k, v)", "h.store(k, [h[k], v].max)"]
      (operators + absent + others).each do |text|
        section = eval("->((h)) { ->((k, v)) { #{text} } }") # rubocop:disable Security/Eval
        want = make.call
        raised = begin
          list.each(&section.call([want]))
          nil
        rescue StandardError => error
          error.class
        end
        compare(hashes, list, ticks: 2, &section) unless raised
        expect { list.peach(&section.call([make.call])) }.to raise_error { |error| expect(error.class).to be(raised).or be(Ikra::CompileError) } if raised
      end
    end
    compare(-> { [{}] }, list) { |h,| ->((k, v)) { h[k] = (h[k] || "") + v.to_s } }
    compare(-> { [{ 2 => false, 3 => [0] }] }, list) { |h,| ->((k, v)) { (h[k] ||= []; h[k] << v) } }
    backends.each do |backend|
      counts, lists = {}, {}
      list.peach(backend: backend) do |k, v|
        counts[k] = 3 if !counts[k] # rubocop:disable Style/NegatedIf
        counts[k] += v * 2
        lists[k] ||= []
        lists[k] << v.to_s
      end
      expect([counts, lists]).to eq [{ 1 => 29, 2 => 35, 3 => 1 }, { 1 => %w[5 3 5], 2 => %w[7 9 0], 3 => %w[-1] }]
    end
    compare(-> { [{ 1 => -0.0 }] }, list) { |h,| ->((k, v)) { h[k] = h.fetch(k, -0.0) + v * 0.5 } }
  end

  it "takes two statements for one only where no rescue tells them apart" do
    counts = {}
    backends.each do |backend|
      refused = lambda do |&section|
        expect { %w[1 x 2].peach(backend: backend, &section) }.to raise_error(Ikra::CompileError, /accumulate/)
      end
      refused.call do |x|
        counts[1] ||= 0
        counts[1] += Integer(x)
      rescue ArgumentError
        nil
      end
      refused.call { |x| (counts[1] ||= x.size; counts[1] += 1) }
      refused.call { |x| counts[1] = (counts[1] || x.size) + 1 }
      refused.call { |x| counts[1] = (counts[2] || 0) + x.size }
      refused.call { |x| (counts[1] ||= 0; counts[2] += x.size) }
      refused.call { |x| counts[1] ||= x.to_i }
    end
    expect(counts).to be_empty
  end

  it "stores the very objects, and new ones" do
    point = Struct.new(:x, :y)
    points = [[1, 2], [3, 2], [5, 6]].map { |x, y| point.new(x, y) }
    backends.each do |backend|
      last, all, made = {}, Hash.new { |hash, key| hash[key] = [] }, {}
      points.peach(backend: backend) do |at|
        last[at.y] = at
        all[at.y] << at
        made[at] = point.new(at.y, at.x)
      end
      expect(last).to eq(2 => points[1], 6 => points[2])
      expect(last.values + all[2]).to match [equal(points[1]), equal(points[2]), equal(points[0]), equal(points[1])]
      expect(made.keys).to match(points.map { |at| equal(at) })
      expect(made.values.map(&:to_a)).to eq [[2, 1], [2, 3], [6, 5]]
    end
  end

  it "sums exactly" do
    backends.each do |backend|
      sums = Hash.new(0)
      [1e16, 1.0, -1e16, 1.0].peach(backend: backend) { |x| sums[:all] += x }
      expect(sums).to eq(all: 2.0)
      wide = { a: -2**63, b: 2**62 }
      [2**62, 2**62, -2**62].peach(backend: backend) { |x| wide[:a] += x }
      expect(wide).to eq(a: -2**62 - 2**62 + 2**62, b: 2**62)
      expect { [2**62, 1, -1].peach(backend: backend) { |x| wide[:b] += x } }.to raise_error(Ikra::IntegerOverflow, /wide/)
      zeros = { a: -0.0, b: -0.0, c: -0.0 }
      [:a, :b].peach(backend: backend) { |key| zeros[key] -= 0 }
      [:c].peach(backend: backend) { |key| zeros[key] += 0 }
      expect(zeros.inspect).to eq "{:a=>-0.0, :b=>-0.0, :c=>0.0}".then { |text| eval(text).inspect } # rubocop:disable Security/Eval
    end
  end

  it "updates over several ticks in the order of ticks" do
    compare(-> { [Hash.new(0), { 4 => 1 }, {}] }, (0..5).to_a, ticks: 4) do |counts, last, lists|
      lambda do |x|
        counts[x * 7 % 3] += x
        last[x % 4] = x * 10 + counts_of(x)
        (lists[x % 2] ||= []) << x
      end
    end
  end

  def counts_of(x) = x + 1

  it "works within Ikra.resident" do
    at = Class.new do
      attr_reader :count

      def initialize = @count = 0
      def step = @count += 1
    end
    backends.each do |backend|
      counts = Hash.new(0)
      list = [at.new, at.new]
      Ikra.resident do
        3.times do
          list.peach(backend: backend) do |object|
            object.step
            counts[object] += object.count
            counts[object.count] += 1
          end
        end
      end
      expect(counts).to eq(list[0] => 6, list[1] => 6, 1 => 2, 2 => 2, 3 => 2)
    end
  end

  it "refuses keys that the section may change" do
    point = Struct.new(:x)
    backends.each do |backend|
      counts = Hash.new(0)
      points = [point.new(1), point.new(2)]
      section = lambda do |at|
        at.x += 1
        counts[at] += 1
      end
      expect { points.peach(backend: backend, &section) }.to raise_error(Ikra::CompileError, /has keys that are compared by/)
      expect([counts, points.map(&:x)]).to eq [{}, [1, 2]]
      points.peach(backend: backend) { |at| counts[at] += at.x }
      expect(counts).to eq(points[0] => 1, points[1] => 2)
    end
  end

  it "raises what Ruby raises, and writes nothing" do
    backends.each do |backend|
      counts = { 1 => 1 }
      seen = 0
      expect { [1, 2].peach(backend: backend) { |x| counts[x] += 1 } }.to raise_error(NoMethodError, /undefined method [`']\+' for nil/)
      expect { [1, 2].peach(backend: backend) { |x| (seen += 1; counts[x] += 1) } }.to raise_error(NoMethodError) { |error|
        expect(error.message).to end_with "nil:NilClass" if RUBY_VERSION < "3.3"
        expect(error.backtrace.first).to start_with "#{__FILE__}:#{__LINE__ - 2}"
      }
      expect { [1, 0].peach(backend: backend) { |x| counts[1] += 1 / x } }.to raise_error(ZeroDivisionError)
      expect { [1, "x"].peach(backend: backend) { |x| counts[1] += x } }.to raise_error(TypeError)
      expect { [1, 3].peach(backend: backend) { |x| counts[x] = x if x < counts[x] } }.to raise_error(ArgumentError, /comparison of Integer with nil/)
      expect { [1, 3].peach(backend: backend) { |x| counts[x] = [counts[x], x].max } }.to raise_error(ArgumentError, /comparison of/)
      expect(counts).to eq(1 => 1)
      expect(seen).to eq 0
      frozen = Hash.new(0).freeze
      expect { [1].peach(backend: backend) { |x| frozen[x] += 1 } }.to raise_error(FrozenError) { |error| expect(error.receiver).to equal frozen }
      [].peach(backend: backend) { |x| frozen[x] += 1 }
      [1].peach(backend: backend) { |x| frozen[x] += 1 if x > 1 }
      lists = { 1 => [2].freeze, 0 => [] }
      expect { [0, 1].peach(backend: backend) { |x| lists[x] << x } }.to raise_error(FrozenError, /can't modify frozen Array/)
      expect { [0, 2].peach(backend: backend) { |x| lists[x] << x } }.to raise_error(NoMethodError, /undefined method [`']<<' for nil/)
      expect(lists).to eq(1 => [2], 0 => [])
    end
  end

  it "shows no line of Ikra's own in an error" do
    updates = ["h[1] += 1", "h[1] &= 1", "h[1] = 2 if h[1] > 2", "h[1] = nil if nil > h[1]", "h[1] << 2", "(h[1] ||= []) << 2", "h[1] = (h[1] || true) - 1"]
    found = updates.product([nil, true, 2.5, :a], backends).filter_map do |update, there, backend|
      eval("->(h) { [0].peach(backend: backend) { |x| #{update} } }", binding, __FILE__, __LINE__).call({ 1 => there })
      nil
    rescue Ikra::CompileError
      nil
    rescue StandardError => error
      expect(error.message.lines.grep_v(/\A(Did you mean.*)?\s*\z/).size).to eq(1), error.message
      error.class
    end
    expect(found.uniq).to include NoMethodError
  end

  it "goes with each iterator, and with each section that runs its block once for an element" do
    lists = [%w[a b], ["b"], []]
    backends.each do |backend|
      counts = Hash.new(0)
      lists.peach(backend: backend) do |list|
        next if list.empty?

        list.each_with_index { |x, i| counts[x] += i + 1 }
        list.join.each_char { |x| counts[x] += 10 }
        list.each_cons(2) { |pair| counts[pair] += 1 }
        0.upto(list.size) { |i| counts[i] += 1 }
        i = 0
        while i < list.size
          counts[list[i]] += 100
          i += 1
        end
        begin
          counts[Integer(list[0])] += 1
        rescue ArgumentError
          counts[:bad] += 1
        end
        case list.size
        when 1 then counts[:one] += 1
        else list.size > 1 ? counts[:more] += 1 : counts[:none] += 1
        end
      end
      expect(counts.to_a).to eq [["a", 111], ["b", 223], [%w[a b], 1], [0, 2], [1, 2], [2, 1], [:bad, 2], [:more, 1], [:one, 1]]

      seen = Hash.new(0)
      called = { pmap: [1, 4], pselect: [1, 2], pfilter_map: [1, 4], psum: 5, pgroup_by: { 1 => [1], 4 => [2] }, psort_by: [1, 2], pflat_map: [1, 4] }
      called.each do |name, expected|
        found = (1..2).public_send(name, backend: backend) do |x|
          seen[name] += x
          x * x
        end
        expect(found).to eq expected
      end
      expect(seen).to eq(called.transform_values { 3 })
      found = (1..9).pfind(backend: backend) do |x|
        seen[:found] += 1
        x > 3
      end
      expect([found, seen[:found]]).to eq [4, 4]
    end
  end

  it "runs as plain Ruby on demand, where kernels cannot" do
    own = Class.new(Hash).new(0)
    expect { [1, 2, 1].peach(unsupported: :ruby) { |x| own[x] += 1 } }.to output(/kernels accumulate into plain Hashes/).to_stderr
    expect(own).to eq(1 => 2, 2 => 1)
  end

  it "says what it cannot do" do
    own = Class.new(Hash).new(0)
    single = Hash.new(0).tap { |hash| hash.define_singleton_method(:twice) { self } }
    counts = Hash.new(0)
    again = counts
    identity = {}.compare_by_identity
    random = Hash.new { |_, key| rand(key) }
    native = Hash.new(&{}.method(:dig))
    objects = Hash.new(Object.new)
    sets = { 1 => Set[] }
    refused = lambda do |pattern, &section|
      expect { section.call }.to raise_error(Ikra::CompileError, pattern)
    end
    refused.call(/own is a .* kernels accumulate into plain Hashes/) { [1].peach { |x| own[x] += 1 } }
    refused.call(/kernels accumulate into plain Hashes/) { [1].peach { |x| single[x] += 1 } }
    refused.call(/: identity is a Hash that compares keys by identity/) { [1].peach { |x| identity[x] = 1 } }
    refused.call(/random is a Hash that has a block for defaults/) { [1].peach { |x| random[x] += 1 } }
    refused.call(/native is a Hash that has a block for defaults/) { [1].peach { |x| native[x] += 1 } }
    refused.call(/has a value of Object/) { [1].peach { |x| objects[x] += 1 } }
    refused.call(/has a value of Set, and kernels append to Arrays/) { [1].peach { |x| sets[x] << 1 } }
    refused.call(/counts is accumulated in this block, and used in another way here/) { [1].peach { |x| counts[x] += counts.size } }
    refused.call(/counts is accumulated in this block, and used in another way here/) { [1].peach { |x| counts[x] += 1 if counts.key?(x) } }
    refused.call(/counts is accumulated in this block, and used in another way here/) { [1].peach { |x| counts[x] = counts[x + 1] + 1 } }
    refused.call(/counts is accumulated in two ways in this block/) { [1].peach { |x| (counts[x] += 1; counts[x] = 2) } }
    refused.call(/the value of the accumulation is used here/) { [1].pmap { |x| counts[x] += 1 } }
    refused.call(/again is also used in another way|shares what is changed/) { [1].peach { |x| (counts[x] += 1; again[x] += 1) } }
    refused.call(/counts is also used in another way in this section/) { [1].peach { |x| counts[x] += again.fetch(x, 1) } }
    expect([counts, objects, sets, own]).to all(satisfy { |hash| hash.values.flat_map(&:to_a).empty? })
  end

  # A block of random updates of two Hashes.
  def generated(random, key, value)
    updates = ["H[K] += V", "H[K] -= V", "H[K] = V if V < H[K]", "H[K] = V if H[K] < V", "H[K] = [H[K], V].min", "H[K] = [V, H[K]].max", "H[K] = V",
               "H[K] |= N", "H[K] &= N", "H[K] = (H[K] || 2) + (V)", "H[K] = H.fetch(K, 0.5) - (V)", "H[K] ||= 1; H[K] += V", "H[K] ||= n",
               "H[K] = V if H[K].nil? || V > H[K]", "H[K] = [H[K], V].compact.min", "H.store(K, V)", "L[K] << V", "(L[K] ||= []) << V"]
    kinds = updates.sample(2, random: random)
    body = %w[a b].zip(kinds).flat_map do |hash, update|
      Array.new(random.rand(1..2)) do
        text = update.gsub("H", hash).gsub("L", "#{hash}s").gsub("K", key).gsub("V", value).gsub("N", "n")
        case random.rand(4)
        when 0 then "(#{text}) if n % 3 != 1"
        when 1 then "(n & 3).times { |i| i == 1 ? next : nil; #{text} }"
        else text
        end
      end
    end
    "->((a, b, as, bs)) { ->(x) { n, f, s = x; #{body.shuffle(random: random).join("; ")} } }"
  end

  it "does what Ruby's loop does, for random blocks" do
    random = Random.new(RSpec.configuration.seed)
    keys = ["n % 5", "f", "s", "s[0]", "[n % 3, s[0]]", "n.even? ? :even : s", "n > 3 ? nil : n", "n % 2 == 0 ? f.to_i : f", "s.to_sym.to_s"]
    values = ["n", "f", "(n % 2 == 0 ? n : f)", "n - 7", "f * 0.5"]
    ENV.fetch("CASES", "25").to_i.times do
      text = generated(random, keys.sample(random: random), values.sample(random: random))
      list = Array.new(random.rand(1..40)) do
        word = Array.new(random.rand(1..2)) { %w[a b ä].sample(random: random) }.join
        [random.rand(0..9), random.rand(-8..8) * 0.25, word]
      end
      default = [0, 3, 2.5, -1].sample(random: random)
      kept = [{}, { 2 => 4, "a" => 1.5 }, { "b" => 7, nil => 2 }].sample(random: random)
      make = lambda do
        hashes = [Hash.new(default), Hash.new { |hash, key| hash[key] = 5 }].map { |hash| hash.update(kept) }
        hashes + [Hash.new { |hash, key| hash[key] = [] }, Hash.new { |hash, key| hash[key] = [9] }]
      end
      section = eval(text) # rubocop:disable Security/Eval
      begin
        compare(make, list, ticks: random.rand(1..3)) { |hashes| section.call(hashes) }
      rescue Ikra::CompileError => error
        expect(error.message).to match(/kernels do not know|two ways/), text
      rescue NoMethodError, TypeError => error
        expect { make.call.then { |hashes| list.each(&section.call(hashes)) } }.to raise_error(error.class), text
      end
    end
  end
end
