# frozen_string_literal: true

# So many objects that several threads trace, pack and write them.
module Many
  COUNT = 40_000

  class Town
    attr_accessor :ways, :size

    def initialize(size)
      @size = size
      @ways = []
    end
  end

  class Walker
    attr_accessor :town, :steps, :mood

    def initialize(town)
      @town = town
      @steps = 0
      @mood = 0.5
    end

    # Errors show the object, and it leads to all towns.
    def inspect = "#<Walker>"

    def walk
      @steps += @town.size
      @mood = @mood * 1.5 - @steps
      @town = @town.ways[@steps % @town.ways.size]
    end
  end

  # Its ivars are in another order, and the last one is not always set.
  class Runner < Walker
    attr_accessor :shoes

    def initialize(town, shoes)
      @mood = 1.0
      @shoes = shoes if shoes
      @steps = 1
      @town = town
    end

    def walk
      super
      @shoes = (@shoes || 0) + 1
    end
  end

  Pair = Struct.new(:left, :right)

  # Its ivars lead to objects of one class each, to Arrays of two kinds, to Strings, and twice to the same object.
  class Station
    attr_accessor :town, :spare, :trains, :delays, :name, :sign, :sum

    def initialize(index, towns, stations)
      @town = towns[index * 13 % towns.size]
      @spare = towns[index * 29 % towns.size]
      @trains = Array.new(index % 3) { |i| stations[(index * 7 + i) % [index, 1].max] || self }
      @delays = Array.new(index % 4) { |i| index * 0.25 - i }
      @name = "station #{index % 50}"
      @sign = (index % 5).zero? ? @name : "to #{index % 7}"
      @sum = 0.0
    end

    def inspect = "#<Station>"

    def add_up
      @sum = @town.size + 2.0 * @spare.size + @delays.sum(0.0) + @name.size + 3 * @sign.size + @trains.sum { |station| station.delays.size }
      @spare, @town = @town, @spare
    end
  end

  class << self
    def stations(count)
      towns = self.towns(count / 3)
      Array.new(count).tap { |stations| stations.each_index { |i| stations[i] = Station.new(i, towns, stations) } }
    end

    def towns(count)
      towns = Array.new(count) { |i| Town.new(i % 7 + 1) }
      towns.each_with_index { |town, i| town.ways.push(towns[(i * 31 + 1) % count], towns[i - 1], town) }
    end

    def walkers(count = COUNT, towns: self.towns(count / 4))
      Array.new(count) do |i|
        town = towns[i * 17 % towns.size]
        (i % 3).zero? ? Runner.new(town, i % 9 == 3 ? nil : i) : Walker.new(town)
      end
    end
  end
end

RSpec.describe "Many objects" do
  # The backend does not affect how objects are read and written.
  (Backends.present & %i[cpu cuda]).each do |backend|
    context "on #{backend}" do
      let(:backend) { backend }

      it "does with them what Ruby does" do
        expect do |run|
          walkers = Many.walkers.shuffle(random: Random.new(1))
          run.peach(walkers, 2) { |walker| walker.walk }
          run.pmap(walkers) { |walker| walker.town.size + walker.mood }
        end.to be_same_as_ruby
      end

      it "finds what several ivars lead to, of one kind and of different ones" do
        expect do |run|
          stations = Many.stations(Many::COUNT / 2)
          run.pmap(stations.shuffle(random: Random.new(2))) { |station| station.add_up; station.sum }
          run.pmap(stations) { |station| station.sum + station.town.size }
        end.to be_same_as_ruby
      end

      it "writes numbers back that only objects can hold" do
        expect do |run|
          pairs = Array.new(Many::COUNT) { |i| Many::Pair.new(i, i * 1e-100) }
          run.peach(pairs) do |pair|
            pair.left = pair.left % 5 == 4 ? 1 << 62 : -pair.left
            pair.right = pair.right * 1e-200
          end
          run.pmap(pairs) { |pair| pair.right * 1e250 }
          run.pmap(pairs) { |pair| pair.left + 1 }
        end.to be_same_as_ruby
      end

      it "joins lists of lists" do
        expect do |run|
          towns = Many.towns(Many::COUNT)
          lists = Array.new(2_000) { |i| i % 10 == 9 ? [] : towns[i * 7, 30] }
          run.pmap(lists) { |list| list.sum { |town| town.size } }
          long = towns.rotate(3)
          run.pmap([0, 5, 39_999]) { |i| long[i].size }
        end.to be_same_as_ruby
      end

      it "takes values of several kinds" do
        expect do |run|
          values = Array.new(Many::COUNT) { |i| [i, i * 0.5, nil, true, i.odd?, -(1 << 61) * (i % 3)][i % 6] }
          run.pmap(values) { |value| value.is_a?(Numeric) ? value * 2 : value }
          walkers = Many.walkers
          run.pmap(Array.new(Many::COUNT) { |i| i % 100 == 7 ? nil : walkers[i] }) { |walker| walker ? walker.steps : -1 }
        end.to be_same_as_ruby
      end

      it "takes one object twice" do
        expect do |run|
          walkers = Many.walkers
          walkers[30_000] = walkers[3]
          run.peach(walkers) { |walker| walker.walk }
          walkers[29_999] = walkers[1]
          run.pmap(walkers) { |walker| walker.steps }
        end.to be_same_as_ruby
      end

      it "takes elements that others refer to" do
        expect do |run|
          towns = Many.towns(Many::COUNT)
          run.peach(towns) { |town| town.size += 1 }
          run.pmap(towns) { |town| town.ways.sum { |way| way.size } }
        end.to be_same_as_ruby
      end

      it "changes none where one of them is frozen" do
          walkers = Many.walkers
          walkers[35_000].freeze
          expect { walkers.peach(backend: backend) { |walker| walker.walk } }.to raise_error(FrozenError)
          expect(walkers.map(&:steps).max).to eq(1)
      end

      it "changes none where one was frozen while kernels had them" do
        walkers = Many.walkers
        # Only objects can hold these values. The last walkers are to hold others.
        walkers.each_with_index { |walker, i| walker.mood = 1e300 if i < 10_000 || i > 39_000 }
        walkers.first(10_000).each { |walker| walker.mood = 1e-300 }
        before = walkers.map { |walker| [walker.town, walker.steps, walker.mood.object_id, walker.instance_variables] }
        freeze = Kernel.instance_method(:freeze)
        leave = lambda do
          Ikra.resident(walkers) do
            walkers.peach(backend:) { |walker| walker.walk } # rubocop:disable Style/SymbolProc
            freeze.bind_call(walkers[35_003])
          end
        end
        expect(&leave).to raise_error(FrozenError, /Many::Walker/)
        GC.start
        expect(walkers.map { |walker| [walker.town, walker.steps, walker.mood.object_id, walker.instance_variables] } == before).to be(true)
      end

      it "keeps new values alive" do
        # Each town is identified by its size, because only walkers and towns may refer to it.
        walked = lambda do |&walk|
          towns = Many.towns(10_000).each_with_index { |town, i| town.size = i }
          walkers = Many.walkers(towns: towns)
          4.times { GC.start }
          others = Many.towns(1_000).each_with_index { |town, i| town.size = 20_000 + i }
          random = Random.new(2)
          fresh = Array.new(100) { |i| Many::Town.new(10_000 + i).tap { |town| town.ways.push(*others.sample(3, random: random)) } }
          walkers.each_with_index { |walker, i| walker.town.ways[1] = fresh[i % 100] }
          towns = others = fresh = nil
          walk.call(walkers)
          walkers.each { |walker| walker.town.ways.clear if walker.town.size.even? }
          3.times { GC.start(full_mark: false) }
          GC.start
          walkers.map { |walker| [walker.town.size, walker.steps, walker.mood] }
        end
        wanted = walked.call { |walkers| 3.times { walkers.each(&:walk) } }
        expect(wanted.map { |size,| size / 10_000 }.uniq).to contain_exactly(0, 1, 2)
        expect(walked.call { |walkers| walkers.peach(3, backend: backend) { |walker| walker.walk } }.zip(wanted).find { |one, other| one != other }).to be_nil
      end

      it "runs over the list as it is when the section begins, whatever other threads do with it meanwhile" do
        busy = ->(x) { (0...3_000).reduce(0) { |sum, i| (sum + i * x) & 1023 } }
        changed = lambda do |change, &work|
          list = (1..20_000).to_a
          thread = Thread.new { 200.times { sleep(0.001) && change.call(list) } }
          work.call(list).tap { thread.kill.join }
        end
        [->(list) { list << 1 }, lambda(&:pop)].each do |change|
          expect(changed.call(change) { |list| list.pmap(backend: backend) { |x| busy.(x) } }).to all(be_an(Integer))
          expect(changed.call(change) { |list| list.pmap(backend: backend) { |x| busy.(x) > 1022 ? :high : 1.5 } }.uniq - [:high, 1.5]).to be_empty
          expect(changed.call(change) { |list| list.pmap!(backend: backend) { |x| busy.(x) - 2_000 }.first(19_000) }).to all(be < 0)
          expect(changed.call(change) { |list| list.plazy(backend: backend).map { |x| busy.(x) }.select { |x| x > 3 }.to_a }).to all(be > 3)
          count = last = 0
          changed.call(change) do |list|
            list.peach(backend: backend) do |x|
              count += 1
              last = busy.(x)
            end
          end
          expect(count).to be_within(300).of(20_000)
          expect(last).to be_an(Integer)
        end
      end
    end
  end

  # With fewer threads than number elements side by side, with as many, and with as many as enter new objects, on any
  # machine.
  [1, 4, 8].each do |threads|
    it "lead to the same with #{threads} thread#{"s" if threads > 1}, whatever their classes, and whether most are new or known" do
      output = run_ruby(<<~'RUBY', environment: { "IKRA_THREADS" => threads.to_s })
        class Leaf
          attr_accessor :weight, :near, :far, :list, :out

          def initialize(weight) = @weight = weight
          def step(add) = @out = @weight + add + (@near ? @near.weight * 2 : 1) + (@far ? @far.kind : 3) + @list.sum { |leaf| leaf ? leaf.weight : 5 }
          def kind = 0
        end
        class Twig < Leaf
          def kind = 1
        end
        class Twist < Leaf
          def kind = 2
          def step(add) = @out = @weight - add + @list.size
        end
        Pair = Struct.new(:leaf, :out) do
          def step(add) = self.out = leaf.weight + add
        end
        random = Random.new(11)
        [[Leaf], [Leaf, Twig], [Leaf, Twig, Twist]].product([true, false], [true, false]).each do |classes, close, ordered|
          leaves = Array.new(20_000) { classes.sample(random: random).new(random.rand(100)) }
          shared = Array.new(4) { leaves.sample(3, random: random) }
          leaves.each_with_index do |leaf, at|
            other = -> { close ? leaves[(at + random.rand(4)) % leaves.size] : leaves.sample(random: random) }
            leaf.near = random.rand(5).zero? ? nil : other.call
            leaf.far = random.rand(5).zero? ? nil : other.call
            leaf.list = random.rand(3).zero? ? shared.sample(random: random) : Array.new([0, 1, 2, 3, 3, 33, 70].sample(random: random)) { random.rand(6).zero? ? nil : other.call }
          end
          elements = ordered ? leaves : leaves.sample(18_000, random: random)
          elements = elements.map { |leaf| Pair.new(leaf, 0) } if classes.size == 2 && !ordered
          3.times do |add|
            expected = elements.each { |element| element.step(add) }.map(&:out)
            elements.each { |element| element.out = 0 }
            elements.peach(backend: :cpu) { |element| element.step(add) }
            puts "#{classes}, close: #{close}, ordered: #{ordered}, call #{add}" unless elements.map(&:out) == expected
            leaves.sample(random: random).near = leaves.sample(random: random)
          end
        end
        # more classes than short words tell apart
        many = Array.new(270) { Class.new(Leaf) }
        leaves = Array.new(20_000) { |at| many[at % 270].new(at % 50) }
        leaves.each_with_index { |leaf, at| leaf.list = [leaves[at - 1], leaves[at * 31 % 20_000]] }
        expected = leaves.map { |leaf| leaf.list.sum { |other| other.weight } + leaf.weight }
        puts "many" unless leaves.pmap(backend: :cpu) { |leaf| leaf.list.sum { |other| other.weight } + leaf.weight } == expected
        puts "done"
      RUBY
      expect(output).to eq("done\n")
    end
  end

  # Objects that lead to new ones. The first in order must have each of these, as with one thread.
  [1, 8].each do |threads|
    it "are found with #{threads} thread#{"s" if threads > 1}, whoever comes to them, and whatever lies between them" do
      output = run_ruby(<<~'RUBY', environment: { "IKRA_THREADS" => threads.to_s })
        class Leaf
          attr_accessor :weight

          def initialize(weight) = @weight = weight
          def add(more) = @weight += more
        end
        class Node
          attr_accessor :a, :b, :leaf, :name, :out

          def initialize(a, b = nil) = (@a, @b = a, b)
        end
        def same(what, given, expected)
          return if given == expected

          at = given.zip(expected).index { |one, other| one != other }
          puts "#{what}: #{given[at]} for #{expected[at]} at #{at}"
        end
        random = Random.new(5)
        size = 20_000

        # an Array that is in slots of two kinds, where neither owns it: what was compiled for two kinds does not fit
        kinds = lambda do |shared|
          nodes = Array.new(size) { |i| Node.new([i.to_f] * (1 + i % 3), [-i.to_f] * (1 + i * 7 % 5)) }
          nodes[5].a, nodes[5].b = nodes[6].a, nodes[6].b
          nodes[300].b, nodes[100].b = nodes[200].a, nodes[19_000].a if shared
          nodes
        end
        first_of_both = ->(nodes) { nodes.pmap(backend: :cpu) { |node| node.a[0] + node.b[0] } }
        [false, true].each do |shared|
          nodes = kinds.(shared)
          same("kinds", first_of_both.(nodes), nodes.map { |node| node.a[0] + node.b[0] })
        end

        # leaves that are written, each of its own node; and then one of two nodes
        nodes = Array.new(size) { |i| Node.new(i) }
        [false, true].each do |twice|
          nodes.each_with_index { |node, i| node.leaf = Leaf.new(i) }
          nodes[12_345].leaf = nodes[678].leaf if twice
          expected = nodes.map { |node| node.leaf.weight + 3 }
          expected[678] = expected[12_345] = 678 + 6 if twice
          profile = Ikra.profile { nodes.peach(backend: :cpu) { |node| node.leaf.add(3) } }
          puts "owned: what was compiled does not fit" unless profile.phases.fetch(:compile) > 0
          same("owned", nodes.map { |node| node.leaf.weight }, expected)
          same("owned, read", nodes.pmap(backend: :cpu) { |node| node.leaf.weight }, expected)
        end

        # leaves of many nodes, anywhere in the heap: together, and with much between them
        [0, 60, 300].each do |between|
          junk = []
          leaves = Array.new(3_000) do |i|
            junk << Array.new(between) { Object.new }
            Leaf.new(i)
          end
          nodes.each { |node| node.leaf = random.rand(9).zero? ? nil : leaves.sample(random: random) }
          # and among them what workers do not enter
          nodes.each_with_index { |node, i| node.name = i % 5_000 == 77 ? "odd" : nil }
          leaves[1_000].freeze
          2.times do
            expected = nodes.map { |node| (node.leaf ? node.leaf.weight : -1) + (node.name ? node.name.size : 0) }
            same("#{between} between", nodes.pmap(backend: :cpu) { |node| (node.leaf ? node.leaf.weight : -1) + (node.name ? node.name.size : 0) }, expected)
            nodes[random.rand(size)].leaf = Leaf.new(7)
          end
        end

        # more than are looked at together: objects, and elements of one Array
        many = Array.new(300_000) { |i| Node.new(i, [i, i + 1]) }
        same("many", many.pmap(backend: :cpu) { |node| node.a + node.b[1] }, many.map { |node| node.a + node.b[1] })
        lists = [Array.new(300_000) { |i| Leaf.new(i) }, [Leaf.new(3)]].map { |list| Node.new(list) }
        same("one long list", lists.pmap(backend: :cpu) { |node| node.a.sum { |leaf| leaf.weight } }, lists.map { |node| node.a.sum(&:weight) })
        puts "done"
      RUBY
      expect(output).to eq("done\n")
    end
  end
end
