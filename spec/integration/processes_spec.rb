# frozen_string_literal: true

module Processes
  class Counter
    attr_reader :n

    def initialize(n) = @n = n
    def next! = @n += 1
  end
end

RSpec.describe "Threads and processes" do
  on_every_backend do
    it "runs sections on many threads at once" do
      results = Array.new(8) do |t|
        Thread.new do
          counters = Array.new(100) { |i| Processes::Counter.new(i * t) }
          10.times { counters.peach(3, backend:) { |counter| counter.next! } }
          counters.map(&:n) == Array.new(100) { |i| i * t + 30 }
        end
      end.map(&:value)
      expect(results).to all(be(true))
    end

    it "runs in fibers, with their small stacks" do
      fiber = Fiber.new { [1, 2].pmap(backend:) { |x| x * 2 } }
      expect(fiber.resume).to eq([2, 4])
    end

    it "compiles in fibers and threads what it compiles in the main thread" do
      shapes = [["(x > 0 ? ", "x", " : 1)", 150], ["x + (", "x", ")", 150], ["[x].sum { |x| ", "x", " }", 40]]
      shapes.each do |before, within, after, depth|
        nested = ->(n) { eval("proc { |x| #{before * n}#{within}#{after * n} }") } # rubocop:disable Security/Eval
        [7, depth].each do |n|
          story = lambda do
            [1, 2].pmap(backend:, &nested.(n))
          rescue Ikra::CompileError => e
            e.message[/: (.*)/, 1]
          end
          expected = story.call
          expect(Thread.new(&story).value).to eq(expected)
          expect(Fiber.new(&story).resume).to eq(expected)
        end
      end
      blocks = ->(n) { eval("proc { |x| #{(1..n).map { |i| "[x].sum { |x#{i}| " }.join}x#{' }' * n} }") } # rubocop:disable Security/Eval
      # what is nested deeper finds its end in the compiler, and not in the stack
      deep = blocks.(350)
      refused = Fiber.new do
        [1, 2].pmap(backend:, &deep)
      rescue Ikra::CompileError => e
        e
      end
      expect(refused.resume).to be_a(Ikra::CompileError)
      missing = proc { |x| x.sum_of_nothing }
      expect { Fiber.new { [1].pmap(backend:, &missing) }.resume }.to raise_error(NoMethodError)
    end

    # CUDA itself does not work in a child of a process that used it. There Ikra says so, and other backends run.
    it "runs in a forked child, and in the parent afterwards" do
      double = ->(values) { values.pmap(backend:) { |x| x * 2 } }
      expect(double.call([1, 2])).to eq([2, 4])
      2.times do
        reader, writer = IO.pipe
        pid = fork do
          reader.close
          known = begin
            double.call((1..5000).to_a).sum
          rescue Ikra::DeviceError => error
            error.message
          end
          fresh = (1..5000).pmap(backend: backend == :cuda ? :cpu : backend) { |x| x * 3 - 1 }.sum
          writer.write([known, fresh].inspect)
          writer.close
          exit!(0)
        end
        writer.close
        answer = reader.read
        Process.wait(pid)
        known = backend == :cuda ? '".*forked from.*"' : "25005000"
        expect(answer).to match(/\A\[#{known}, 37502500\]\z/)
      end
      expect(double.call([3])).to eq([6])
    end

    it "runs while a Ractor lives" do
      ractor = silently { Ractor.new { Ractor.receive } }
      counters = Array.new(1000) { |i| Processes::Counter.new(i) }
      counters.peach(2, backend:) { |counter| counter.next! }
      expect(counters.sum(&:n)).to eq(1000 * 999 / 2 + 2000)
      ractor.send(:done)
      expect(ractor.take).to eq(:done)
    end

    it "may be called from within another section's results" do
      expect([1, 2].pmap(backend:) { |x| x + 1 }.flat_map { |y| [y, y].pmap(backend:) { |z| z * y } }).to eq([4, 4, 9, 9])
    end
  end

  # A kernel on a device is its process's alone.
  %i[reference cpu].each do |backend|
    it "runs in a forked child what its parent compiled on #{backend}, without compiling it again" do
      double = ->(values) { Ikra.profile { values.pmap(backend:) { |x| x * 2 } } }
      expect(double.call([1, 2]).phases[:infer]).to be > 0
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        profile = double.call([3, 4])
        writer.write([profile.value, profile.phases.values_at(:infer, :compile)].inspect)
        writer.close
        exit!(0)
      end
      writer.close
      answer = reader.read
      Process.wait(pid)
      expect(answer).to eq("[[6, 8], [0.0, 0.0]]")
    end
  end

  # NVRTC is unloaded when a process ends, so no compilation may be running then.
  it "ends when what is compiled in the background is done" do
    skip "no g++ on the PATH" unless system("g++", "--version", out: File::NULL, err: File::NULL)

    Dir.mktmpdir("ikra-end") do |folder|
      run_ruby(<<~RUBY, environment: StandIn.environment(folder), folder: folder)
        class Car
          attr_accessor :at
          def initialize(at) = @at = at
        end
        cars = Array.new(500) { |i| Car.new(i * 0.5) }
        Ikra.resident(cars) { 40.times { cars.peach(backend: :cuda) { |car| car.at = car.at * 0.5 + 1 } } }
      RUBY
      # For one tick, and for several.
      expect(File.readlines(File.join(folder, "log")).size).to eq(2)
    end
  end

  def silently
    verbose, $VERBOSE = $VERBOSE, nil
    yield
  ensure
    $VERBOSE = verbose
  end

  # Each process has a context, kernels of recursive methods, arrays and objects on the GPU. Together they need a few
  # GiB.
  it "runs twelve processes on one GPU, none of which fails for want of memory", if: Backends.present.include?(:cuda) do
    program = <<~RUBY
      class Tree
        attr_reader :left, :right, :value
        def initialize(depth, value)
          @value = value
          @left, @right = depth.zero? ? [nil, nil] : [Tree.new(depth - 1, 2 * value), Tree.new(depth - 1, 2 * value + 1)]
        end
        def sum = value + (left ? left.sum : 0) + (right ? right.sum : 0)
      end
      class Walker
        def down(n) = n < 1 ? 0 : 1 + down(n - 1)
      end
      trees = Array.new(64) { |i| Tree.new(6, i) }
      walkers = Array.new(64) { Walker.new }
      sums = trees.map(&:sum)
      calls = wrong = 0
      until Process.clock_gettime(Process::CLOCK_MONOTONIC) > ARGV[0].to_f
        numbers = Ikra::MDArray.arange(1 << 20)
        [[trees.pmap(backend: :cuda) { |tree| tree.sum }, sums],
         [walkers.pmap(backend: :cuda) { |walker| walker.down(100) }, [100] * 64],
         [(0...50_000).pmap(backend: :cuda) { |i| [i, i * i] }.last, [49_999, 49_999**2]],
         [(numbers * 2).sum, (1 << 20) * ((1 << 20) - 1)]].each { |is, wanted| is == wanted ? calls += 1 : wrong += 1 }
      end
      puts "\#{calls > 10} \#{wrong}"
    RUBY
    ending = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    answers = Array.new(12) { Thread.new { run_ruby(program, ending.to_s, seconds: 300) } }.map(&:value)
    expect(answers.uniq).to eq(["true 0\n"])
  end
end
