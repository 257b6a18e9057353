# frozen_string_literal: true

# Arrays for which the host has no memory, in processes of their own.
RSpec.describe "The host's memory" do
  # The largest possible array, which is more than this machine has, or than the process may have.
  limited = <<~RUBY
    M = Ikra::MDArray
    M.new([1.0, 2.0]).map { |x| x + 1 }.sum
    addresses = File.read("/proc/self/statm").split[0].to_i * 4096
    Process.setrlimit(:AS, addresses + (12 << 30))
    def try
      yield
      puts "no error"
    rescue NoMemoryError => e
      puts e.message[/the host's memory: \\d+ bytes wanted|failed to allocate memory/] || e.message
    end
    SIDE = 60_000
  RUBY

  on_every_backend do |backend|
    # The interpreter takes long to fail, and GPUs have memory of their own.
    next unless backend == :cpu

    it "holds little but columns in a first call over many objects, and no list of them that only types needed" do
      skip "no /proc" unless File.exist?("/proc/self/clear_refs")
      expect(run_ruby(<<~RUBY, environment: { "IKRA_BACKEND" => backend.to_s })).to eq("true\ntrue\n")
        class Small
          def initialize(x) = @x = x
          def move = @x += 0.5
        end
        COUNT = 1_000_000
        memory = ->(name) { File.read("/proc/self/status")[/\#{name}:\s+(\d+)/, 1].to_i * 1024 }
        [Small.new(1.0)].peach(&:move)
        all = Array.new(COUNT) { |i| Small.new(i * 0.5) }
        GC.start
        GC.disable
        File.write("/proc/self/clear_refs", "5")
        before = memory.call("VmRSS")
        all.peach { |one| one.move }
        # a Float and an id for each
        p memory.call("VmHWM") - before < COUNT * 12 * 3
        require "objspace"
        holders = ObjectSpace.each_object.select { |object| Class.instance_method(:name).bind_call(Kernel.instance_method(:class).bind_call(object)) == "Ikra::Holder" }
        p holders.sum { |holder| ObjectSpace.memsize_of(holder) } < COUNT
      RUBY
    end

    it "is said to be too small for what does not fit, and nothing is lost" do
      output = run_ruby(<<~RUBY, environment: { "IKRA_BACKEND" => backend.to_s })
        #{limited}
        kept = M.new(1000) { |i| i * 0.5 }
        large = M.zeros(SIDE, SIDE)
        try { large[5, 5] = 1.0 }
        try { M.ones(SIDE, SIDE).sync }
        try { M.full(SIDE, SIDE, 1.5).sync }
        try { M.rand(SIDE, SIDE).sync }
        try { M.arange(SIDE * SIDE).sync }
        try { M.new(SIDE, SIDE) { |i, j| i + j }.sync }
        try { (large + 1).sync }
        try { large.map { |x| x + 1.0 }.sync }
        try { large.map! { |x| x + 1.0 }.sync }
        try { large.row(3).map! { |x| x + 1.0 } }
        try { large.fill(2.0).sync }
        try { large.to_a }
        try { large.to_bytes }
        try { large.select { |x| x < 1.0 } }
        try { large.flatten.sort }
        try { large.flatten.cumsum }
        try { large.sum(axis: 1).sync }
        try { (M[[1.0]].broadcast_to(SIDE, SIDE) + 1).sync }
        try { (0...SIDE * SIDE).pmap { |i| i * 0.5 } }
        p large[7, 7], kept.sum, Ikra.memory.values_at(:host, :kept).sum < 64 << 20
      RUBY
      lines = output.lines.map(&:chomp)
      expect(lines.last(3)).to eq(%w[0.0 249750.0 true])
      expect(lines[0...-3]).to all(match(/\A(the host's memory: \d+ bytes wanted|failed to allocate memory)\z/))
      expect(lines.size).to eq(19 + 3)
    end

    it "is that of arrays that nobody has any more, once the GC found them" do
      expect(run_ruby(<<~RUBY, environment: { "IKRA_BACKEND" => backend.to_s })).to eq("[[1.0, 20]]\n")
        #{limited}
        # untouched but for one element; five of them have more addresses than the process
        four = lambda do
          GC.disable
          Array.new(4) { M.zeros(300_000_000).tap { |array| array[5] = 1.0 }[5] }
        ensure
          GC.enable
        end
        p(Array.new(5) { Thread.new(&four).value }.flatten.tally.to_a)
      RUBY
    end

    it "is not had twice" do
      expect(run_ruby(<<~RUBY, environment: { "IKRA_BACKEND" => backend.to_s })).to eq("true\n3.0\n")
        M = Ikra::MDArray
        available = File.read("/proc/meminfo")[/MemAvailable:\\s*(\\d+)/, 1].to_i * 1024
        # each fits, and has memory when it is touched
        count = [available * 2 / 3 / 8, 4_000_000_000].min
        first = M.zeros(count)
        first[0] = 3.0
        held = [first]
        begin
          (available / (count * 8) + 1).times { held << M.zeros(count).tap { |array| array[0] = 1.0 } }
          p false
        rescue NoMemoryError => e
          p e.message.end_with?("bytes free")
        end
        p first[0]
      RUBY
    end
  end
end
