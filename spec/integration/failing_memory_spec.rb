# frozen_string_literal: true

require "tmpdir"

# Allocations that fail one after the other, and limits of address space.
RSpec.describe "Memory that cannot be had" do
  # Programs whose memory grows with their data.
  operations = <<~'RUBY'
    COUNT = 20_000
    M = Ikra::MDArray
    class Body
      attr_accessor :x, :k

      def initialize(x, k)
        @x = x
        @k = k
      end
    end
    FLOATS = Array.new(COUNT) { |i| ((i * 7919) % COUNT) * 0.5 }
    INTEGERS = Array.new(COUNT) { |i| (i * 7919) % COUNT }
    STRINGS = Array.new(COUNT) { |i| "s#{i % 100} and more" }
    BODIES = Array.new(COUNT) { |i| Body.new(i * 0.5, i % 7) }
    GROUPS = Array.new(COUNT) { |i| [i, i + 1] }
    A = M.new(100, 200) { |i, j| i * 0.5 + j }
    B = M.new(200, 100) { |i, j| i - j * 0.25 }
    OPERATIONS = {
      pmap: -> { FLOATS.pmap { |x| x * 2 }.sum },
      texts: -> { FLOATS.pmap { |x| x > 5 ? "a" : "b" }.size },
      strings: -> { STRINGS.pmap { |s| s.size }.sum },
      pairs: -> { FLOATS.pmap { |x| [x, 1] }.size },
      arrays: -> { GROUPS.pmap { |x| x[0] + x[1] }.sum },
      made: -> { FLOATS.pmap { |x| Body.new(x, 1) }.sum(&:k) },
      objects: -> { BODIES.pmap { |b| b.x + b.k }.sum },
      write_back: -> { BODIES.peach { |b| b.x += 1.0 }; BODIES.peach { |b| b.x -= 1.0 }; BODIES.sum(&:x) },
      accumulated: -> { s = 0; BODIES.peach { |b| s += b.k }; s },
      captured: -> { (0...COUNT).pmap { |i| INTEGERS[i] + FLOATS[i] + STRINGS[i].size }.sum },
      psort: -> { FLOATS.psort.first(3) },
      psort_by: -> { BODIES.psort_by { |b| -b.k }.first.k },
      pgroup_by: -> { INTEGERS.pgroup_by { |x| x % 1000 }.size },
      ptally: -> { INTEGERS.pmap { |x| x % 100 }.ptally.size },
      puniq: -> { FLOATS.puniq { |x| x.to_i % 77 }.size },
      pselect: -> { FLOATS.pselect { |x| x > 100 }.size },
      pflat_map: -> { INTEGERS.pflat_map { |x| [x, x] }.size },
      psum: -> { FLOATS.psum { |x| x + 1 } },
      chain: -> { FLOATS.plazy.map { |x| x + 1 }.select { |x| x > 7 }.to_a.size },
      chains: -> { FLOATS.pmap { |x| x + 1 }.pselect { |x| x > 3 }.psort_by { |x| -x }.psum },
      resident: -> { Ikra.resident(BODIES) { 2.times { BODIES.peach { |b| b.k += 7; b.k -= 7 } }; BODIES[3].k } },
      array: -> { M.new(COUNT) { |i| i * 0.5 }.sum },
      sort: -> { [A.flatten.sort[5], A.sort(axis: 1)[5, 5]] },
      map: -> { [A.map { |x| x + 1 }.sum, A.dup.map! { |x| x + 1 }.sum, ((A * 2 + 1) / 3).sum] },
      product: -> { A.dot(B)[3, 3] },
      along: -> { [A.sum(axis: 1).to_a.size, A.argmax(axis: 0).to_a.size] },
      lists: -> { [A.to_a.size, A.to_bytes.size, A.t.to_a.size, M[*FLOATS].size] },
      chosen: -> { [A.select { |x| x > 50 }.size, A[A > 50].size, A.flatten.cumsum[5]] },
      written: -> { a = M.zeros(COUNT, dtype: :i64); INTEGERS.pmap { |x| a[x] += 1; x > 5 ? "a" : "b" }.size + a.sum },
    }.freeze
  RUBY

  def failing(folder, program, **options)
    # An exception leaves a lock that Ruby then waits to see released, for ever: also in a program without Ikra.
    skip "Ruby 3.3 hangs where it finds no memory for an object" if RUBY_VERSION.start_with?("3.3.")

    library = File.join(folder, "failing_memory.so")
    source = File.expand_path("../support/failing_memory.c", __dir__)
    system("gcc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl", exception: true) unless File.exist?(library)
    environment = { "LD_PRELOAD" => library, "IKRA_BACKEND" => "cpu", "IKRA_CACHE" => folder }
    run_ruby(<<~RUBY, environment:, **options)
      require "fiddle"
      C = Fiddle::Handle::DEFAULT
      FAIL = Fiddle::Function.new(C["fail_nth"], [Fiddle::TYPE_LONG, Fiddle::TYPE_INT], Fiddle::TYPE_VOID)
      HOLD = Fiddle::Function.new(C["fail_end"], [], Fiddle::TYPE_LONG)
      #{program}
    RUBY
  end

  before do
    skip "there is no gcc" unless system("gcc", "--version", out: File::NULL, err: File::NULL)
    skip "only where a library can be loaded in front" unless RUBY_PLATFORM.include?("linux")
  end

  around { |example| Dir.mktmpdir("ikra") { |folder| (@folder = folder) && example.run } }

  it "is a NoMemoryError, whichever allocation fails, and everything works afterwards" do
    output = failing(@folder, <<~RUBY, seconds: 600)
      #{operations}
      failures = 0
      OPERATIONS.each do |name, operation|
        right = operation.call
        operation.call
        [0, 1].each do |all|
          (1..).each do |n|
            FAIL.call(n, all)
            begin
              got = operation.call
            rescue NoMemoryError
              got = nil
            end
            failed = HOLD.call
            puts "\#{name}, \#{n}th failed, \#{all}: \#{got.inspect}" unless got.nil? || got == right
            again = operation.call
            puts "\#{name}, \#{n}th failed, \#{all}, then \#{again.inspect}" unless again == right
            break if failed.zero?

            failures += failed
          end
        end
      rescue StandardError => e
        puts "\#{name}: \#{e.class}: \#{e.message}"
      end
      puts failures > 100
    RUBY
    expect(output).to eq("true\n")
  end

  it "is so while a block is compiled, too" do
    output = failing(@folder, <<~RUBY, seconds: 600)
      #{operations}
      [A, B].each(&:sync)
      OPERATIONS.values_at(:pmap, :strings, :made, :psort_by, :sort, :chains).each_with_index do |operation, at|
        (1..).each do |n|
          child = fork do
            FAIL.call(n, n % 2)
            begin
              operation.call
            rescue NoMemoryError
              # as it should
            end
            failed = HOLD.call
            operation.call
            exit!(failed.zero? ? 0 : 1)
          rescue Exception => e
            puts e.message
            exit!(2)
          end
          status = Process.wait2(child)[1]
          puts "\#{at}, \#{n}th: \#{status}" unless [0, 1].include?(status.exitstatus)
          break unless status.exitstatus == 1
        end
      end
      puts "done"
    RUBY
    # Ruby 3.4 ends a process itself where it has no memory for the exception.
    output = output.gsub("[FATAL] failed to allocate memory\n", "")
    expect(output).to eq("done\n")
  end

  it "is a NoMemoryError of much data, too, where few addresses are left, and nothing has changed" do
    output = run_ruby(<<~'RUBY', environment: { "IKRA_BACKEND" => "cpu", "MALLOC_ARENA_MAX" => "1" }, seconds: 300)
      def addresses = File.read("/proc/self/statm").split[0].to_i * 4096 >> 20
      class Body
        attr_accessor :x, :name

        def initialize(i)
          @x = i
          @name = "body #{i}"
        end
      end
      numbers = Array.new(1_000_000) { |i| (i * 7919) % 1_000_003 }
      bodies = Array.new(100_000) { |i| Body.new(i) }
      array = Ikra::MDArray.new(numbers)
      works = lambda do
        [3, 1, 2].psort_by { |x| -x } == [3, 2, 1] && Ikra::MDArray.new([1, 2]).sum == 3 && bodies.first(10).pmap { |body| body.x }.sum == 45
      end
      works.call
      Array.new(20_000, 1.0).pmap { |x| x + 1 }
      operations = {
        sort: -> { array.sort.size }, psort_by: -> { numbers.psort_by { |x| -x }.size }, pgroup_by: -> { numbers.pgroup_by { |x| x % 1000 }.size },
        strings: -> { bodies.pmap { |body| body.name.size }.size }, list: -> { (array * 1e-300).to_a.size },
        written: -> { bodies.peach { |body| body.x += body.name.size }.each { |body| body.x -= body.name.size }.size }
      }
      failed = 0
      operations.to_a.product([2, 8, 32]).each do |(name, operation), more|
        child = fork do
          Process.setrlimit(:AS, addresses + more << 20)
          got = begin
            operation.call
          rescue NoMemoryError
            0
          end
          exit!(!works.call ? 2 : got.zero? ? 3 : 0)
        end
        status = Process.wait2(child).last
        failed += 1 if status.exitstatus == 3
        # 1: Ruby itself says that its memory ended a second time, and ends the process.
        puts "#{name} with #{more} MiB: #{status}" unless [0, 1, 3].include?(status.exitstatus)
      end
      puts failed > 3 || failed
    RUBY
    expect(output.gsub("[FATAL] failed to allocate memory\n", "")).to eq("true\n")
  end

  describe "for code" do
    evaluated = <<~'RUBY'
      def addresses = File.read("/proc/self/statm").split[0].to_i * 4096 >> 20
      def run(number)
        given = eval("[1.0, 2.0].pmap { |x| x * #{number} + 1 }")
        given == [number + 1.0, 2.0 * number + 1] or raise "#{number}: #{given}"
      end
    RUBY

    it "is as much as programs have that are remembered" do
      output = run_ruby(<<~RUBY, environment: { "IKRA_BACKEND" => "cpu", "MALLOC_ARENA_MAX" => "1" }, seconds: 300)
        #{evaluated}
        100.times { |i| run(i) }
        Array.new(100_000) { 1.0 }.pmap { |x| x + 1 }
        before = addresses
        Process.setrlimit(:AS, before + 100 << 20)
        2000.times { |i| run(i + 100) }
        puts addresses - before < 80 || addresses - before
      RUBY
      expect(output).to eq("true\n")
    end

    it "is had again of programs that do not run where there are few addresses" do
      output = run_ruby(<<~RUBY, environment: { "IKRA_BACKEND" => "cpu", "MALLOC_ARENA_MAX" => "1" }, seconds: 300)
        #{evaluated}
        # slots and memory that the 100 programs in Ruby may have, whatever code takes: Ruby looks for no garbage here
        run(0)
        strings = Array.new(80_000) { "a string that is no part of its object" * 20 }
        Process.setrlimit(:AS, addresses + 1 << 20)
        strings.clear
        GC.start
        100.times { |i| run(i) }
        puts "done"
      RUBY
      expect(output).to eq("done\n")
    end
  end
end
