# frozen_string_literal: true

require "json"
require "pathname"
require "timeout"
require "tmpdir"

module AtOnce
  class Body
    attr_accessor :a, :b, :link, :next

    def initialize(a, b)
      @a = a
      @b = b
    end
  end

  # Sections over lists of bodies. Each is given the lists, a list's number and a number, and what calls the methods.
  SECTIONS = [
    ->(run, world, at, k) { run.each(world.lists[at]) { |o| o.a += k } },
    ->(run, world, at, k) { run.each(world.lists[at]) { |o| o.b = (o.a * 2) + k } },
    ->(run, world, at, k) { run.each(world.lists[at]) { |o| o.a = o.next.b + k } },
    ->(run, world, at, _) { run.each(world.lists[at]) { |o| o.link = o.next } },
    ->(run, world, at, k) { run.each(world.lists[at]) { |o| o.link.b -= k if o.link.equal?(o) } },
    ->(run, world, at, k) { run.map(world.lists[at]) { |o| (o.link.a * k) + o.b } },
    ->(run, world, at, k) { run.sum(world.lists[at]) { |o| o.a + k } },
    ->(run, world, at, k) { run.select(world.lists[at]) { |o| (o.b + k).even? } },
    ->(run, world, at, k) { run.sort_by(world.lists[at]) { |o| [o.a % 7, k] } },
    ->(run, world, at, k) { run.group_by(world.lists[at]) { |o| (o.a + k) % 3 } },
    ->(run, world, at, k) { run.each(world.lists[at]) { |o| o.a += 12 / (o.b - k) } },
    ->(run, world, at, k) { (cells = world.cells) && run.each(0...cells.size) { |i| cells[i] += k + at } },
    ->(run, world, at, _) { (cells = world.cells) && run.map(world.lists[at]) { |o| cells[o.a % 5] } },
    ->(run, world, _, k) { run.map(world.cells) { |x| x * k } },
    ->(run, world, at, k) { run.find(world.lists[at]) { |o| o.a > k } },
    ->(run, world, at, k) { run.select(world.lists[at]) { |o| (o.b += k).even? } },
    ->(run, world, at, k) { run.sum(world.lists[at]) { |o| o.a -= k } },
    ->(run, world, at, k) { (cells = world.cells) && run.each(world.lists[at]) { |o| cells[o.b % 5] = k } }
  ].freeze
  # One that always raises, for the last element that it reaches.
  RAISES = ->(run, world, at, k) { (last = world.lists[at].last) && run.each(world.lists[at]) { |o| o.equal?(last) ? o.a = k / (o.b - o.b) : o.b = k } }

  # Lists that share some of their bodies.
  World = Struct.new(:bodies, :lists, :cells) do
    def self.of(random)
      bodies = Array.new(12) { |i| Body.new(i, random.rand(6)) }
      bodies.each { |body| body.link = body.next = bodies[random.rand(12)] }
      new(bodies, Array.new(4) { |i| bodies[i * 3, 3] } + [bodies.values_at(1, 4, 7)], [1, 2, 3, 4, 5])
    end

    # What is to be compared: bodies as their numbers.
    def shown(value)
      case value
      when Body then bodies.index { |body| body.equal?(value) }
      when Array then value.map { |one| shown(one) }
      when Hash then value.to_h { |key, one| [shown(key), shown(one)] }
      else value
      end
    end

    def state = [bodies.map { |body| [body.a, body.b, shown(body.link)] }, cells.dup]

    def back_to((of_bodies, of_cells))
      of_bodies.each_with_index do |(a, b, link), at|
        bodies[at].a = a
        bodies[at].b = b
        bodies[at].link = bodies[link]
      end
      cells.replace(of_cells)
    end
  end

  module Own
    module_function

    def each(list, &block) = list.each(&block)
    def map(list, &block) = list.map(&block)
    def sum(list, &block) = list.sum(&block)
    def select(list, &block) = list.select(&block)
    def sort_by(list, &block) = list.each_with_index.sort_by { |one, at| [block.call(one), at] }.map(&:first)
    def group_by(list, &block) = list.group_by(&block)
    def find(list, &block) = list.find(&block)
  end

  module Parallel
    module_function

    def each(list, &block) = list.peach(&block)
    def map(list, &block) = list.pmap(&block)
    def sum(list, &block) = list.psum(&block)
    def select(list, &block) = list.pselect(&block)
    def sort_by(list, &block) = list.psort_by(&block)
    def group_by(list, &block) = list.pgroup_by(&block)
    def find(list, &block) = list.pfind(&block)
  end

  # The results of the sections up to the first that raises, its error, and the world afterwards. A section that raises
  # changes nothing.
  def self.one_by_one(world, group)
    results = []
    error = nil
    group.each do |section, at, k|
      before = world.state
      results << world.shown(section.call(Own, world, at, k))
    rescue ZeroDivisionError => raised
      world.back_to(before)
      error = raised.class
      break
    end
    [error ? nil : results, error, world.state]
  end

  def self.at_once(world, group, policy, asked, stays)
    error = nil
    run = lambda do
      Ikra.concurrently(policy: policy) do
        group.each_with_index.map do |(section, at, k), number|
          made = section.call(Parallel, world, at, k)
          asked.include?(number) ? made.value : made
        end
      end
    end
    results = begin
      stays ? Ikra.resident(&run) : run.call
    rescue ZeroDivisionError => raised
      error = raised.class
      nil
    end
    [results && world.shown(results), error, world.state]
  end

  # A tenth of all sections raise.
  def self.group(random, sections)
    Array.new(random.rand(2..20)) do
      [random.rand(10).zero? ? RAISES : sections.sample(random: random), random.rand(5), random.rand(-4..9)]
    end
  end
end

RSpec.describe "Ikra.concurrently" do
  bodies = -> { Array.new(5) { |i| AtOnce::Body.new(i, 1) } }

  # In a scope sections repeat, because columns stay from one call to the next.
  def compare(random, policy)
    seed = random.rand(1 << 30)
    stays = random.rand(3).zero?
    group = AtOnce.group(random, stays ? AtOnce::SECTIONS.sample(3, random: random) : AtOnce::SECTIONS)
    asked = random.rand(3).zero? ? [random.rand(group.size)] : []
    expected = AtOnce.one_by_one(AtOnce::World.of(Random.new(seed)), group)
    found = AtOnce.at_once(AtOnce::World.of(Random.new(seed)), group, policy, asked, stays)
    expect(found).to eq(expected), "seed #{seed}, group #{group.map { |section, *rest| [section.source_location.last, *rest] }}, asked #{asked}, stays #{stays}:\n#{expected}\n#{found}"
  end

  on_every_backend do
    it "gives what sequential Ruby gives, whatever sections share" do
      random = Random.new(RSpec.configuration.seed)
      300.times { compare(random, %i[auto paper plain serial].sample(random: random)) }
    end

    it "gives what sequential Ruby gives, 2000 times", :exhaustive do
      random = Random.new(RSpec.configuration.seed)
      2000.times { compare(random, %i[auto paper plain serial].sample(random: random)) }
    end

    it "gives planned kernels of many elements the same bits" do
      lists = Array.new(6) { |at| Array.new(600 + at) { |i| (i * 0.37) - at } }
      crowd = Array.new(700) { |i| AtOnce::Body.new(i, i % 7) }
      work = lambda do |map, each|
        moved = crowd.map(&:dup)
        found = lists.map { |list| map.call(list) { |x| (x * x) + (0.1 * x) } }
        each.call(moved) { |o| o.a += o.b * 3 }
        [found, map.call(moved) { |o| o.a % 11 }, moved.map { |o| [o.a, o.b] }]
      end
      expected = work.call(->(list, &block) { list.map(&block) }, ->(list, &block) { list.each(&block) })
      found = nil
      2.times do
        found = Ikra.concurrently(policy: :paper) { work.call(->(list, &block) { list.pmap(&block) }, ->(list, &block) { list.peach(&block).value }) }
      end
      expect(found).to eq expected
    end

    it "plans a thousand sections" do
      found = Ikra.concurrently(policy: :paper) { Array.new(1000) { |i| [i, i + 1].pmap { |x| x * 3 } } }
      expect(found).to eq(Array.new(1000) { |i| [i * 3, (i * 3) + 3] })
    end

    it "lets planned sections begin where one is asked for, cancelled or waited for" do
      list = [1, 2, 3]
      work = lambda do
        first, second, third = Array.new(3) { |k| list.pmap { |x| x + k } }
        expect(second.cancel).to be true
        expect(third.wait).to be third
        expect(first.value).to eq list
        expect { second.value }.to raise_error(Ikra::Cancelled)
        late = list.pmap { |x| x * 2 }
        Thread.pass until late.done?
        expect(late.value).to eq [2, 4, 6]
        list.pmap { |x| 1 / (x - 2) }
      end
      expect { Ikra.concurrently(policy: :paper, &work) }.to raise_error(ZeroDivisionError, "divided by 0")
    end

    it "gives the block's value with the values of sections, within Arrays and Hashes" do
      list = [3, 1, 2]
      value = Ikra.concurrently do
        doubled = list.pmap { |x| x * 2 }
        { doubled: doubled, list: [list.psum { |x| x }, [list.psort_by { |x| -x }], 5], none: nil }
      end
      expect(value).to eq(doubled: [6, 2, 4], list: [6, [[3, 2, 1]], 5], none: nil)
    end

    it "writes nothing of a section that raises, and of those after it" do
      first, second, third = Array.new(3) { bodies.call }
      second[2].b = 0
      expect do
        Ikra.concurrently do
          first.peach { |o| o.a += 1 }
          second.peach { |o| o.a = 10 / o.b }
          third.peach { |o| o.a += 1 }
        end
      end.to raise_error(ZeroDivisionError)
      expect([first, second, third].map { |list| list.map(&:a) }).to eq [[1, 2, 3, 4, 5], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    end
  end

  it "takes a section's value for a captured variable, and for an argument" do
    found = Ikra.concurrently do
      doubled = [1, 2, 3].pmap { |x| x * 2 }
      [[0, 1].pmap { |i| doubled[i] }, doubled.pmap { |x| x + 1 }, [5, 6, 7].pcombine(doubled.value) { |x, y| x + y }]
    end
    expect(found).to eq [[2, 4], [3, 5, 7], [7, 10, 13]]
  end

  it "gives what has no sections as it is" do
    hash = { one: [1], list: bodies.call, itself: nil }.freeze
    ring = [1, hash]
    ring << ring
    own = Class.new(Array).new([1])
    found = Ikra.concurrently { [hash, ring, own, [1].pmap { |x| x }] }
    expect(found[0]).to be hash
    expect(found[1]).to be ring
    expect(found[2]).to be own
    expect(found[3]).to eq [1]
    frozen = [[1].pmap { |x| x }].freeze
    expect(Ikra.concurrently { [[[2].pmap { |x| x }].freeze, { a: [3].pmap { |x| x } }.freeze] }).to eq [[[2]], { a: [3] }]
    expect(Ikra.concurrently { frozen }).to be frozen
  end

  it "completes what was called before the block raises, breaks or throws" do
    list = bodies.call
    expect { Ikra.concurrently { list.peach { |o| o.a += 1 } && raise("own") } }.to raise_error(RuntimeError, "own")
    [1].each { Ikra.concurrently { list.peach { |o| o.a += 1 } && break } }
    expect(catch(:out) { Ikra.concurrently { list.peach { |o| o.a += 1 } && throw(:out, 5) } }).to eq 5
    expect(list.map(&:a)).to eq [3, 4, 5, 6, 7]
  end

  it "is over where a section raises after a break" do
    list = bodies.call
    expect { [1].each { Ikra.concurrently { list.peach { |o| o.a = 1 / (o.b - 1) } && break } } }.to raise_error(ZeroDivisionError)
    expect { Ikra.concurrently { list.peach { |o| o.a = 1 / (o.b - 1) } && raise("own") } }.to raise_error(ZeroDivisionError)
    expect([list.pmap(&:a), [2].pall?(Integer)]).to eq [[0, 1, 2, 3, 4], true]
  end

  it "gives sections of an inner one to the outer one" do
    list = bodies.call
    found = Ikra.concurrently do
      inner = Ikra.concurrently { [list.pmap(&:a)] }
      expect(inner).to match [be_a(Ikra::Section)]
      list.peach { |o| o.a = 0 }
      inner
    end
    expect(found).to eq [[0, 1, 2, 3, 4]]
    expect(list.map(&:a)).to eq [0] * 5
  end

  it "adds to captured variables in the order of the sections" do
    total = 1
    Ikra.concurrently do
      [1, 2].peach { |x| total += x }
      expect(total).to eq 1
      [3].peach { |x| total += x }
    end
    expect(total).to eq 7
    expect(Ikra.concurrently { [[1].peach { |x| total += x }, [1].pmap { |x| total + x }] }).to eq [[1], [9]]
  end

  it "counts in captured Hashes in the order of the sections" do
    counts = Hash.new(0)
    same = counts
    found = Ikra.concurrently do
      %w[a b].peach { |word| counts[word] += 1 }
      %w[b c].peach { |word| same[word] += 1 }
      counts.pmap { |word, count| word * count }
    end
    expect(counts.to_a).to eq [["a", 1], ["b", 2], ["c", 1]]
    expect(found).to eq %w[a bb c]
  end

  it "runs 200 sections" do
    list = bodies.call
    sums = Ikra.concurrently { Array.new(100) { [list.peach { |o| o.a += 1 }, list.psum(&:a)] } }
    expect(sums.map(&:last)).to eq(Array.new(100) { |i| 10 + (5 * (i + 1)) })
  end

  it "changes nothing that has not ended where it is interrupted" do
    lists = Array.new(3) { bodies.call }
    caller = Thread.current
    expect do
      Ikra.concurrently do
        lists[0].peach { |o| o.a += 1 }
        Thread.new { [sleep(0.1), caller.raise(Interrupt)] }
        lists[1].peach(1 << 30, backend: :cpu) { |o| o.a ^= 1 }
        lists[2].peach { |o| o.a += 1 }
        sleep
      end
    end.to raise_error(Interrupt)
    expect(lists.map { |list| list.map(&:a) }).to eq [[0, 1, 2, 3, 4]] * 3
    expect(Ikra.concurrently { lists[0].pmap(&:a) }).to eq [0, 1, 2, 3, 4]
  end

  it "gives chains and Enumerators at once" do
    pairs = { 1 => 2 }
    found = Ikra.concurrently { [pairs.plazy.map(&:sum).to_a, [5].plazy.to_a, pairs.pmap.to_a, pairs.async.pmap(&:sum), [1].pmap.with_index(1) { |x, i| x + i }] }
    expect(found).to eq [[3], [5], [[1, 2]], [3], [2]]
  end

  it "refuses what it cannot do" do
    expect { Ikra.concurrently }.to raise_error(ArgumentError, /needs a block/)
    expect { Ikra.concurrently(policy: :fast) { 1 } }.to raise_error(ArgumentError, /policy: :fast is none of :auto, :paper, :plain, :serial/)
    expect { Ikra.concurrently { [1].pmap { |x| x.nothing_like_this } } }.to raise_error(NoMethodError)
    expect { Ikra.concurrently { [1].pmap { |x| eval(x.to_s) } } }.to raise_error(Ikra::CompileError)
  end

  it "runs blocks that need plain Ruby in their place" do
    list = bodies.call
    found = nil
    work = lambda do
      found = Ikra.concurrently do
        list.peach { |o| o.a += 1 }
        [list.pmap(unsupported: :ruby) { |o| eval("o.a", binding) }, list.pmin_by { |o| -o.a }, [2, 1].psort]
      end
    end
    expect(&work).to output(/plain Ruby/).to_stderr
    expect(found).to eq [[1, 2, 3, 4, 5], list[4], [1, 2]]
  end
end

RSpec.describe "Ikra.concurrently(check: :races)" do
  let(:list) { Array.new(5) { |i| AtOnce::Body.new(i, 1) } }

  def self.finds(what, pattern, &block)
    [false, true].each { |watched| finds_one(what, pattern, watched, block) }
  end

  # +watched+: its class is one of objects that Ikra.resident has watched before.
  def self.finds_one(what, pattern, watched, block)
    it "finds #{what}#{" of a class that was in a scope" if watched}" do
      Ikra.resident { [AtOnce::Body.new(1, 1)].peach { |o| o.a += 1 } } if watched
      cells = [1, 2, 3]
      work = lambda do
        Ikra.concurrently(check: :races) do
          list.peach { |o| o.a += 1 }
          (0...3).peach { |i| cells[i] += 1 }
          instance_exec(cells, &block)
        end
      end
      expect(&work).to raise_error(Ikra::RaceError, pattern)
      # Both were called before.
      expect([list.map(&:a), cells]).to eq [[1, 2, 3, 4, 5], [2, 3, 4]]
    end
  end

  line = __LINE__
  finds("a reader", /concurrently_spec.rb:#{line + 1}: a meets @a of an AtOnce::Body, which peach at .*concurrently_spec.rb:\d+ writes later/) { list[2].a }
  finds("a writer", /: a= meets @a of an AtOnce::Body/) { list[2].a = 7 }
  finds("a method that looks at the ivar", /: to_s meets @a of/) do
    AtOnce::Body.class_eval { def to_s = "body #{@a}" }
    list[1].to_s
  ensure
    AtOnce::Body.remove_method(:to_s)
  end
  finds("a method for any ivar", /: instance_variable_get meets @a of/) { list[1].instance_variable_get(:@a) }
  finds("an Array", /: \[\] meets what is in an Array, which peach at/) { |cells| cells[0] }

  it "finds what is in a Struct" do
    pairs = [Struct.new(:one).new(1)]
    expect { Ikra.concurrently(check: :races) { pairs.peach { |pair| pair.one += 1 }; pairs[0][:one] } }.to raise_error(Ikra::RaceError, /: \[\] meets one of a/)
    attribute = -> { Ikra.concurrently(check: :races) { pairs.peach { |pair| pair.one += 1 }; pairs[0].one } }
    RUBY_VERSION < "3.3" ? attribute.call : expect(&attribute).to(raise_error(Ikra::RaceError))
    expect(pairs[0].one).to eq 3
  end

  it "finds nothing where Ruby looks at other objects and ivars, or asks for the value before" do
    found = Ikra.concurrently(check: :races) do
      section = list.peach { |o| o.a += 1 }
      seen = [list.map(&:b), list[0].next, list.size]
      section.value
      [seen, list.map(&:a), list.psum(&:a)]
    end
    expect(found).to eq [[[1] * 5, nil, 5], [1, 2, 3, 4, 5], 15]
    expect { Ikra.concurrently(check: :none) { 1 } }.to raise_error(ArgumentError, "check: :none is not :races")
  end
end

RSpec.describe "Ikra.concurrently(trace:)" do
  let(:list) { Array.new(5) { |i| AtOnce::Body.new(i, 1) } }

  # The events of each kind, of the sections that the block calls.
  def events(&block)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "lanes.json")
      Ikra.concurrently(trace: path, &block)
      JSON.parse(File.read(path)).fetch("traceEvents").group_by { |event| event["ph"] }
    end
  end

  it "writes when sections ran, and what they waited for" do
    cells = [1, 2, 3]
    total = 0
    found = events do
      list.peach { |o| o.a += 1 }
      list.psum(&:a)
      (0...3).peach { |i| cells[i] += 1 }
      cells.pmap { |x| x }
      [1].peach { |x| total += x }
      [1].pmap { |x| x + total }
    end
    calls = found["X"].select { |event| event["tid"] == 0 }
    expect(calls.map { |event| event["name"] }).to eq ["0: peach", "1: psum", "2: peach", "3: pmap", "4: peach", "5: pmap"]
    expect(calls.map { |event| event["args"]["after"] }).to eq [
      [], [{ "section" => 0, "reason" => "@a of AtOnce::Body" }],
      [], [{ "section" => 2, "reason" => "an Array" }],
      [], [{ "section" => 4, "reason" => "the variable total" }]
    ]
    expect(calls.map { |event| event["args"]["outcome"] }.uniq).to eq ["done"]
    expect(calls[0]["args"]["place"]).to match(/concurrently_spec.rb:\d+$/)
    expect(found["X"].select { |event| event["tid"] == 1 }.size).to eq 6
    expect(found["X"].map { |event| event["dur"] }).to all be >= 0
    expect(found["s"].map { |event| event["name"] }).to eq ["@a of AtOnce::Body", "an Array", "the variable total"]
    expect(found["f"].size).to eq 3
  end

  it "shows kernels that ran at once in rows of their own" do
    lists = Array.new(3) { list.dup }
    found = events { lists.each { |one| one.map(&:dup).peach(20_000, backend: :cpu) { |o| o.a = (o.a * 5) & 1023 } } }
    kernels = found["X"].select { |event| event["tid"] > 1 }
    expect(kernels.size).to eq 3
    alike = kernels.group_by { |event| event["tid"] }.values
    alike.each { |row| row.each_cons(2) { |one, next_one| expect(one["ts"] + one["dur"]).to be <= next_one["ts"] + 0.2 } }
  end

  it "writes what there is where a section raises" do
    found = nil
    Dir.mktmpdir do |folder|
      path = Pathname.new(folder).join("lanes.json")
      expect { Ikra.concurrently(trace: path) { [list.peach { |o| o.a / 0 }, list.pmap(&:b)] } }.to raise_error(ZeroDivisionError)
      found = JSON.parse(path.read).fetch("traceEvents")
    end
    expect(found.filter_map { |event| event.dig("args", "outcome") }.uniq).to eq %w[ZeroDivisionError unfinished]
  end
end

RSpec.describe "Plans of Ikra.concurrently" do
  let(:list) { Array.new(5) { |i| AtOnce::Body.new(i, 1) } }

  it "begin a later batch although an earlier one does not end" do
    many = Array.new(40) { |k| [k, k + 1] }
    Ikra.concurrently(policy: :paper) do
      endless = list.peach(1 << 30, backend: :cpu) { |o| o.a ^= 1 }
      # It takes all warps of the device that plans are made for.
      whole = (0...300_000).pmap(backend: :cpu) { |i| i * 2 }
      sections = many.map { |pair| pair.pmap(backend: :cpu) { |x| x + 1 } }
      expect(sections.last.wait).to be sections.last
      expect(whole.wait).to be whole
      expect(endless.wait(0)).to be_nil
      endless.cancel
      expect(whole.value[-1]).to eq 599_998
      expect(sections.map(&:value)).to eq(many.map { |pair| pair.map { |x| x + 1 } })
    end
    expect(list.map(&:a)).to eq [0, 1, 2, 3, 4]
  end

  it "run short kernels on the caller's thread where lanes gain nothing" do
    place = nil
    work = lambda do
      block = -> { [[1, 2].pmap(backend: :cpu) { |x| x + 1 }, [3].pmap(backend: :cpu) { |x| x * 2 }] }
      place = block.source_location
      Ikra.concurrently(&block)
    end
    expect(Array.new(20) { work.call }.uniq).to eq [[[2, 3], [6]]]
    learned = Ikra.send(:const_get, :Sections)
    expect(learned.instance_variable_get(:@unprofitable)).to include(place => be_between(0, 16))
    expect(Ikra.__pays([[1e-3, 1e-5]] * 16)).to be true
    expect(Ikra.__pays([[1e-3, 1e-3]] * 16)).to be false
  end
end

RSpec.describe "Ikra.explain of Ikra.concurrently" do
  let(:list) { Array.new(5) { |i| AtOnce::Body.new(i, 1) } }

  it "shows which section waits for which, and why" do
    cells = [1, 2, 3]
    total = 0
    explanation = Ikra.explain do
      Ikra.concurrently do
        list.peach { |o| o.a += 1 }
        list.peach { |o| o.b += 1 }
        list.pselect { |o| o.a > o.b }
        (0...3).peach { |i| cells[i] += 1 }
        doubled = cells.pmap { |x| x * 2 }
        [1].peach { |x| total += x }
        [1].pmap { |x| x + total + doubled[0] }
        list.map(&:dup).peach { |o| o.a += 1 }
      end
      Ikra.concurrently { [1].pmap { |x| x } }
    end
    first, second = explanation.groups
    expect(first.calls.map(&:operation)).to eq %i[peach peach pselect peach pmap peach pmap peach]
    expect(first.calls.map(&:after)).to eq [{}, {}, { 0 => "@a of AtOnce::Body", 1 => "@b of AtOnce::Body" }, {}, { 3 => "an Array" }, {}, { 5 => "the variable total" }, {}]
    expect(first.calls.map(&:number)).to eq [*0..7]
    expect(first.calls.map(&:path).uniq).to eq [__FILE__]
    expect(first.calls.map(&:line)).to eq first.calls.map(&:line).sort
    expect(second.to_s).to match(/\A1 section of Ikra.concurrently\n  0: pmap at .*concurrently_spec.rb:\d+, waits for none\z/)
    expect(explanation.to_s).to include "8 sections of Ikra.concurrently", "  2: pselect at #{__FILE__}:#{first.calls[2].line}, after 0 (@a of AtOnce::Body), 1 (@b of AtOnce::Body)\n"
    expect([list.map(&:a), list.map(&:b), cells, total]).to eq [[1, 2, 3, 4, 5], [2] * 5, [2, 3, 4], 1]
  end

  it "shows launch sizes, batches and times under policy: :paper" do
    work = -> { Ikra.concurrently(policy: :paper) { [list.map(&:dup).peach { |o| o.a += 1 }, [1, 2].pmap { |x| x + 1 }, [[1, 2].psum { |x| x }]] } }
    2.times { work.call }
    explanation = Ikra.explain { work.call }
    calls = explanation.groups.first.calls
    expect(calls.map { |call| call.size&.to_a }).to eq [[0, 1, 1, 1], [0, 1, 1, 1], nil]
    expect(calls.map(&:measured)).to all(be_between(0, 1))
    expect(calls.map(&:predicted)).to all(be_nil.or(be_between(0, 1)))
    expect(explanation.to_s).to match(/0: peach at .*, waits for none; batch 0, 1 block of 1 warp on each multiprocessor; took [\d.]+ ms, expected [\w. ]+\n/)
    again = Ikra.explain do
      Ikra.concurrently(policy: :paper) do
        list.peach { |o| o.a += 1 }
        list.pmap(&:a)
        40.times { |k| [k].pmap { |x| x } }
      end
    end
    sizes = again.groups.first.calls.map(&:size)
    expect(sizes.map(&:batch)).to eq [0, *[1] * 41]
    expect(sizes.last.to_s).to eq "batch 1, 1 block of 1 warp on each pair of multiprocessors"
    expect(Ikra::Explanation::Size.new(3, nil, nil, 1).to_s).to eq "batch 3, alone"
  end

  it "has the same calculation of what fits as the device, for all sizes of blocks", if: Backends.present.include?(:cuda) do
    watches = []
    allow(Ikra).to receive(:__groups).and_wrap_original { |groups, together| groups.call(together).tap { watches.concat(together.flatten(1).map(&:last)) } }
    floats = Array.new(4000) { |i| i * 0.5 }
    words = %w[a bc def] * 50
    Ikra.explain do
      Ikra.concurrently do
        list.map(&:dup).peach(3) { |o| o.a += o.b }
        floats.pmap(backend: :cuda) { |x| Math.sin(x) * Math.exp(-x) + x**0.3 }
        floats.pmap(backend: :cuda) { |x| floats.sum { |y| (x - y).abs } }
        floats.psum(backend: :cuda) { |x| x * x }
        words.pmap(backend: :cuda) { |word| word * 2 }
      end
    end
    fit = watches.flat_map { |watch| watch.wanted.occupancy }
    expect(fit.size).to be > 1000
    expect(fit.select { |_, calculated, device| calculated != device }).to eq []
  end

  it "shows none where there are none" do
    expect(Ikra.explain { [1].pmap { |x| x } }.groups).to eq []
    expect(Ikra.explain { Ikra.concurrently { 5 } }.to_s).to eq "no operation of Ikra's ran"
  end
end

RSpec.describe Ikra::Section do
  let(:list) { Array.new(5) { |i| AtOnce::Body.new(i, 1) } }

  it "writes where its value is asked for" do
    section = list.async.peach(3) { |o| o.a += 1 }
    expect(section.wait).to be section
    expect(section).to be_done
    expect(list.map(&:a)).to eq [0, 1, 2, 3, 4]
    expect(section.value).to be list
    expect(list.map(&:a)).to eq [3, 4, 5, 6, 7]
    expect(section.error).to be_nil
  end

  it "writes before a section of the Fiber that reads it" do
    section = list.async.peach { |o| o.a += 1 }
    expect(list.pmap(&:a)).to eq [1, 2, 3, 4, 5]
    expect(section.inspect).to eq "#<Ikra::Section peach ended>"
    other = list.async.peach { |o| o.b += 1 }
    expect(list.async.psum(&:a).value).to eq 15
    expect(list.map(&:b)).to eq([2] * 5).or eq([1] * 5)
    expect(other.value.map(&:b)).to eq [2] * 5
  end

  it "is cancelled before it has written anything" do
    section = list.async.peach { |o| o.a += 1 }
    later = section.then { |done| done.size }
    expect(section.cancel).to be true
    expect(section.cancel).to be false
    expect { section.value }.to raise_error(Ikra::Cancelled, "peach was cancelled")
    expect { later.value }.to raise_error(Ikra::Cancelled)
    expect(list.map(&:a)).to eq [0, 1, 2, 3, 4]
    endless = list.async.peach(1 << 30, backend: :cpu) { |o| o.a ^= 1 }
    expect(endless.wait(0.05)).to be_nil
    expect(endless).not_to be_done
    endless.cancel
    expect(list.pmap(&:a)).to eq [0, 1, 2, 3, 4]
  end

  it "is followed by a block with its value" do
    total = list.async.peach { |o| o.a += 1 }.then { |same| same.async.psum(&:a) }
    later = list.async.peach { |o| o.a = 0 }
    expect(total.value).to eq 15
    expect(later.value.sum(&:a)).to eq 0
    expect { total.then }.to raise_error(ArgumentError, "no block")
  end

  it "raises what the section raises, each time" do
    section = list.async.pmap { |o| o.a / 0 }
    2.times { expect { section.value }.to raise_error(ZeroDivisionError) }
    expect(section.error).to be_a ZeroDivisionError
    expect([1].async.pmap { |x| x }.value).to eq [1]
  end

  it "gives what it raises once everything is computed, also before its value is asked for" do
    section = list.async.pmap { |o| o.a / 0 }.wait
    expect(section.error).to be_a ZeroDivisionError
    expect { section.value }.to raise_error(ZeroDivisionError)
    section = list.async.peach { |o| o.a += 1 }.wait
    expect(section.error).to be_nil
    expect(list.map(&:a)).to eq [1, 2, 3, 4, 5]
    endless = list.async.peach(1 << 30, backend: :cpu) { |o| o.a ^= 1 }
    expect(endless.error).to be_nil
    endless.cancel
    expect(endless.error).to be_a Ikra::Cancelled
  end

  it "gives its value in another thread" do
    section = list.async.peach { |o| o.a += 1 }
    expect(Thread.new { section.value.map(&:a) }.value).to eq [1, 2, 3, 4, 5]
    expect([1, 2].async.pmap { |x| x }.value).to eq [1, 2]
  end

  it "waits neither for itself nor for a later one" do
    first = [1].async.pmap { |x| x }
    own = first.then { own.value }
    expect { own.value }.to raise_error(ThreadError, /waits for itself/)
    before = [1].async.pmap { |x| x }
    later = nil
    waits = before.then { later.value }
    later = waits.then { 1 }
    expect { waits.value }.to raise_error(ThreadError, /one that is called after it|waits for itself/)
  end

  it "takes its inputs at its call" do
    section = list.async.peach { |o| o.a += 1 }
    last = list.pop
    last.freeze if (frozen = [true, false].sample)
    list.clear
    GC.start
    frozen ? expect { section.value }.to(raise_error(FrozenError)) : section.value
    expect(last.a).to eq(frozen ? 4 : 5)
  end

  it "keeps an exception of any class, and the sections before it" do
    stub_const("Own", Class.new(Exception)) # rubocop:disable Lint/InheritException
    others = [AtOnce::Body.new(1, 1)]
    before = others.async.peach { |o| o.a += 1 }
    section = list.async.peach { |o| o.a > 2 ? raise(Own, "own") : o.a += 1 }
    2.times { expect { section.value }.to raise_error(Own, "own") }
    expect(before.value[0].a).to eq 2
    expect(list.pmap(&:a)).to eq [0, 1, 2, 3, 4]
  end

  it "ends where Timeout ends the wait for it" do
    endless = list.async.peach(1 << 30, backend: :cpu) { |o| o.a ^= 1 }
    expect { Timeout.timeout(0.05) { endless.value } }.to raise_error(Timeout::Error)
    expect { endless.value }.to raise_error(Ikra::Cancelled)
    expect(list.pmap(&:a)).to eq [0, 1, 2, 3, 4]
  end

  it "has a value in a child of fork where it was computed before" do
    done = list.async.peach { |o| o.a += 1 }.wait
    endless = [AtOnce::Body.new(1, 1)].async.peach(1 << 30, backend: :cpu) { |o| o.a ^= 1 }
    reading, writing = IO.pipe
    child = fork do
      found = [done, endless].map do |section|
        section.value.map(&:a)
      rescue StandardError => error
        error.message
      end
      writing.write(Marshal.dump(found))
    ensure
      exit!(0)
    end
    writing.close
    found = Marshal.load(reading.read)
    Process.wait(child)
    endless.cancel
    expect(found).to match [[1, 2, 3, 4, 5], /under way when the process forked/]
    expect(done.value.map(&:a)).to eq [1, 2, 3, 4, 5]
  end

  it "may be forgotten, and its thread may have ended" do
    sections = Array.new(20) do
      Thread.new { Array.new(2) { list.dup.async.peach(100_000, backend: :cpu) { |o| o.a ^= 1 } } }.value.last
    end
    GC.start
    kept = Thread.new { list.async.peach { |o| o.a += 1 } }.value
    sections.clear
    GC.start
    expect(kept.value.map(&:a)).to eq [1, 2, 3, 4, 5]
  end

  it "leaves no threads" do
    before = Thread.list.size
    20.times { list.async.peach { |o| o.a += 1 }.value }
    Ikra.concurrently { Array.new(20) { list.peach { |o| o.a += 1 } } }
    sleep 0.01 until Thread.list.size <= before
    expect(list[0].a).to eq 40
  end
end
