# frozen_string_literal: true

# A street with a length, and cars that go round on it.
class ResidentStreet
  attr_accessor :length

  def initialize(length) = @length = length
end

class ResidentCar
  attr_accessor :position, :speed, :street, :hat

  def initialize(street)
    @street = street
    @position = 0.0
    @speed = 1.5
    @hat = nil
  end

  def move(time) = @position = (@position + @speed * time) % @street.length
  def brake = @speed *= 0.5
  def late? = @position > 3
  def gain = 2.0

  def inspect = "car at #{@position}"
end

class ResidentVan < ResidentCar; end

ResidentPoint = Struct.new(:x, :y)

RSpec.describe "Ikra.resident" do
  extend MDArrays::Groups

  def streets = [10.0, 20.0, 5.0].map { |length| ResidentStreet.new(length) }

  def cars(streets = self.streets) = Array.new(50) { |i| ResidentCar.new(streets[i % 3]) }

  def state(cars) = cars.map { |car| [car.position, car.speed, car.street.length] }

  on_all_backends do
    # Does the same with kernels in a scope and in plain Ruby.
    def both
      resident, plain = cars, cars
      Ikra.resident(resident) { yield resident, ->(list, &block) { list.peach(&block) } }
      yield plain, ->(list, &block) { list.each(&block) }
      expect(state(resident)).to eq(state(plain))
    end

    it "leaves what a block assigns, and does not change" do
      both { |list, run| run.call(list) { |car| car.speed = car.speed; car.position += 1.0 } } # rubocop:disable Style/Semicolon
      both { |list, run| run.call(list) { |car| car.street = car.street; car.hat = 1 } } # rubocop:disable Style/Semicolon
      both { |list, run| run.call(list) { |car| car.speed = 3.0 if car.speed > 5 && car.speed < 2; car.position += 1.0 } } # rubocop:disable Style/Semicolon
      points = [ResidentPoint.new(1, ResidentPoint.new(2, 0))]
      Ikra.resident { points.peach { |point| point.y.y += 1 } }
      expect(points).to eq([ResidentPoint.new(1, ResidentPoint.new(2, 1))])
    end

    it "has Hashes, and numbers and Ranges that are objects, as Ruby has them" do
      speeds, part = { 1.5 => 2.5 }, Complex(1, 2)
      both { |list, run| 2.times { run.call(list) { |car| car.speed = (speeds[car.speed] || part.imaginary) * 1.0 } } }
      both do |list, run|
        list.first.hat = (1..3)
        run.call(list) { |car| car.position += car.hat ? car.hat.sum : Rational(1, 2).to_f }
      end
      expect([Hash, Numeric, Complex, Rational, Range].map { |type| type.ancestors.first }).to eq([Hash, Numeric, Complex, Rational, Range])
    end

    it "keeps the columns of objects that hold Ranges, or are computed with Rationals" do
      both do |list, run|
        list.first.hat = (1..3)
        step = -> { run.call(list) { |car| car.position += car.hat ? car.hat.sum : Rational(1, 2).to_f } }
        2.times { step.call }
        profile = Ikra.profile { 3.times { step.call } }
        expect(profile.phases).to include(trace: 0.0, pack: 0.0)
      end
      expect([Range, Numeric, Complex, Rational, Ikra::Parallel].map { |type| type.ancestors.first }).to eq([Range, Numeric, Complex, Rational, Ikra::Parallel])
    end

    it "gives Strings that are parts of others" do
      list = Array.new(3) { |i| ResidentPoint.new("ab#{i}".freeze, 0) }
      Ikra.resident do
        2.times { expect(list.pmap { |point| point.x[1, 2] }).to eq(%w[b0 b1 b2]) }
        last = nil
        list.peach { |point| last = point.x[2] }
        expect(last).to eq("2")
      end
    end

    it "loses nothing while other threads look at its objects" do
      list = cars
      10.times do
        list.each { |car| car.position = 0.0 }
        Ikra.resident(list) do
          watchers = Array.new(2) { Thread.new { 5.times { list[7].position.then { Thread.pass } } } }
          5.times { list.peach { |car| car.position += 1.0 } }
          watchers.each(&:join)
        end
        expect(list.map(&:position).uniq).to eq([5.0])
      end
    end

    it "does over many calls what Ruby does" do
      time = 0.3
      both { |list, each| 20.times { each.call(list) { |car| car.move(time) } } }
    end

    it "passes columns from one block to another" do
      both do |list, each|
        5.times do
          each.call(list) { |car| car.move(0.3) }
          each.call(list) { |car| car.position = car.position * 1.01 + car.street.length }
          each.call(list) { |car| car.speed += 0.25 }
        end
      end
    end

    it "shows Ruby what kernels did, whatever asks" do
      both do |list, each|
        each.call(list) { |car| car.move(0.3) }
        expect([list[7].position, list[7].late?, list[7].inspect]).to eq([1.5 * 0.3, false, "car at #{1.5 * 0.3}"])
        each.call(list) { |car| car.move(0.3) }
        expect(list[8].instance_variable_get(:@position)).to eq(1.5 * 0.3 + 1.5 * 0.3)
        each.call(list) { |car| car.move(3.0) }
        expect(list[9].dup.position).to eq(list[9].position)
      end
    end

    it "shows kernels what Ruby did, by accessors, methods and Arrays" do
      both do |list, each|
        2.times { each.call(list) { |car| car.move(0.3) } }
        list[3].brake
        list[4].speed = 9.0
        list[5].instance_variable_set(:@speed, 2.5)
        each.call(list) { |car| car.move(0.3) }
        list[0].street.length = 7.0
        list[6].street = list[7].street
        each.call(list) { |car| car.move(0.3) }
        list[1], list[2] = list[2], list[1]
        each.call(list.first(10)) { |car| car.move(0.3) }
        list.pop
        each.call(list) { |car| car.move(0.3) }
      end
    end

    it "reads captured variables anew" do
      both do |list, each|
        10.times do |turn|
          time = turn.even? ? 0.1 : 1
          other = list[turn]
          each.call(list) { |car| car.position += other.street.length * time }
        end
      end
    end

    it "gives results, and collects in captured variables" do
      list = cars
      Ikra.resident(list) do
        sum = 0.0
        3.times { list.peach { |car| sum += car.speed } }
        expect(sum).to eq(50 * 1.5 * 3)
        list.peach { |car| car.move(1.0) }
        expect(list.pmap(&:position)).to eq([1.5] * 50)
        expect(list.pmap(&:street).map(&:length)).to eq(list.map { |car| car.street.length })
        expect(list.pselect { |car| car.street.length > 7 }.size).to eq(34)
      end
    end

    it "changes nothing where an element raises" do
      list = cars
      Ikra.resident(list) do
        2.times { list.peach { |car| car.move(1.0) } }
        expect do
          list.peach do |car|
            car.position = 99.0
            raise "no" if car.street.length == 5.0
          end
        end.to raise_error(RuntimeError, "no")
        expect(list.map(&:position)).to eq([3.0] * 50)
        list.peach { |car| car.position += 1 }
      end
      expect(list.map(&:position)).to eq([4.0] * 50)
    end

    it "goes on from what others wrote since behind a block that raised" do
      list = cars
      add = -> { list.peach { |car| car.position += 1.0 } }
      more = ->(at) { list.peach { |car| car.speed == at ? raise(ArgumentError, "no") : car.position += 10.0 } }
      Ikra.resident(list) do
        more.call(0.0)
        add.call
        expect { more.call(1.5) }.to raise_error(ArgumentError, "no")
        add.call
        more.call(0.0)
      end
      expect(list.map(&:position)).to all(eq(22.0))
    end

    it "writes everything back when the block is left by an exception" do
      list = cars
      expect do
        Ikra.resident(list) do
          list.peach { |car| car.move(1.0) }
          raise KeyError, "away"
        end
      end.to raise_error(KeyError)
      expect(list.map { |car| car.instance_variable_get(:@position) }).to eq([1.5] * 50)
    end

    it "knows members of Structs" do
      points = [ResidentPoint.new(1, 2.0), ResidentPoint.new(3, 4.0)]
      Ikra.resident(points) do
        3.times do
          points.peach do |point|
            point.x += 1
            point.y *= 2
          end
        end
        expect([points[0].x, points[1][:y], points[0].to_a, points[1] == ResidentPoint.new(6, 32.0)]).to eq([4, 32.0, [4, 16.0], true])
        points[0].x = 100
        points[1][:x] = 200
        points.peach { |point| point.x += 1 }
        expect(points.map(&:x)).to eq([101, 201])
      end
    end

    it "sees changes of many Arrays that the program had before" do
      list = cars
      lengths = Array.new(200) { |i| [i * 1.0, 2.0] }
      Ikra.resident(list) do
        4.times do |turn|
          list.peach { |car| car.position += lengths[3][0] }
          lengths[3][0] += turn
          GC.compact if turn == 2
        end
      end
      expect(list.first.position).to eq(3.0 + 3.0 + 4.0 + 6.0)
      expect { Ikra.resident(list, arrays: :loose) { nil } }.to raise_error(ArgumentError, "arrays: :loose is not :fixed")
      Ikra.resident(list, arrays: :fixed) { 2.times { list.peach { |car| car.position += lengths[0][1] } } }
      expect(list.first.position).to eq(20.0)
    end

    it "sees changes of Arrays with few elements and with many, of objects, of large numbers, and of those that stay as long" do
      list = cars
      places = streets
      lists = [[places[0], places[1]], Array.new(40) { places[1] }]
      numbers = [[1e300, 2.0], [1.0, 2.0], Array.new(40, 1e300), Array.new(40, 3.0)]
      expected = []
      Ikra.resident(list) do
        8.times do |turn|
          list.peach { |car| car.position = lists[0][0].length + lists[1][39].length + numbers[turn % 4][1] }
          expected << list.first.position
          case turn
          when 0 then lists[0].reverse!
          when 1 then lists[1][39] = places[2]
          when 2 then numbers[3][1] = 1e301
          when 3 then numbers[0][1] = 1e302
          when 4 then numbers[1][1] = 7.0
          when 5 then numbers[2][1] = 8.0
          end
          GC.start
        end
      end
      expect(expected).to eq([32.0, 42.0, 1e300, 1e301, 1e302, 32.0, 33.0, 1e301])
    end

    it "begins with what another scope over the same objects knew of them" do
      many = Array.new(20_000) { |i| ResidentCar.new(i) }
      pace = ->(some) { some.peach { |car| car.position += car.speed } }
      turn = ->(some) { some.peach { |car| car.speed = -car.speed if car.position > 2 } }
      scope = lambda do
        Ikra.resident(many) do
          2.times { pace.call(many) }
          turn.call(many)
        end
      end
      held = -> { Ikra.__graphs.sum(&:last) }
      phases = -> { Ikra.profile { scope.call }.phases }
      scope.call
      expect { expect(phases.call[:infer]).to eq 0 }.to change { held.call }.by(2)
      # A new block numbers them in another order.
      many.reverse!
      Ikra.resident(many) do
        3.times do
          pace.call(many)
          many.peach { |car| car.position *= 2 }
        end
      end
      scope.call
      position, speed = 0.0, 1.5
      step = ->(_) { position += speed }
      2.times { 2.times(&step) and position > 2 && (speed = -speed) }
      3.times { step.call(nil) and position *= 2 }
      2.times(&step)
      speed = -speed if position > 2
      expect(many.map { |car| [car.position, car.speed] }.uniq).to eq([[position, speed]])
    end

    it "does not keep buffers that arrays of a kind are side by side, which change without being asked" do
      stub_const("ResidentRow", Struct.new(:sum, :rows))
      %i[i32 i64].each do |dtype|
        buffers = [[1, 2, 3], [4, 5, 6]].map { |numbers| Ikra::Buffer.from_list(dtype, numbers) }
        rows = Array.new(100) { ResidentRow.new(0, buffers) }
        Ikra.resident(rows) do
          add = -> { rows.peach { |row| row.sum += row.rows[0][1] + row.rows[1][2] } }
          3.times { add.call }
          buffers[0][1] = 1000
          add.call
        end
        expect(rows.map(&:sum).uniq).to eq([24 + 1006])
      end
    end

    it "raises at nil among elements that were all objects" do
      stub_const("ResidentNode", Struct.new(:value, :other))
      first, second, third = Array.new(3) { ResidentNode.new(0.0, nil) }
      first.other = third
      list = [first, third, second]
      step = lambda do
        list.peach do |node|
          node.value += 1.0
          node.other.value if node.other && node.value < 0
        end
      end
      expect do
        Ikra.resident(list) do
          step.call
          list[1] = nil
          step.call
        end
      end.to raise_error(NoMethodError)
      expect(third.value).to eq 1.0
    end

    it "writes at its end what needs objects of its own, and ivars that some do not have yet, beside all others" do
      stub_const("ResidentDrop", Class.new do
        attr_accessor :size, :number, :mark

        def initialize(number) = (@number, @size = number, 1.0)

        def fall
          @size *= @number % 5_000 == 7 ? 1e-300 : 0.5
          @mark = @number if @number % 7_000 > 6_000
        end
      end)
      drops, plain = Array.new(2) { Array.new(20_000) { |i| ResidentDrop.new(i) } }
      drops[11_000].mark = plain[11_000].mark = nil
      drops[0].mark = plain[0].mark = 5
      Ikra.resident(drops) { 2.times { drops.peach(&:fall) } }
      2.times { plain.each(&:fall) }
      shown = ->(list) { list.map { |drop| [drop.size, drop.number, drop.mark] }.hash }
      expect(shown.call(drops)).to eq(shown.call(plain))
    end

    it "has columns that are long" do
      some = streets
      many = Array.new(140_000) { |i| (i % 3 == 0 ? ResidentVan : ResidentCar).new(some[i % 7 % 3]) }
      go = ->(order) { Ikra.resident(order) { 2.times { |i| order.peach { |car| car.move(1.0 + i) } } } }
      # Found in their own order, and then in others.
      4.times { go.call(many) }
      many.each_slice(2).with_index { |(one, other), i| many[i * 2, 2] = [other, one] if i > 60_000 }
      2.times { go.call(many) }
      go.call(many.rotate(5))
      expected = many.map { |car| Array.new(14) { |i| 1.5 * (1.0 + (i % 2)) }.reduce(0.0) { |at, step| (at + step) % car.street.length } }
      expect(many.map(&:position).hash).to eq(expected.hash)
    end

    it "notices what changes in any of many Arrays, when a scope is opened again, too" do
      stub_const("ResidentTown", Class.new do
        attr_accessor :ways, :tolls

        def initialize(ways, tolls) = (@ways, @tolls = ways, tolls)
        def toll = ways.sum { |way| way.tolls.sum } + tolls.sum
      end)
      stub_const("ResidentWalker", Class.new do
        attr_accessor :town, :paid

        def initialize(town) = (@town, @paid = town, 0.0)
        def pay = @paid += town.toll
      end)
      # Some towns have no tolls, some have more than are listed, and some more than one worker reads. Every 500th town
      # has no inhabitant.
      towns = Array.new(6_000) { |i| ResidentTown.new([], Array.new([0, 1, 3, 40][i % 4] + (i == 4_001 ? 5_000 : 0)) { |k| k + 1.0 }) }
      towns.each_with_index { |town, i| (i % 3).times { |k| town.ways << towns[((i * 7) + k + 1) % 6_000] } }
      walkers = Array.new(20_000) { |i| ResidentWalker.new(towns[i % 500 == 0 ? 1 : i % 6_000]) }
      some = walkers.values_at(1, 3, 4, 5, 6, 7, 8, 1_001, 2_000, 2_499, 2_500, 2_501, 4_001, *(0...20_000).step(401))
      changes = [
        nil, -> { towns[5].tolls[0] = 100.0 }, -> { towns[500].tolls << 9.0 }, -> { towns[1_000].tolls.unshift(-5.0) }, -> { towns[3].tolls[39] = 77.0 },
        -> { towns[4_001].tolls[5_000] = 1e6 }, -> { towns[2_000].ways.replace([towns[7], towns[8]]) }, -> { towns[2_500].ways.clear }, nil
      ]
      check = lambda do
        expected = some.map { |walker| walker.paid + walker.town.toll }
        walkers.peach { |walker| walker.pay }
        expect(some.map(&:paid)).to eq(expected)
      end
      2.times { check.call }
      3.times do
        Ikra.resident(walkers) do
          changes.each do |change|
            change&.call
            check.call
          end
        end
        changes.compact.sample.call
      end
    end

    it "passes on what a block wrote to an ivar that another took to be of one value, or of one kind" do
      both do |list, each|
        hats = -> { each.call(list) { |car| car.speed += 1.0 if car.hat } }
        hats.call
        each.call(list) { |car| car.hat = car.position > -1 }
        hats.call
        faster = ->(*) { each.call(list) { |car| car.speed += 0.5 } }
        faster.call
        each.call(list) { |car| car.speed = car.hat ? 2 : car.speed }
        2.times(&faster)
        2.times { hats.call }
      end
      list = cars
      step = -> { list.peach { |car| car.speed += 1.0 } }
      Ikra.resident(list) do
        step.call
        list.peach { |car| car.speed = nil if car.position > -1 }
        expect(&step).to raise_error(NoMethodError)
        expect(list.first.speed).to be_nil
      end
    end

    it "sees that an object got methods of its own, and that a String was changed" do
      list = cars
      text = +"a"
      pace = ->(*) { list.peach { |car| car.position += car.gain + text.size } }
      Ikra.resident(list) do
        2.times(&pace)
        list[1].extend(Module.new { def gain = 100.0 })
        pace.call
        def (list[2]).gain = 1000.0
        pace.call
        text << "bcd"
        pace.call
      end
      expect(list.first(4).map(&:position)).to eq([18.0, 312.0, 2014.0, 18.0])
    end

    it "raises what frozen objects raise, where the block was compiled for other frozen ones" do
      list = cars + [ResidentVan.new(streets[0])]
      move = -> { list.peach { |car| car.position += 1.0 } }
      list.first.freeze
      expect(&move).to raise_error(FrozenError)
      list.shift
      list.last.freeze
      Ikra.resident(list) { expect(&move).to raise_error(FrozenError) }
      expect(list.map(&:position).uniq).to eq([0.0])
    end

    it "raises what an object raises that is frozen in a scope, beside frozen ones of another class" do
      list = [*cars.first(2), *Array.new(2) { ResidentVan.new(streets[0]) }]
      move = -> { list.peach { |car| car.position += 1.0 unless car.position > 5.0 } }
      list.first.position = 6.0
      list.first.freeze
      Ikra.resident(list) do
        move.call
        list.last.freeze
        expect(&move).to raise_error(FrozenError)
        expect(list.map(&:position)).to eq([6.0, 1.0, 1.0, 1.0])
      end
      expect(list.map(&:position)).to eq([6.0, 1.0, 1.0, 1.0])
    end

    it "lets objects come and go" do
      list = cars
      Ikra.resident(list) do
        2.times { list.peach { |car| car.move(1.0) } }
        list << ResidentCar.new(ResidentStreet.new(100.0))
        list.shift
        list.peach { |car| car.move(1.0) }
        expect(list.map(&:position).tally).to eq(4.5 => 49, 1.5 => 1)
      end
    end
  end

  it "takes calls of methods with arguments, blocks and keywords as they are" do
    stub_const("ResidentThing", Class.new do
      def initialize = @a = 1
      attr_reader :a

      def with(first, *rest, key: 0, **others, &block) = [first, rest, key, others, block&.call(first)]
      def ==(other) = other.is_a?(self.class) && other.a == @a
      def [](index) = @a + index

      def []=(index, value)
        @a = index + value
      end

      def -@ = -@a

      protected

      def hidden = 1

      private

      def secret = 2
    end)
    things = Array.new(3) { ResidentThing.new }
    Ikra.resident(things) do
      2.times { things.peach(backend: :cpu) { |thing| thing[1] = thing.a } }
      thing = things.first
      expect(thing.with(1, 2, key: 3, other: 4) { |x| x + 1 }).to eq([1, [2], 3, { other: 4 }, 2])
      expect([thing == things.last, thing[1], -thing, thing.__send__(:secret)]).to eq([true, 4, -3, 2])
      expect { thing.secret }.to raise_error(NoMethodError)
      expect { thing.hidden }.to raise_error(NoMethodError)
    end
    expect(things.first.with(1)).to eq([1, [], 0, {}, nil])
  end

  it "is no scope of frozen classes" do
    frozen = Class.new(ResidentStreet).freeze
    list = [frozen.new(1.0)]
    expect { Ikra.resident(list) { list.peach(backend: :cpu) { |street| street.length += 1 } } }.to raise_error(FrozenError, /is frozen, and Ikra.resident could not tell/)
    expect(list.first.length).to eq(1.0)
  end

  it "nests, needs a block, and is nobody's but its thread's" do
    list = cars
    expect { Ikra.resident(list) }.to raise_error(ArgumentError, "Ikra.resident needs a block")
    value = Ikra.resident(list) do
      list.peach(backend: :cpu) { |car| car.move(1.0) }
      Ikra.resident(list) { list.peach(backend: :cpu) { |car| car.move(1.0) } }
      Thread.new { list.first.position }.value
    end
    expect(value).to eq(3.0)
    Ikra.sync(list)
  end

  it "is not counted where it was interrupted before it was open" do
    kind = Class.new { attr_accessor :x; def initialize = @x = 0 }
    list = [kind.new]
    lock = Ikra::Resident.instance_variable_get(:@lock)
    thread = lock.synchronize do
      opening = Thread.new { Ikra.resident { raise "never" } }
      opening.report_on_exception = false
      Thread.pass until opening.stop?
      opening.raise("interrupted")
      opening
    end
    expect { thread.join }.to raise_error("interrupted")
    # The methods that show objects exist only in scopes.
    Ikra.resident do
      list.peach(backend: :cpu) { |o| o.x += 1 }
      expect(list[0].inspect).to end_with("@x=1>")
    end
    expect(Ikra::Resident.open?).to be(false)
  end

  it "survives the GC" do
    move = ->(some) { some.peach(backend: :cpu) { |car| car.move(1.0) } }
    # Compilation allocates so much that it would take minutes.
    others = cars
    Ikra.resident(others) { 2.times { move.call(others) } }
    list = cars
    Ikra.resident(list) do
      GC.stress = true
      begin
        3.times { move.call(list) }
      ensure
        GC.stress = false
      end
    end
    expect(list.map(&:position).uniq.sort).to eq([4.5])
  end
end
