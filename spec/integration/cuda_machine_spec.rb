# frozen_string_literal: true

RSpec.describe "A machine with a GPU" do
  before { skip "no g++ on the PATH" unless system("g++", "--version", out: File::NULL, err: File::NULL) }

  around { |example| Dir.mktmpdir("ikra-machine") { |folder| (@folder = folder) && example.run } }

  program = <<~RUBY
    class Cell
      attr_accessor :n
      def initialize(n) = @n = n
      def step = @n = @n * 3 % 1009
    end
    cells = Array.new(100) { |i| Cell.new(i) }
    cells.peach(5, backend: :cuda) { |cell| cell.step }
    p cells.sum(&:n)
  RUBY
  expected = "#{(0...100).sum { |i| i * 243 % 1009 }}\n"

  def machine(**options) = StandIn.environment(@folder, **options)

  # The number of kernels that NVRTC compiled.
  def compiled = File.exist?(File.join(@folder, "log")) ? File.readlines(File.join(@folder, "log")).size : 0

  def entries = Dir[File.join(@folder, "cache/**/*.kernel")]

  it "runs on it, and keeps what was compiled for the next process" do
    2.times { expect(run_ruby(program, environment: machine, folder: @folder)).to eq(expected) }
    expect(compiled).to eq(1)
    expect(entries.size).to eq(1)
    expect(entries.map { |path| File.stat(path).mode & 0o077 }).to eq([0])
  end

  it "compiles no kernels to sort, group or choose few elements" do
    expect(run_ruby(<<~RUBY, environment: machine, folder: @folder)).to eq("true\n")
      list = Array.new(1000) { |i| i * 7 % 1000 }
      options = { backend: :cuda }
      found = [list.psort_by(**options) { |x| -x }, list.pgroup_by(**options) { |x| x % 3 }, list.pselect(**options) { |x| x > 9 }, list.pmin_by(**options) { |x| x }]
      p found == [list.sort_by { |x| -x }, list.group_by { |x| x % 3 }, list.select { |x| x > 9 }, list.min_by { |x| x }]
    RUBY
    expect(compiled).to eq(4)
  end

  {
    "corrupt" => ->(path) { File.binwrite(path, "no kernel at all") },
    "empty" => ->(path) { File.binwrite(path, "") },
    "truncated" => ->(path) { File.truncate(path, File.size(path) / 2) },
    "tampered with" => ->(path) { File.binwrite(path, "\xff".b, File.size(path) / 2) },
    "written by others" => ->(path) { File.chmod(0o666, path) }
  }.each do |state, change|
    it "compiles again what is #{state} in the cache, and never runs it" do
      expect(run_ruby(program, environment: machine, folder: @folder)).to eq(expected)
      entries.each(&change)
      expect(run_ruby(program, environment: machine, folder: @folder)).to eq(expected)
      expect(compiled).to eq(2)
      expect(run_ruby(program, environment: machine, folder: @folder)).to eq(expected)
    end
  end

  it "leaves nothing of a generated program to the next one in its process" do
    skip "the cases are in the words of Ruby 3.1" unless RUBY_VERSION.start_with?("3.1.")

    bridge = File.expand_path("../support/fuzz/bridge.rb", __dir__)
    first = File.join(@folder, "first.rb")
    File.write(first, <<~RUBY)
      # Seed 1, program 1.
      #
      # elements = [1, 2]
      # gives: [3, 6]

      THREE = 3

      def tripled(x) = x * THREE

      elements.pmap { |x| tripled(x) }
    RUBY
    second = File.join(@folder, "second.rb")
    File.write(second, <<~RUBY)
      # Seed 1, program 2.
      #
      # elements = [1, 2]
      # raises: NameError at line 6, index 0, tick 0: undefined local variable or method `tripled' for #<Object>

      elements.pmap { |x| tripled + x }
    RUBY
    command = [RbConfig.ruby, "--disable=gems", "-I#{File.expand_path("../../lib", __dir__)}", bridge, "cuda", first, second]
    verdicts = IO.popen(machine, command, err: File::NULL, &:readlines)
    expect(verdicts.map { |line| line.chomp.split("\t", 3) }).to eq([[first, "equal", ""], [second, "equal", ""]])
  end

  it "runs where the cache directory cannot be made or written" do
    file = File.join(@folder, "file")
    File.write(file, "")
    ["/proc/nowhere", File.join(file, "below"), "/sys"].each do |directory|
      expect(run_ruby(program, environment: machine.merge("IKRA_CACHE_DIR" => directory))).to end_with(expected)
    end
  end

  it "says once that the cache directory cannot be used, and says it to the doctor" do
    listening = "require 'logger'\nIkra.logger = Logger.new($stdout, formatter: ->(*, message) { \"warned: \#{message}\n\" })\n"
    more = "[1].pmap(backend: :cuda) { |x| x + 1 }\nIkra.doctor\n"
    output = run_ruby(listening + program + more, environment: machine.merge("IKRA_CACHE_DIR" => "/proc/nowhere"))
    expect(output.scan(/^warned: .*/)).to match([%r{\Awarned: Ikra: /proc/nowhere: .*; kernels are not kept on disk\z}])
    expect(output).to match(%r{^compiled kernels: /proc/nowhere: .*; kernels are not kept on disk$})
    expect(run_ruby("Ikra.doctor", environment: machine)).to include("compiled kernels: kept in #{@folder}/cache\n")
  end

  it "runs where many processes fill the cache at once" do
    results = Array.new(3) { Thread.new { run_ruby(program, environment: machine, folder: @folder) } }.map(&:value)
    expect(results).to eq([expected] * 3)
    expect(entries.size).to eq(1)
  end

  # A program that asks for CUDA, and then leaves the choice to Ikra, with enough work for a GPU.
  asking = <<~RUBY
    begin
      [1].pmap(backend: :cuda) { |x| x + 1 }
    rescue Ikra::DeviceError => e
      puts e.message.lines.first
    end
    counts = [0] * 5000
    (0...5000).peach(500, backend: :auto) { |i| counts[i] += i }
    p counts.sum
  RUBY

  {
    "has no GPU in it" => ["absent", /sees no GPU/],
    "has a driver that does not work" => ["broken", /installed but does not work/],
    "has a driver that is too old" => ["old", /CUDA 11\.4; Ikra needs 12\.0/]
  }.each do |state, (stand_in, message)|
    it "says so and runs on the CPU where it #{state}" do
      output = run_ruby(asking, environment: machine(state: stand_in))
      expect(output).to match(message).and end_with("#{500 * 5000 * 4999 / 2}\n")
    end
  end

  it "says so and runs on the CPU where the driver is no library, or lacks what a driver has" do
    # The loader passes over a file that is no library, and finds a working driver after it, if there is one.
    lines = Backends.present.include?(:cuda) ? 1 : 2
    broken = File.join(@folder, "lib")
    Dir.mkdir(broken)
    File.write(File.join(broken, "libcuda.so.1"), "not a library")
    output = run_ruby(asking, environment: machine(libraries: broken))
    expect(output.lines.size).to eq(lines)
    expect(output).to end_with("#{500 * 5000 * 4999 / 2}\n")

    File.write(File.join(broken, "stub.c"), "int cuInit(unsigned int flags) { return 999; }\n")
    File.delete(File.join(broken, "libcuda.so.1"))
    system("gcc", "-shared", "-fPIC", File.join(broken, "stub.c"), "-o", File.join(broken, "libcuda.so.1")) or raise "gcc failed"
    File.symlink("libcuda.so.1", File.join(broken, "libcuda.so"))
    output = run_ruby(asking, environment: machine(libraries: broken))
    expect(output.lines.size).to eq(2)
    expect(output).to end_with("#{500 * 5000 * 4999 / 2}\n")
  end
end
