# frozen_string_literal: true

require "json"
require "fileutils"
require "rbconfig"
require "time"

# The common part of every benchmark. It compares results before it times anything, warms up, takes medians, records the
# machine, and keeps the numbers as JSON under benchmark/results/.
#
#   bench = Harness.new("traffic")
#   actors = bench.size(:actors, 1_000_000, tiny: 500)          # ACTORS=20000 in the environment overrides
#   bench.same("cpu", expected, bench.bits(result))             # ends the program where they differ
#   timing = bench.time("cpu", runs: 5) { work }                # refuses what was not compared
#   bench.target("cpu against C", c.median / timing.median, at_least: 0.9)
#   bench.finish
#
# SIZE=tiny makes every size tiny and every timing a single run. It shows that a benchmark still works, and writes no
# results. IKRA_BENCH_TINY=1 does the same. SIZE=small is for benchmarks that support it. The report leaves out what
# they write then.
class Harness
  RESULTS = File.expand_path("results", __dir__)
  PYTHON = File.expand_path("../tmp/benchmark/python/bin/python3", __dir__)

  # Seconds of each run.
  Timing = Struct.new(:runs) do
    def median
      sorted = runs.sort
      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
    end

    def to_h
      { median: median, min: runs.min, max: runs.max, runs: runs }
    end
  end

  SCALES = %i[tiny small normal].freeze

  # The scale of all sizes, from the environment.
  def self.scale
    return :tiny if ENV["IKRA_BENCH_TINY"] == "1"

    scale = ENV.fetch("SIZE", "normal").to_sym
    SCALES.include?(scale) ? scale : abort("SIZE: no #{scale}: there are #{SCALES.join(", ")}")
  end

  def self.tiny?
    scale == :tiny
  end

  # The names among +known+ that the environment chooses; without the variable, all. Ends the program where it has other
  # names.
  def self.chosen(variable, known, separator: ",")
    names = ENV.fetch(variable, "").split(separator).map(&:strip).reject(&:empty?)
    unknown = names - known
    return names.empty? ? known : names if unknown.empty?

    abort "#{variable}: no #{unknown.map { |name| "\"#{name}\"" }.join(", no ")}: there are #{known.map { |name| "\"#{name}\"" }.join(" ")}, one after the other with a #{separator} between"
  end

  # Seconds in a suitable unit.
  def self.show(seconds)
    unit, factor = [["s", 1], ["ms", 1e3], ["µs", 1e6], ["ns", 1e9]].find { |_, per| seconds * per >= 1 } || ["ns", 1e9]
    format("%.3f %s", seconds * factor, unit)
  end

  # small: whether the benchmark has sizes for SIZE=small.
  def initialize(name, keep: !self.class.tiny?, out: $stdout, small: false)
    @name = name
    @keep = keep
    @out = out
    @compared = {}
    @scale = self.class.scale == :small && !small ? :normal : self.class.scale
    @ends = clock + Float(ENV.fetch("BUDGET", "1e9"))
    @record = { benchmark: name, machine: machine, size: @scale, sizes: {}, compared: [], timings: {}, values: {}, targets: [] }
    heading
  end

  # The scale of all sizes: :tiny, :small or :normal.
  attr_reader :scale

  def tiny?
    @scale == :tiny
  end

  # Whether the BUDGET is spent. Then nothing new begins.
  def spent?
    clock > @ends
  end

  # A size by name: from the environment, else the default, or +tiny+ in tiny mode.
  def size(name, default, tiny:)
    value = Integer(ENV.fetch(name.to_s.upcase, tiny? ? tiny : default))
    @record[:sizes][name] = value
    say "#{name}: #{value}"
    value
  end

  # The seed of all inputs: SEED, else a new one for each run.
  def seed
    @seed ||= Integer(ENV.fetch("SEED") { Random.new_seed % 2**32 }).tap do |seed|
      @record[:seed] = seed
      say "seed: #{seed}"
    end
  end

  # The CPU backend, and the GPU backend where there is a GPU. IKRA_BENCH_BACKENDS=cpu,reference overrides this.
  def backends
    wanted = ENV["IKRA_BENCH_BACKENDS"]
    return wanted.split(",").map(&:to_sym) if wanted

    gpu? ? %i[cpu cuda] : %i[cpu]
  end

  def gpu?
    !machine[:gpu].nil?
  end

  # Floats as bits, so that equality means the same bits.
  def bits(floats)
    floats.pack("d*")
  end

  # Ends the program unless +actual+ equals +expected+. Every name that is timed must have passed this.
  def same(name, expected, actual)
    unless expected == actual
      at = expected.size == actual.size && first_difference(expected, actual)
      abort "#{@name}: #{name} has another result#{" (first difference at #{at})" if at}: nothing is timed"
    end
    @compared[name] = true
    @record[:compared] << name
    say "same result: #{name}"
  end

  # Times the block: +warmup+ runs that do not count, then +runs+ that do. +setup+ runs before each, untimed. A block
  # with a parameter gets what +setup+ returned.
  def time(name, runs: 5, warmup: 1, setup: nil)
    refuse_unequal(name)
    runs, warmup = 1, 0 if tiny?
    seconds = (warmup + runs).times.map do
      given = setup&.call
      GC.start
      started = clock
      yield given
      clock - started
    end
    timed(name, seconds.drop(warmup))
  end

  # Keeps seconds that were measured elsewhere: by a program in C, or as a phase of a profile.
  def timed(name, seconds)
    refuse_unequal(name)
    timing = Timing.new(seconds)
    @record[:timings][name] = timing.to_h
    say format("%-52s %s", name, show(timing.median)) + (seconds.size > 1 ? "   (#{show(seconds.min)} to #{show(seconds.max)})" : "")
    timing
  end

  # For timings without a result to compare: the record says why.
  def incomparable(name, reason)
    @compared[name] = true
    @record[:compared] << "#{name}: not compared, #{reason}"
  end

  def value(name, number, unit)
    @record[:values][name] = { value: number, unit: unit }
    say format("%-52s %s %s", name, number.is_a?(Float) ? number.round(3) : number, unit)
    number
  end

  # Any other numbers, kept under a name.
  def record(group, name, numbers)
    (@record[group.to_sym] ||= {})[name] = numbers
  end

  # A number that the project promises. In tiny mode it is shown, but nothing is promised.
  def target(name, number, unit: "×", at_least: nil, at_most: nil)
    met = (at_least.nil? || number >= at_least) && (at_most.nil? || number <= at_most)
    @record[:targets] << { name: name, value: number, unit: unit, at_least: at_least, at_most: at_most, met: met }.compact
    number
  end

  def note(text)
    (@record[:notes] ||= []) << text
    say text
  end

  # Shows the targets, writes the record, and returns the file's path.
  def finish
    show_targets
    return unless @keep

    FileUtils.mkdir_p(RESULTS)
    place = machine[:gpu] ? machine[:gpu][/NVIDIA (.+?),/, 1].downcase.tr(" ", "-") : "#{machine[:cores]}cores"
    path = File.join(RESULTS, "#{@name}#{"-#{@scale}" unless @scale == :normal}-#{Time.now.utc.strftime("%Y%m%d-%H%M%S")}-#{place}.json")
    File.write(path, "#{JSON.pretty_generate(@record)}\n")
    say "\n#{path}"
    path
  end

  # Runs another process of this benchmark, which prints one JSON object as its last line. +cores+ restricts it to so
  # many cores.
  def child(script, *arguments, ruby: [], cores: nil, env: {})
    command = [RbConfig.ruby, *ruby, "-I#{ikra}", script, *arguments.map(&:to_s)]
    command = ["taskset", "--cpu-list", cpus.first(cores).join(","), *command] if cores && tool?("taskset")
    output = IO.popen(env, command, &:read)
    abort "#{@name}: #{File.basename(script)} #{arguments.join(" ")} failed" unless $?.success?
    JSON.parse(output.lines.last, symbolize_names: true)
  end

  # Options that turn YJIT on, where this Ruby has it.
  def yjit
    @yjit ||= system(RbConfig.ruby, "--yjit", "-e", "", out: File::NULL, err: File::NULL) ? ["--yjit"] : []
  end

  # Runs +command+ where the sources are newer than its target. Returns false where the tool is missing or fails.
  def build(target, sources, *command)
    return false unless tool?(command.first)
    return true if File.exist?(target) && sources.all? { |source| File.mtime(source) < File.mtime(target) }

    FileUtils.mkdir_p(File.dirname(target))
    system(*command) || abort("#{@name}: #{command.join(" ")} failed")
  end

  def tool?(name)
    ENV.fetch("PATH").split(File::PATH_SEPARATOR).any? { |directory| File.executable?(File.join(directory, name)) }
  end

  # A Python for benchmarks in Python. BENCHMARK_PYTHON names it; else it is that of `rake benchmark:python`, else the
  # system's. nil where there is none.
  def python
    @python ||= [ENV["BENCHMARK_PYTHON"], PYTHON].compact.find { |path| File.executable?(path) } || ("python3" if tool?("python3"))
  end

  # The folder from which this process loaded Ikra.
  def ikra
    $LOADED_FEATURES.find { |path| path.end_with?("/ikra.rb") }.then { |path| path ? File.dirname(path) : File.expand_path("../lib", __dir__) }
  end

  # The processors that this process may use.
  def cpus
    list = status("/proc/self/status")[/^Cpus_allowed_list:\s*(\S+)/, 1] or return [0]
    list.split(",").flat_map { |range| Range.new(*range.split("-").values_at(0, -1).map(&:to_i)).to_a }
  end

  private

  def clock
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def refuse_unequal(name)
    abort "#{@name}: #{name} was never compared with anything" unless @compared[name] || @compared.keys.any? { |key| name.start_with?("#{key}:") }
  end

  def first_difference(expected, actual)
    return expected.each_byte.zip(actual.each_byte).index { |one, other| one != other }.then { |byte| "byte #{byte}" } if expected.is_a?(String)

    expected.zip(actual).index { |one, other| one != other }.then { |index| "index #{index}" } if expected.is_a?(Array)
  end

  def machine
    @machine ||= {
      cpu: status("/proc/cpuinfo")[/^model name\s*:\s*(.+)/, 1], cores: cpus.size,
      memory_gib: (status("/proc/meminfo")[/^MemTotal:\s*(\d+)/, 1].to_i / 1024.0 / 1024.0).round(1),
      gpu: output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")&.lines&.first&.chomp,
      nvcc: output_of("nvcc", "--version")&.slice(/release [\d.]+/),
      gcc: output_of("gcc", "-dumpfullversion"), system: output_of("uname", "-sr"),
      load: status("/proc/loadavg")[/^\S+/]&.to_f, ruby: RUBY_DESCRIPTION, yjit: (defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?) ? true : false,
      commit: output_of("git", "-C", __dir__, "describe", "--always", "--dirty", "--abbrev=12"), date: Time.now.utc.iso8601
    }
  end

  def status(path)
    File.exist?(path) ? File.read(path) : ""
  end

  def output_of(*command)
    return unless tool?(command.first)

    output = IO.popen(command, err: File::NULL, &:read)
    output.chomp if $?.success? && !output.empty?
  end

  def heading
    say "#{@name}#{" (tiny: the numbers mean nothing)" if tiny?}"
    say "  it has no sizes for SIZE=small: they are normal" if self.class.scale == :small && @scale == :normal
    machine.each { |key, fact| say "  #{key}: #{fact}" unless fact.nil? }
  end

  def show_targets
    return if @record[:targets].empty?

    say "\nTargets"
    @record[:targets].each do |target|
      wanted = target[:at_least] ? "at least #{target[:at_least]}" : "at most #{target[:at_most]}"
      mark = tiny? ? "-" : (target[:met] ? "met" : "MISSED")
      say format("  %-64s %10.3f %-3s (%s)  %s", target[:name], target[:value], target[:unit], wanted, mark)
    end
  end

  def show(seconds) = self.class.show(seconds)

  def say(text)
    @out.puts text
    @out.flush
  end
end
