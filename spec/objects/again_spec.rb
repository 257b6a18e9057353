# frozen_string_literal: true

require_relative "../support/again"

RSpec.describe "Objects that were there before" do
  # The number of calls that used the graph cache.
  def held = Ikra.__graphs.sum(&:last)

  # Compares two worlds with the same history after changes. The first one is Ikra's.
  def after(worlds, backend, *changes, seed: 1)
    changes.each do |name|
      worlds.each { |world| Again.change(world, name, seed) }
      worlds.zip([backend, nil]) { |world, by| world.walk(by) }
      states = worlds.map(&:state)
      # RSpec's diff of such large values would take minutes.
      return "after #{name}: #{states.map(&:hash)}" unless states.first == states.last
    end
    :same
  end

  (Backends.present & %i[cpu cuda reference]).each do |backend|
    context "on #{backend}" do
      # Enough objects for workers, and too few for them.
      { "many" => [20_000, 3_000], "few" => [3_000, 600] }.each do |many, size|
        next if many == "many" && backend == :reference

        let(:"#{many}_worlds") { Array.new(2) { Again::World.new(*size) } }

        # On a GPU, two threads that add to one purse at the same time race.
        names = Again::CHANGES.keys - (backend == :cuda ? ["a purse that two have"] : [])
        names.each do |name|
          it "notices #{name} (#{many})" do
            worlds = public_send(:"#{many}_worlds")
            expect(after(worlds, backend, "nothing", "nothing", name, "nothing", name, "towns of some")).to be :same
          end
        end

        it "notices what comes in any order (#{many})" do
          worlds = public_send(:"#{many}_worlds")
          random = Random.new(RSpec.configuration.seed)
          changes = Array.new(many == "many" ? 30 : 60) { names.sample(random: random) }
          expect(after(worlds, backend, *changes, seed: random.rand(1000))).to(be(:same), "#{changes} with seed #{RSpec.configuration.seed}")
        end
      end

      it "does not walk again where only references change" do
        world = Again::World.new(20_000, 3_000)
        3.times { world.walk(backend) }
        # Cached tables that are not used while the GC runs repeatedly are dropped.
        Garbage.uncollected { expect { 5.times { world.walk(backend) } }.to change { held }.by(5) }
        world.walkers.shuffle!
        world.inn.replace(world.towns.last(5))
        expect { world.walk(backend) }.to change { held }.by(1)
      end

      it "does not walk again over objects of several classes that lead to each other, and to others of these classes" do
        kinds = [Again::Friend, Again::GoodFriend, Again::BestFriend]
        all = Array.new(40_000) { |i| kinds[i * 7 % 3].new }
        all.each_with_index { |one, i| one.friend = all[((i * 7919) + 5) % all.size] }
        some = all.first(30_000)
        help = ->(times) { times.times { some.peach(backend: backend) { |one| one.help } } }
        help.call(2)
        Garbage.uncollected { expect { help.call(5) }.to change { held }.by(5) }
        some.each { |one| one.friend.done -= 7 * (kinds.index(one.class) + 1) }
        expect(all.map(&:done).uniq).to eq [0]
      end

      it "finds what objects lead to whose ivars are in another order than those of all that are looked at first" do
        stub_const("Again::Shore", Struct.new(:boats))
        stub_const("Again::Boat", Class.new do
          attr_accessor :shore

          def initialize(rare, shore)
            rare ? (@shore, @sailors = shore, 1) : (@sailors, @shore = 1, shore)
          end

          def land = shore.boats += @sailors
        end)
        shores = Array.new(21_000) { Again::Shore.new(0) }
        boats = Array.new(21_000) { |i| Again::Boat.new(i % 4096 < 2, shores[i * 11 % 21_000]) }
        land = ->(times) { times.times { boats.peach(backend: backend) { |boat| boat.land } } }
        land.call(2)
        Garbage.uncollected { expect { land.call(3) }.to change { held }.by(3) }
        expect(shores.map(&:boats).tally).to eq(5 => 21_000)
      end

      it "looks at all that few elements lead to" do
        stub_const("Again::Leaf", Class.new do
          attr_accessor :weight

          def initialize = @weight = 1
          def heavy = weight
        end)
        stub_const("Again::Wet", Module.new { def heavy = weight * 100 })
        stub_const("Again::Branch", Class.new do
          attr_accessor :leaves, :load

          def initialize = (@leaves, @load = [Again::Leaf.new, Again::Leaf.new], 0)
          def weigh = @load += @leaves.sum { |leaf| leaf.heavy }
        end)
        trees = Array.new(3) { Struct.new(:branches).new(Array.new(2_000) { Again::Branch.new }) }
        weigh = ->(by) { by ? trees.peach(backend: by) { |tree| tree.branches.each { |branch| branch.weigh } } : trees.each { |tree| tree.branches.each(&:weigh) } }
        2.times { weigh.call(backend) }
        Garbage.uncollected { expect { 3.times { weigh.call(backend) } }.to change { held }.by(3) }
        branches = trees.flat_map(&:branches)
        expect(branches.map(&:load).uniq).to eq [10]
        [-> { branches[3_000].leaves[1].weight = 7 }, -> { branches[70].leaves[0] = Again::Leaf.new }, -> { branches[4_000].leaves[0].extend(Again::Wet) },
         -> { branches[5_000].leaves << Again::Leaf.new }, -> { branches[900].leaves = branches[901].leaves }].each do |change|
          change.call
          before = branches.map(&:load)
          weigh.call(nil)
          after = branches.map(&:load)
          branches.zip(before) { |branch, load| branch.load = load }
          weigh.call(backend)
          expect(branches.map(&:load).hash).to eq(after.hash)
        end
      end

      it "finds what many objects lead to, of a class that was numbered before theirs" do
        stub_const("Again::Well", Class.new do
          attr_accessor :name, :depths

          def initialize(depth)
            @name = "well #{depth}"
            @depths = [depth, 1]
          end
        end)
        stub_const("Again::Digger", Class.new do
          attr_accessor :well, :metres

          def initialize(well)
            @well = well
            @metres = 0
          end
        end)
        wells = Array.new(500) { |i| Again::Well.new(i) }
        expect(wells.pmap(backend: backend) { |well| well.name.size }.sum).to eq(wells.sum { |well| well.name.size })
        diggers = Array.new(20_000) { |i| Again::Digger.new(wells[i % 500]) }
        diggers.peach(backend: backend) { |digger| digger.metres += digger.well.name.size + digger.well.depths[0] }
        expect(diggers.map(&:metres)).to eq(diggers.map { |digger| digger.well.name.size + digger.well.depths[0] })
      end

      it "walks again behind symbols that are new" do
        stub_const("Again::Car", Struct.new(:state, :log, :speed))
        cars = Array.new(20_000) { |i| Again::Car.new(:idle, [i], 0) }
        tick = -> { cars.peach(backend: backend) { |car| car.speed = car.log.size + (car.state == :idle ? 0 : 10) } }
        2.times { tick.call }
        cars[5].state = :"never_seen_before_#{backend}"
        cars[7].log << 1
        tick.call
        expect(cars.values_at(4, 5, 7).map(&:speed)).to eq [1, 11, 2]
      end

      it "compiles anew for an element of another kind in a list near one that few lead to" do
        stub_const("Again::Link", Class.new do
          attr_accessor :list, :following

          def initialize(number) = @list = [number]
          def total = following ? list[0] + following.list[0] + (following.following ? following.following.list[0] : 0) : list[0]
        end)
        links, near, far = [20_000, 10, 10].map { |count| Array.new(count) { |i| Again::Link.new(i.to_f) } }
        10.times { |i| links[i * 100].following, near[i].following = near[i], far[i] }
        sums = -> { expect(links.pmap(backend: backend) { |link| link.total }.hash).to eq(links.map(&:total).hash) }
        3.times { sums.call }
        10.times { |i| links[i * 100].following, far[i].following, near[i].following = far[i], near[i], nil }
        3.times { sums.call }
        links[19_990].list[0] = 7
        2.times { sums.call }
      end

      it "notices a reference where all objects of a class had nil" do
        worlds = Array.new(2) { Again::World.new(300, 60) }
        worlds.each do |world|
          world.walkers[9].extend(Again::Slow)
          world.walkers[9].town = nil
        end
        expect(after(worlds, backend, "nothing")).to be :same
        worlds.each { |world| world.walkers[9].town = world.towns[3] }
        expect(after(worlds, backend, "nothing")).to be :same
      end

      it "notices another value of an ivar of which only the truth is asked, whoever has it and however" do
        sky = Class.new do
          attr_accessor :wind

          define_method(:gives) { [1, 2].pmap(backend:) { |x| @wind ? 10 : x } }
          define_method(:compares) { [1, 2].pmap(backend:) { |x| @wind == nil ? x : 10 } } # rubocop:disable Style/NilComparison
          define_method(:asks) { [1, 2].pmap(backend:) { |x| wind ? 10 : x } }
        end.new
        calls = %i[gives compares asks]
        all = -> { calls.map { |name| sky.public_send(name) } }
        sky.wind = 1.0
        expect(all.call).to all(eq([10, 10]))
        sky.wind = nil
        expect(all.call).to all(eq([1, 2]))
        sky.wind = 2
        expect(all.call).to all(eq([10, 10]))
        sky.remove_instance_variable(:@wind)
        expect(all.call).to all(eq([1, 2]))
      end

      it "refuses Arrays that may have methods of their own, whenever they come, but for the one that it runs over" do
        stack = Class.new(Array) { def size = 99 }
        holder = Struct.new(:list)
        holders = Array.new(20_000) { |i| holder.new([i, 1]) }
        sizes = -> { holders.psum(backend:) { |held| held.list.size } }
        expect(Array.new(3) { sizes.call }).to all(eq(40_000))
        holders[777].list.define_singleton_method(:size) { 50 }
        expect(&sizes).to raise_error(Ikra::CompileError, /an Array with methods of its own/)
        holders[777].list = [1, 2]
        expect(sizes.call).to eq(40_000)
        holders[-1].list = stack[1, 2]
        expect(&sizes).to raise_error(Ikra::CompileError, /which is no plain Array/)
        expect { [stack[1, 2]].pmap(backend:, &:size) }.to raise_error(Ikra::CompileError, /which is no plain Array, which element 0 is/)
        expect(stack[1, 2].pmap(backend:) { |x| x + 1 }).to eq([2, 3])
      end

      it "runs over lists that share what they hold, beside those of another class that share nothing" do
        node = Class.new do
          attr_reader :rows

          define_method(:initialize) { |rows| @rows = rows }
        end
        row = [1]
        others = [[], [[5]]].map { |rows| Class.new(node).new(rows) }
        others.each do |other|
          nodes = [node.new([row, row]), other]
          [nodes, nodes.reverse].each { |list| expect(list.pmap(backend:) { |x| x.rows.sum(&:sum) }).to eq(list.map { |x| x.rows.sum(&:sum) }) }
        end
      end

      it "gives errors, and goes on from there" do
        worlds = Array.new(2) { Again::World.new(20_000, 3_000) }
        expect(after(worlds, backend, "nothing", "nothing")).to be :same
        before = worlds.first.state
        ways = worlds.first.walkers[7_000].town.ways
        known = ways.slice!(0..)
        expect { worlds.first.walk(backend) }.to raise_error(ZeroDivisionError)
        ways.concat(known)
        expect(worlds.first.state.first).to eq(before.first)
        expect(after(worlds, backend, "nothing", "nothing")).to be :same
      end

      it "changes nobody where one is frozen by now" do
        world = Again::World.new(20_000, 3_000)
        3.times { world.walk(backend) }
        world.walkers[11_111].freeze
        before = world.state
        expect { world.walk(backend) }.to raise_error(FrozenError)
        expect(world.state).to eq(before)
      end

      it "may meet the GC at every allocation" do
        output = run_ruby(<<~RUBY, backend.to_s, "#{__dir__}/../support/again")
          require ARGV[1]
          backend = ARGV[0].to_sym
          worlds = Array.new(2) { Again::World.new(2_000, 300) }
          2.times { worlds.each { |world| world.walk(backend) } }
          GC.stress = true
          worlds.first.walk(backend)
          GC.stress = false
          worlds.last.walk(nil)
          worlds.each { |world| world.walk(backend) }
          p worlds.map(&:state).uniq.size, Ikra.__graphs.map(&:last)
        RUBY
        expect(output).to eq("1\n[2, 2]\n")
      end

      it "does not take new objects for old ones in their place" do
        worlds = Array.new(2) { Again::World.new(6_000, 800) }
        same = Array.new(12) do |round|
          worlds.each do |world|
            # All towns die, and new ones get their addresses.
            world.towns = Array.new(800) { |number| (round.odd? && number % 5 == 0 ? Again::Village : Again::Town).new(number) }
            world.inn = world.towns.first(5)
            world.walkers.each_with_index { |walker, i| walker.town = world.towns[(i * 7 + round) % 800] }
            GC.start
            world.towns.each_with_index { |town, i| town.ways.push(world.towns[i - 1], Again::Town.new(i).tap { |other| other.ways.push(town, other) }) }
          end
          after(worlds, backend, "nothing", "nothing")
        end
        expect(same.uniq).to eq([:same])
      end

      it "leaves alone what nobody refers to any more, whatever else changes it meanwhile" do
        world = Again::World.new(20_000, 3_000)
        3.times { world.walk(backend) }
        gone = world.walkers.slice!(5_000, 5_000)
        stop = false
        writing = Thread.new do
          count = 0
          gone.each { |walker| walker.steps = count += 1 } until stop
          count
        end
        10.times { world.walk(backend) }
        stop = true
        count = writing.value
        expect(gone.map(&:steps)).to eq((count - 4_999..count).to_a)
      end

      it "serves threads that share objects" do
        world = Again::World.new(20_000, 3_000)
        walkers = world.walkers
        wanted = walkers.map { |walker| walker.town.size + walker.steps }
        found = Array.new(4) { Thread.new { Array.new(6) { walkers.pmap(backend: backend) { |walker| walker.town.size + walker.steps } } } }.flat_map(&:value)
        expect(found.uniq).to eq([wanted])
      end
    end
  end

  it "are kept alive by nobody" do
    output = run_ruby(<<~RUBY)
      class Thing
        attr_reader :other
        def initialize(other) = @other = other
        def look = @other
      end
      def call(things) = things.pmap(backend: :cpu) { |thing| thing.look.equal?(nil) }
      def round
        inner = Array.new(8_000) { Thing.new(nil) }
        things = inner.map { |thing| Thing.new(thing) }
        2.times { call(things) }
        p Ikra.__graphs
        nil
      end
      round
      # whatever the machine stack still shows
      def deep(n) = n.zero? ? nil : deep(n - 1)
      deep(200)
      GC.start
      p ObjectSpace.each_object(Thing).count < 100
      sleep 1.1
      20.times { GC.start }
      p Ikra.__graphs
    RUBY
    expect(output).to eq("[[16000, 1]]\ntrue\n[]\n")
  end

  it "are remembered of the last list alone, and of those that a block came back to" do
    call = ->(list) { list.pmap(backend: :cpu) { |inner| inner.first } }
    lists = Array.new(7) { Array.new(5_000) { |i| [i] } }
    lists.each(&call)
    expect(Ikra.__graphs.size).to eq 1
    2.times { lists.first(3).each(&call) }
    before = held
    lists.first(3).each(&call)
    expect(held - before).to eq 3
    expect(lists.first(3).map(&call)).to eq([(0...5_000).to_a] * 3)
  end

  it "are remembered where a block goes over lists of two kinds in turn" do
    lists = [Array.new(5_000) { |i| [i] }, Array.new(5_000) { |i| [i * 0.5] }]
    call = ->(list) { list.pmap(backend: :cpu) { |inner| inner.first } }
    4.times { lists.each(&call) }
    before = held
    expect(lists.map(&call)).to eq(lists.map(&:flatten))
    expect(held - before).to be >= 2
  end

  it "are remembered of a few blocks" do
    list = Array.new(5_000) { |i| [i] }
    blocks = [->(l) { l.pmap(backend: :cpu) { |e| e.first } }, ->(l) { l.pmap(backend: :cpu) { |e| e.last + 1 } }, ->(l) { l.pmap(backend: :cpu) { |e| e.size } }]
    2.times { blocks.each { |block| block.call(list) } }
    expect(Ikra.__graphs.last(3)).to eq [[5_000, 1]] * 3
    7.times { |i| eval("list.pmap(backend: :cpu) { |e| e.first + #{i} }") } # rubocop:disable Security/Eval, Style/DocumentDynamicEvalDefinition
    expect(Ikra.__graphs.size).to eq 4
  end
end
