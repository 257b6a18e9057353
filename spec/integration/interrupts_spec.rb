# frozen_string_literal: true

require "timeout"

module Interrupts
  class Stop < StandardError
  end

  # Nothing that Ikra asks raises it.
  class Arrived < Exception # rubocop:disable Lint/InheritException
  end

  FEW = { 1 => 2, 2 => 3 }.freeze

  # Blocks of texts that differ are different blocks.
  def self.next_number = @number = (@number || 0) + 1

  class Actor
    attr_accessor :steps, :next
    attr_reader :start, :name, :list

    def initialize(start)
      @start = @steps = start
      @next = nil
      @name = "actor #{start}"
      @list = [start, start + 1]
    end
  end

  class Made
    attr_reader :steps

    def initialize(steps) = @steps = steps
  end

  class Runner
    attr_reader :steps

    def initialize = @steps = 0

    def forever
      @steps += 1 while @steps >= 0
    end

    def deep(n) = n < 0 ? 0 : deep(n + 1) + 1

    def slow
      i = 0
      while i < 30_000_000
        @steps = (@steps * 3 + i) % 1_000_003
        i += 1
      end
    end
  end
end

RSpec.describe "A section that does not end" do
  on_every_backend do
    it "is stopped by Timeout, and changes nothing" do
      runners = Array.new(4) { Interrupts::Runner.new }
      sum = 0
      expect do
        Timeout.timeout(0.5) do
          runners.peach(backend:) do |runner|
            sum += 1
            runner.forever
          end
        end
      end.to raise_error(Timeout::Error)
      expect(runners.map(&:steps)).to eq([0] * 4)
      expect(sum).to eq(0)
    end

    it "is stopped though it does nothing" do
      expect { Timeout.timeout(0.3) { [1].peach(backend:) { |_x| while true do end } } }.to raise_error(Timeout::Error)
      expect { Timeout.timeout(0.3) { [1].peach(backend:) { |_x| loop {} } } }.to raise_error(Timeout::Error)
    end

    # On a GPU both run in one warp.
    it "is stopped by an element before it that raises" do
      Timeout.timeout(20) do
        expect { [0, 1].peach(backend:) { |x| x.zero? ? raise("no") : loop {} } }.to raise_error(RuntimeError, "no")
        expect { [4, 5].peach(backend:) { |x| x == 4 ? x / 0 : (loop { x += 1 if x < 0 }) } }.to raise_error(ZeroDivisionError)
      end
    end

    it "is stopped between its ticks" do
      counts = [0, 0]
      expect { Timeout.timeout(0.3) { (0..1).peach(1 << 31, backend:) { |i| counts[i] += 1 } } }.to raise_error(Timeout::Error)
      expect(counts).to eq([0, 0])
    end

    it "is stopped by Thread#kill and Thread#raise" do
      runner = Interrupts::Runner.new
      thread = Thread.new { [runner].peach(backend:) { |r| r.forever } }
      sleep 0.3
      thread.kill
      expect(thread.join(5)).to equal(thread)
      thread = Thread.new { [runner].peach(backend:) { |r| r.forever } }
      thread.report_on_exception = false
      sleep 0.3
      thread.raise(IOError, "enough")
      expect { thread.join(5) }.to raise_error(IOError, "enough")
      expect(runner.steps).to eq(0)
    end

    it "leaves other threads running" do
      beats = 0
      beating = Thread.new { loop { beats += 1; sleep 0.005 } }
      expect { Timeout.timeout(0.5) { [Interrupts::Runner.new].peach(backend:) { |r| r.forever } } }.to raise_error(Timeout::Error)
      expect(beats).to be > 5 # about 100, where nothing else keeps the machine busy
    ensure
      beating&.kill
    end

    it "runs on after a signal whose handler just returns" do
      caught = 0
      old = trap("USR1") { caught += 1 }
      pid = Process.pid
      sender = Thread.new { 5.times { sleep 0.02; Process.kill("USR1", pid) } }
      numbers = (1..2000).pmap(backend:) do |x|
        n = 0
        (x * 20 % 3000).times { |i| n = (n * 3 + i) % 1_000_003 }
        n
      end
      sender.join
      expect(numbers.size).to eq(2000)
      expect(caught).to be > 0
    ensure
      trap("USR1", old || "DEFAULT")
    end
  end

  # While objects are made, grouped, sorted and scanned. Nothing was written yet.
  describe "with much to do around the kernel" do
    # With IKRA_EXHAUSTIVE=1 each is interrupted a thousand times.
    many = ENV["IKRA_EXHAUSTIVE"] == "1"
    times = many ? 1000 : 12
    count = many ? 20_000 : 60_000
    actors = Array.new(count) { |i| Interrupts::Actor.new(i) }
    numbers = Array.new(count) { |i| (i * 7919) % 100_003 }
    array = Ikra::MDArray.new(numbers * 8)
    operations = {
      "makes objects" => -> { (0...count).pmap(backend: :cpu) { |i| Interrupts::Made.new(i) } },
      "makes arrays" => -> { (0...count).pmap(backend: :cpu) { |i| [i, i] } },
      "makes Floats that are objects" => -> { (0...4 * count).pmap(backend: :cpu) { |i| i * 1e-300 } },
      "writes objects" => -> { actors.peach(backend: :cpu) { |actor| actor.steps += 1 } },
      "writes objects that it makes" => -> { actors.peach(backend: :cpu) { |actor| actor.next = Interrupts::Made.new(actor.steps + 1) } },
      "groups" => -> { numbers.pgroup_by(backend: :cpu) { |i| i } },
      "sorts" => -> { numbers.psort_by(backend: :cpu) { |i| -i } },
      "sorts an MDArray" => -> { array.sort },
      "makes a list of an MDArray" => -> { (array * 1e-300).to_a },
      "makes an MDArray" => -> { Ikra::MDArray.new(numbers) },
      "looks at objects, Strings and arrays" => -> { actors.pmap(backend: :cpu) { |actor| actor.name.size + actor.list.size + actor.start } },
      "compiles a block that is new" => -> { numbers.pmap(backend: :cpu, &eval("proc { |x| x + #{Interrupts.next_number} }")) },
      "counts" => -> { numbers.ptally },
      "leaves out what is there twice" => -> { numbers.puniq },
      "adds up" => -> { numbers.pscan(:+) },
      "is a chain" => -> { numbers.plazy.map { |i| i * 2 }.select { |i| i % 3 == 0 }.to_a },
      "is in a scope" => -> { Ikra.resident(actors) { 2.times { actors.peach(backend: :cpu) { |actor| actor.steps += 1 } } } }
    }

    # All objects have the same number of steps, and values that belong together were written together.
    consistent = lambda do
      first = actors.first.steps - actors.first.start
      links = actors.map { |actor| actor.next ? 1 : 0 }.uniq.size
      actors.all? { |actor| actor.steps - actor.start == first } && links == 1
    end

    around do |example|
      old = trap("USR1") { raise Interrupts::Stop }
      example.run
    ensure
      trap("USR1", old || "DEFAULT")
    end

    operations.each do |name, operation|
      it "#{name}, or changes nothing, whenever it is interrupted", exhaustive: many do
        operation.call
        whole = Process.clock_gettime(Process::CLOCK_MONOTONIC).then { |begun| operation.call && Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun }
        stopped = 0
        times.times do |nth|
          target = Thread.current
          delay = rand * whole
          # By another thread, and by a signal.
          interrupt = nth.even? ? -> { target.raise(Interrupts::Stop) } : -> { Process.kill("USR1", Process.pid) }
          thread = Thread.new { sleep(delay) && interrupt.call }
          begin
            operation.call
            thread.join && sleep(60)
          rescue Interrupts::Stop
            stopped += 1
          end
          thread.join
          expect(consistent.call).to be(true)
        end
        expect(stopped).to eq(times)
        operation.call
        expect(consistent.call).to be(true)
      end
    end

    # A conversion that fails names the class, and an interrupt that arrives in `to_s` is lost with the failure.
    it "asks no class for its name after a section in a scope" do
      named = []
      trace = TracePoint.new(:c_call) { |point| named << point.self if point.method_id == :to_s }
      operation = operations["is in a scope"]
      operation.call
      trace.enable { operation.call }
      expect(named).to eq([])
    end

    # Objects are scanned with the GVL held. Other threads run only when that ends for them.
    { "another thread" => ->(target) { target.raise(Interrupts::Stop) }, "a signal" => ->(_) { Process.kill("USR1", Process.pid) } }.each do |who, interrupt|
      it "ends soon for #{who} while it looks at objects" do
        bodies = Array.new(200_000) { |i| Interrupts::Actor.new(i) }
        operation = -> { bodies.shuffle.pmap(backend: :cpu) { |actor| actor.name.size + actor.list.size + actor.start } }
        operation.call
        begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        operation.call
        whole = Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun
        target, due = Thread.current, nil
        thread = Thread.new do
          due = Process.clock_gettime(Process::CLOCK_MONOTONIC) + whole / 5
          sleep whole / 5
          interrupt.call(target)
        end
        Thread.pass until due
        expect { operation.call && sleep }.to raise_error(Interrupts::Stop)
        # About 30 ms, on an idle machine.
        expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - due).to be < [0.25, whole * 0.6].max
        thread.join
      end
    end

    it "ends soon while it makes objects" do
      operation = -> { (0...400_000).pmap(backend: :cpu) { |i| Interrupts::Made.new(i) } }
      target, sent = Thread.current, nil
      thread = Thread.new { sleep 0.15; sent = Process.clock_gettime(Process::CLOCK_MONOTONIC); target.raise(Interrupts::Stop) }
      expect { operation.call && sleep }.to raise_error(Interrupts::Stop)
      # About 20 ms, on an idle machine. All of it takes 300 to 2000 ms.
      expect(Process.clock_gettime(Process::CLOCK_MONOTONIC) - sent).to be < 0.25
      thread.join
    end
  end

  it "is stopped by Ctrl-C" do
    program = <<~RUBY
      class Endless
        attr_reader :n
        def initialize = @n = 0
        def run = (@n += 1 while true)
      end
      list = [Endless.new]
      begin
        fork { sleep 0.7; Process.kill("INT", Process.ppid) }
        list.peach { |x| x.run }
      rescue Interrupt
        puts "interrupted, n is \#{list.first.n}"
      end
    RUBY
    expect(run_ruby(program, seconds: 20)).to eq("interrupted, n is 0\n")
  end

  it "is stopped by Ctrl-C while another thread lives" do
    program = <<~RUBY
      numbers = [1, 2, 3]
      Thread.new { sleep 0.3; Process.kill("INT", Process.pid); sleep }
      begin
        numbers.peach(backend: :cpu) { |x| x += 1 while x > 0 }
      rescue Interrupt
        puts "interrupted"
      end
      p numbers.pmap(backend: :cpu) { |x| x + 1 }
    RUBY
    expect(run_ruby(program, seconds: 20)).to eq("interrupted\n[2, 3, 4]\n")
  end

  it "ends though signals whose handler just returns keep coming" do
    program = <<~RUBY
      class Counter
        attr_reader :steps
        def initialize = @steps = 0
        def go(limit)
          i = 0
          while i < limit
            i += 1
            @steps = i & 0xff
          end
        end
      end
      handled = 0
      trap("USR1") { handled += 1 }
      Thread.new { loop { Process.kill("USR1", Process.pid); sleep 0.01 } }
      counters = Array.new(4) { Counter.new }
      counters.peach(backend: :cpu) { |counter| counter.go(100_000_007) }
      p counters.map(&:steps), handled.positive?
    RUBY
    expect(run_ruby(program, seconds: 60)).to eq("#{[100_000_007 & 0xff] * 4}\ntrue\n")
  end

  # Ruby raises what waits at the end of any method that is called, also of one in C that C calls.
  describe "that was never run before" do
    numbers = [1, 2, 3, 4, 5]
    points = Array.new(3) { |i| Interrupts::Actor.new(i) }
    blocks = {
      "that computes" => [-> { numbers }, "proc { |x| x + NUMBER }", nil],
      "that looks at objects and constants" => [-> { points }, "proc { |x| x.name.size + x.list.size + Float::DIG + NUMBER }", nil],
      "that is of another encoding" => [-> { numbers }, "# encoding: euc-jp\nproc { |x| x + NUMBER } # \xa4\xa2".dup.force_encoding("EUC-JP"), nil],
      "that calls a method that is not there" => [-> { numbers }, "proc { |x| [x, nil][x % 2].fdiv(NUMBER) }", NoMethodError],
      "that raises what shows a value" => [-> { numbers }, "proc { |x| Interrupts::FEW.fetch(x) + NUMBER }", KeyError],
      "that cannot be compiled" => [-> { numbers }, "proc { |x| `ls` + NUMBER.to_s }", Ikra::CompileError]
    }

    # Calls +section+, and +arrive+ where the method ends that is the given one of those that end.
    def arriving(nth, arrive, section)
      ended, thread = 0, Thread.current
      arrives = TracePoint.new(:c_return, :return, :b_return) do |event|
        # where Ruby makes an exception ready it looks at nothing that waits
        next if Thread.current != thread || %i[backtrace exception].include?(event.method_id)

        ended += 1
        arrive.call if ended == nth
      end
      arrives.enable
      section.call
    ensure
      arrives.disable
    end

    blocks.each do |what, (list, text, raises)|
      it "raises what arrives while it finds and compiles a block #{what}" do
        list = list.call
        arrivals = 0
        (1..).each do |nth|
          arrived = Interrupts::Arrived.new("at #{nth}")
          block = eval(text.gsub("NUMBER", Interrupts.next_number.to_s))
          begin
            arriving(nth, -> { raise arrived }, -> { list.pmap(backend: :cpu, &block) })
            ended = true
          rescue Interrupts::Arrived => e
            expect(e).to equal(arrived)
            arrivals += 1
          rescue StandardError => e
            expect(e).to be_a(raises)
            ended = true
          end
          expect(arrived.backtrace).to be_nil if ended
          break if ended
        end
        expect(arrivals).to be > 150
      end
    end

    ["proc { |x| x + NUMBER }", "proc { |x| `ls` + NUMBER.to_s }"].each do |text|
      it "ends a thread that is killed while it finds and compiles #{text}" do
        killed = (1..).find_index do |nth|
          block = eval(text.gsub("NUMBER", Interrupts.next_number.to_s))
          section = lambda do
            numbers.pmap(backend: :cpu, &block)
          rescue Ikra::CompileError
            nil
          end
          was_killed = false
          thread = Thread.new do
            arriving(nth, -> { (was_killed = true) && Thread.current.kill }, section)
            :not_killed
          end
          expect(thread.value).to eq(was_killed ? nil : :not_killed)
          !was_killed
        end
        expect(killed).to be > 150
      end
    end
  end

  # what is looked up by name is looked up by Ruby code, at whose end an interrupt that waits is raised
  it "finds whatever the first section of a process needs, where an interrupt waits" do
    program = <<~RUBY
      def Object.const_get(name, *) = name.to_s.start_with?("Ikra") ? raise(Interrupt, "it waited") : super
      Point = Struct.new(:x, :next)
      points = Array.new(20) { |i| Point.new(i, nil) }
      points.each_cons(2) { |a, b| a.next = b }
      puts Ikra.explain { points.peach(backend: :cpu) { |point| point.x += 1 } }.sections.first.code.empty?
      Ikra.resident(points) { points.peach(backend: :cpu) { |point| point.x += 1 } }
      p points.pmap(backend: :cpu) { |point| point.next ? point.next.x : 0 }.sum
    RUBY
    expect(run_ruby(program)).to eq("false\n#{(3..21).sum}\n")
  end
end
