# frozen_string_literal: true

RSpec.describe "Ikra.resident where columns are a GPU's" do
  before { skip "no g++ on the PATH" unless system("g++", "--version", out: File::NULL, err: File::NULL) }

  around { |example| Dir.mktmpdir("ikra-resident") { |folder| (@folder = folder) && example.run } }

  def on_stand_in(program, **more) = run_ruby(program, environment: StandIn.environment(@folder).merge(more), folder: @folder)

  # Objects of two classes, each with a box of its own, and operations on them in a scope.
  objects = <<~RUBY
    Ikra.config.backend = :cuda
    class Box
      attr_accessor :value, :count
      def initialize(value) = (@value, @count = value, 0)
    end

    class Part
      attr_accessor :id, :all, :some, :count, :box
      def initialize(id)
        @id, @all, @some, @count, @box = id, id * 0.5, 0.0, id, Box.new(id * 2.0)
      end
      def grow(far) = @all = @all * 1.25 + far
    end

    class Other < Part
      def grow(far) = @all -= far
    end

    def parts = Array.new(60) { |i| (i % 3 == 1 ? Other : Part).new(i) }
    def state(parts) = parts.map { |part| [part.all, part.some, part.count, part.box.value, part.box.count] }
    # What a block changes that raises for no element, and nothing of one that does: Ruby's `each`, but it changes all
    # or nothing.
    PLAIN = lambda do |list, &block|
      list.each(&block)
    end
    RUNS = ->(list, &block) { list.peach(&block) }

    # Blocks that surely end well.
    SURE = {
      whole: ->(each, list, far) { each.call(list) { |part| part.grow(far) } },
      partly: ->(each, list, far) { each.call(list) { |part| part.some += 1.0 if part.all > far * 10 } },
      reference: ->(each, list, far) { each.call(list) { |part| part.box.value = part.all + far } },
      both: ->(each, list, far) { each.call(list) { |part| part.all > 5 ? part.box.value -= far : part.some = part.box.value } },
    }
    # Blocks that may raise, and do not.
    DOUBTFUL = {
      counts: ->(each, list, _) { each.call(list) { |part| part.count += part.id } },
      partly_counts: ->(each, list, far) { each.call(list) { |part| part.count *= 3 if part.count < far * 100 } },
      boxes_count: ->(each, list, _) { each.call(list) { |part| part.box.count += part.count } },
      raises_seldom: ->(each, list, far) { each.call(list) { |part| part.all += far; raise "never" if part.id > 1000; part.some = part.all } },
    }
    # Blocks that raise, of which nothing is to be seen.
    RAISING = {
      at_once: ->(each, list, far) { each.call(list) { |part| part.all = -1.0; part.some = far; raise IndexError, "no" if part.id == 3 } },
      partly: ->(each, list, far) { each.call(list) { |part| part.some = -2.0 if part.all > far; raise IndexError, "no" if part.id >= 3; part.count = 0 } },
      references: ->(each, list, _) { each.call(list) { |part| part.box.value = -3.0; part.box.count += 1; raise IndexError, "no" if part.id == 3 } },
      last: ->(each, list, _) { each.call(list) { |part| part.all = 0.0; part.count = part.id / (part.id - 3); part.box.value = 0.0 } },
      collects: ->(each, list, far) { sum = 1 << 62; each.call(list) { |part| part.all = far; sum += 1 << 60 } },
    }
  RUBY

  it "does what Ruby does, whatever blocks follow each other and whatever is looked at or changed between them" do
    expect(on_stand_in(<<~RUBY)).to eq("right\n")
      #{objects}
      ERRORS = [IndexError, ZeroDivisionError, Ikra::IntegerOverflow]
      wrong = []
      24.times do |seed|
        dice = Random.new(seed)
        steps = Array.new(25) { [dice.rand(12), dice.rand(100), dice.rand(100) / 8.0] }
        run = lambda do |list, each, plain|
          lists = [list, list, list, list.first(20), list.shuffle(random: Random.new(seed)), list.grep(Other)]
          steps.each do |kind, at, far|
            chosen = lists[at % lists.size]
            case kind
            when 0..3 then SURE.values[at % SURE.size].call(each, chosen, far)
            when 4..6 then DOUBTFUL.values[at % DOUBTFUL.size].call(each, chosen, far)
            when 7..8
              next if plain || chosen.none? { |part| part.id == 3 }
              begin
                RAISING.values[at % RAISING.size].call(each, chosen, far)
                wrong << [seed, kind, at, "raised nothing"]
              rescue *ERRORS
                nil
              end
            when 9 then list[at % list.size].all += far
            when 10 then list[at % list.size].box.count = at
            else at.even? ? Ikra.sync : list[at % list.size].some
            end
          end
        end
        resident, plain = parts, parts
        Ikra.resident(resident, arrays: (:fixed if seed.even?)) { run.call(resident, RUNS, false) }
        run.call(plain, PLAIN, true)
        wrong << [seed, state(resident).zip(state(plain)).find { |a, b| a != b }] if state(resident) != state(plain)
      end
      puts wrong.empty? ? "right" : wrong.inspect
    RUBY
  end

  it "leaves what was there before a block that raises, in the middle of a scope" do
    expect(on_stand_in(<<~RUBY)).to eq("right\n")
      #{objects}
      list = parts
      wrong = []
      Ikra.resident(list) do
        RAISING.each do |name, block|
          3.times do |turn|
            SURE.each_value { |sure| sure.call(RUNS, list, 0.5) }
            DOUBTFUL.values[turn].call(RUNS, list, 1.5)
            before = state(list) if turn != 1
            SURE[:whole].call(RUNS, list, 0.25) if turn == 2
            before = state(list) if turn == 2
            begin
              block.call(RUNS, list, 7.0)
              wrong << [name, "raised nothing"]
            rescue IndexError, ZeroDivisionError, Ikra::IntegerOverflow
              wrong << [name, turn] if before && state(list) != before
            end
          end
        end
      end
      puts wrong.empty? ? "right" : wrong.inspect
    RUBY
  end

  it "does each call wholly or not at all when threads are interrupted" do
    expect(on_stand_in(<<~RUBY)).to eq("right\n")
      #{objects}
      list = parts
      done = 0
      stopped = 0
      wrong = []
      Stop = Class.new(StandardError)
      Ikra.resident(list) do
        3.times { list.peach { |part| part.count += 1; part.all += 1.0; part.box.count += 1 }; done += 1 }
        main = Thread.current
        200.times do |turn|
          Thread.handle_interrupt(Stop => :never) do
            other = Thread.new { sleep(turn / 100_000.0); main.raise(Stop) }
            begin
              Thread.handle_interrupt(Stop => :immediate) do
                loop { list.peach { |part| part.count += 1; part.all += 1.0; part.box.count += 1 }; done += 1 }
              end
            rescue Stop
              stopped += 1
            end
            other.join
          end
          counts = list.map { |part| [part.count - part.id, part.all - part.id * 0.5, part.box.count] }.uniq
          n = counts[0][0]
          wrong << [turn, counts, done, stopped] unless counts == [[n, n.to_f, n]] && n.between?(done, done + 1)
          done = n
        end
      end
      puts wrong.empty? ? "right" : wrong.first(3).inspect
    RUBY
  end
end
