# frozen_string_literal: true

require_relative "../support/stand_in"

# The lifetimes of MDArrays: while objects move, at the end of a program, and in children of it, in processes of their
# own.
RSpec.describe Ikra::MDArray do
  # A story over arrays of numbers and of objects, and its answer.
  story = <<~RUBY
    class Point
      attr_accessor :x, :near

      def initialize(x) = @x = x
    end
    # Each element's place in memory may change while it runs.
    def story
      points = Array.new(6) { |i| Point.new(i * 1.5) }
      points.each_with_index { |point, i| point.near = [points[i - 1], points[i - 2]] }
      objects = Ikra::MDArray.new(points.each_slice(3).to_a)
      numbers = objects.map { |point| point.x + point.near[0].x }
      objects.peach { |point| point.x += 1.0 }
      view = (numbers * 2).t[1..2, true]
      numbers[0, 0] += 1.0
      view[1, 1] = 9.0
      [numbers.to_a, view.to_a, (view + 1).sum(axis: 1).to_a, objects.map { |point| point.near[1].x }.to_a, objects.t[0, true].to_a.map(&:x), points.map(&:x)]
    end
  RUBY
  answer = "[[[8.5, 1.5, 4.5], [7.5, 10.5, 13.5]], [[3.0, 21.0], [9.0, 9.0]], [26.0, 20.0], [[7.0, 8.5, 1.0], [2.5, 4.0, 5.5]], [1.0, 5.5], [1.0, 2.5, 4.0, 5.5, 7.0, 8.5]]"

  on_every_backend do |backend|
    chosen = { "IKRA_BACKEND" => backend.to_s }

    it "lives through a full collection at every allocation" do
      expect(run_ruby(<<~RUBY, environment: chosen, seconds: 300)).to eq("true\n")
        #{story}
        quiet = story
        GC.stress = true
        known = story
        GC.stress = false
        p known == quiet && quiet.inspect == #{answer.inspect}
      RUBY
    end

    it "holds elements that are objects while the heap is compacted" do
      expect(run_ruby(<<~RUBY, environment: chosen)).to eq("true\ntrue\n")
        #{story}
        held = Ikra::MDArray.new(Array.new(500) { |i| Point.new(i) })
        pending = Ikra::MDArray.new(Array.new(500) { |i| i * 0.5 }) * 2
        right = true
        GC.auto_compact = true
        5.times do |turn|
          Array.new(2000) { Object.new }
          GC.compact
          right &&= story.inspect == #{answer.inspect}
          held.peach { |point| point.x += 1 }
        end
        GC.auto_compact = false
        more = RUBY_VERSION >= "3.2" ? :expand_heap : :double_heap
        GC.verify_compaction_references(more => true, toward: :empty) if GC.respond_to?(:verify_compaction_references)
        p right && story.inspect == #{answer.inspect}
        p held.to_a.map(&:x) == Array.new(500) { |i| i + 5 } && held.map(&:x).sum == 500 * 499 / 2 + 2500 && pending.sum == 500 * 499 / 2
      RUBY
    end
  end

  # Also on a simulated device. There, kernels are queued, and only the device has their results.
  [*Backends.present, :stand_in].each do |backend|
    context "on #{backend}" do
      around { |example| Dir.mktmpdir { |folder| (@folder = folder) && example.run } }

      def chosen(backend) = backend == :stand_in ? StandIn.environment(@folder).merge("IKRA_BACKEND" => "cuda") : { "IKRA_BACKEND" => backend.to_s }

      it "may be in work when the program ends" do
        expect(run_ruby(<<~RUBY, environment: chosen(backend))).to eq("")
          numbers = Ikra::MDArray.new(100_000) { |i| i * 0.5 }
          20.times { numbers = numbers.map { |x| x * 1.0001 + 1.0 } }
          numbers.map! { |x| x + 1.0 }
          poisoned = Ikra::MDArray[1, 0].map { |x| 1 / x }
          pending = numbers * 2 + poisoned.dup.reshape(2, 1)
          Thread.new { 1000.times { numbers.map { |x| x + 1.0 } } }
          sleep 0.01
        RUBY
      end

      it "may be in work when the program is left at once, by a thread, in a scope, or asked for in at_exit" do
        endings = {
          "exit!(0)" => "", "Thread.new { exit }.join" => "", "Ikra.resident { cars.peach { |car| car.x += 1.0 }; exit }" => "",
          "at_exit { print numbers.map { |x| x * 0.0 }.sum }" => "0.0"
        }
        endings.each do |ending, printed|
          expect(run_ruby(<<~RUBY, environment: chosen(backend))).to eq(printed), ending
            class Car; attr_accessor :x; def initialize(x) = @x = x; end
            cars = Array.new(100) { |i| Car.new(i * 1.0) }
            numbers = Ikra::MDArray.new(100_000) { |i| i * 0.5 }
            10.times { numbers = numbers.map { |x| x * 1.0001 + 1.0 } }
            #{ending}
          RUBY
        end
      end

      it "is found by a child of fork, where it is written, and the parent's is another's" do
        expect(run_ruby(<<~RUBY, environment: chosen(backend))).to eq("[0.0, 4.0, 8.0, 12.0] 12000.0 [0.0, 2.0, 4.0, 6.0] 1999000.0")
          small = Ikra::MDArray.new(4) { |i| i * 2.0 }.sync
          large = Ikra::MDArray.new(2000) { |i| i * 1.0 }.map { |x| x }
          child = fork do
            Ikra.config.backend = :cpu
            small.map! { |x| x * 2.0 }
            large[true] = 6.0
            print small.to_a, " ", large.sum, " "
          end
          Process.wait(child)
          exit 1 unless $?.success?
          print small.to_a, " ", large.sum
        RUBY
      end
    end
  end

  # Frequent waits read a flag in memory, where the device has such flags, unless the wait takes long.
  { nil => true, "mute" => false }.each do |state, told|
    it "may be waited for again and again on a device#{" that writes no words to memory" unless told}" do
      Dir.mktmpdir do |folder|
        expect(run_ruby(<<~RUBY, environment: StandIn.environment(folder, state: state).merge("IKRA_BACKEND" => "cuda"))).to eq("true true true 0 #{told}\n")
          require "fiddle"
          running, words = %w[running words].map { |name| Fiddle::Function.new(Fiddle.dlopen("libcuda.so.1")["stand_in_" + name], [], Fiddle::TYPE_LONG) }
          few, many = [5, 200_000].map { |size| Ikra::MDArray.new(size) { |i| i * 0.5 } }
          few_are_right = Array.new(100) { |k| few.map { |x| x * k }.sync.to_a == [0.0, k * 0.5, k * 1.0, k * 1.5, k * 2.0] }.all?
          unfinished = 0
          many_are_right = Array.new(20) do |k|
            made = many.map { |x| x * k }.sync
            unfinished += running.call
            made[1001] == k * 500.5
          end.all?
          threads = Array.new(6) do |t|
            Thread.new do
              Array.new(100) do |k|
                long = k % 20 != t || many.map { |x| x * k }.map { |x| x + 1.0 }.sync[1001] == k * 500.5 + 1.0
                sum = k % 25 != t || many.sum == 0.5 * (199_999 * 200_000 / 2)
                few.map { |x| x + k * t }.sync[4] == 2.0 + k * t && long && sum
              end.all?
            end
          end
          puts [few_are_right, many_are_right, threads.all?(&:value), unfinished, words.call > 50].join(" ")
        RUBY
      end
    end
  end

  it "is there on a device before what was queued behind it, takes long, and writes memory that is new" do
    Dir.mktmpdir do |folder|
      expect(run_ruby(<<~RUBY, environment: StandIn.environment(folder).merge("IKRA_BACKEND" => "cuda"))).to eq("true 1 true\n")
        require "fiddle"
        running = Fiddle::Function.new(Fiddle.dlopen("libcuda.so.1")["stand_in_running"], [], Fiddle::TYPE_LONG)
        few, *many = [5, 70_000, 4_000_000].map { |size| Ikra::MDArray.new(size) { |i| i * 0.5 }.sync }
        short = -> { few.map { |x| x + 1.0 } }
        long = ->(numbers) { numbers.map { |x| Math.sin(Math.sin(Math.sin(Math.sin(x)))) } }
        [short.call, long.call(many.first)].each(&:sync)
        soon, late = short.call, long.call(many.last)
        soon.sync
        unfinished = running.call
        puts [soon.to_a == [1.0, 1.5, 2.0, 2.5, 3.0], unfinished, late[0] == 0.0].join(" ")
      RUBY
    end
  end

  # 64 MiB are fewer than a twentieth of what is made.
  short_lived = <<~RUBY
    Ikra.config.memory_limit = 64 << 20
    memory = -> { GC.start; File.read("/proc/self/status")[/VmRSS:\\s*(\\d+)/, 1].to_i * 1024 }
    turn = lambda do |i|
      numbers = Ikra::MDArray.new(2_000) { |j| j * 0.5 }
      more = numbers.map { |x| x + 1.0 }
      more[i % 2000] = 1.0
      numbers + more
      i % 100 == 0 ? more.sum : nil
    end
    2_000.times(&turn)
    before = [memory.call, Ikra.memory.values_at(:arrays, :device)]
    # two, or three, arrays each
    ARGV[0].to_i.times(&turn)
    grown = memory.call - before[0]
    after = Ikra.memory
    p grown < 32 << 20, after[:arrays] - before[1][0] < 200, after[:device] <= 64 << 20, Ikra::MDArray.new(3) { |i| i }.sum
  RUBY

  on_every_backend do |backend|
    next if backend == :cuda_shim

    it "comes and goes 100 000 times within a limit of 64 MiB, without an error and without growth", slow: true do
      # The interpreter takes a second for a thousand.
      turns = backend == :reference ? 2_000 : 50_000
      expect(run_ruby(short_lived, turns.to_s, environment: { "IKRA_BACKEND" => backend.to_s }, seconds: 600)).to eq("true\ntrue\ntrue\n3\n")
    end
  end

  it "comes and goes thousands of times on a device, within a limit of 64 MiB", slow: true do
    Dir.mktmpdir do |folder|
      environment = StandIn.environment(folder).merge("IKRA_BACKEND" => "cuda")
      expect(run_ruby(short_lived, "10000", environment:, seconds: 600)).to eq("true\ntrue\ntrue\n3\n")
    end
  end
end
