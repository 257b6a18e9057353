# frozen_string_literal: true

# Compares many generated programs with Ruby, in many processes, without building: it needs Ruby 3.1 and no cargo.
#
#   ruby spec/support/fuzz/many.rb FROM TO [SEED [PROCESSES]]
#
# runs the programs FROM ... TO (TO is excluded) of SEED (1). Each goes through Ikra (lib/ikra/ikra.so) on the backends
# named in IKRA_FUZZ_BRIDGE (`cpu`; `cpu,cuda` where there is a GPU; `none`). IKRA_FUZZ_BINARY names the core's test as
# `cargo test -p ikra-core --test fuzz --no-run` built it. Then each program also goes through that test, on the
# backends named in IKRA_FUZZ_BACKENDS (`reference,cpu`; `cuda-shim` needs g++).
#
# Programs that fail are kept in IKRA_FUZZ_KEEP (`fuzz-failures`), with what is wrong in `failures.txt`;
# spec/support/fuzz.rb makes them smaller. IKRA_FUZZ_GPUS says how many GPUs there are; several take turns.
require "etc"
require "fileutils"
require "tmpdir"
require_relative "runners"

module Fuzz
  # A range of programs, shared out in chunks.
  class Many
    CHUNK = 100

    def initialize(from, to, seed, processes)
      @chunks = (from...to).each_slice(CHUNK).to_a
      @seed = seed
      @processes = processes
      @bridged = ENV.fetch("IKRA_FUZZ_BRIDGE", "cpu").split(",") - ["none"]
      @core = ENV.fetch("IKRA_FUZZ_BACKENDS", "reference,cpu") if ENV["IKRA_FUZZ_BINARY"]
      @keep = File.expand_path(ENV.fetch("IKRA_FUZZ_KEEP", "fuzz-failures"))
      @tally = Hash.new { |hash, backend| hash[backend] = Hash.new(0) }
      @refused = Hash.new(0)
    end

    # Runs the programs. Gives whether all is well.
    def call
      running = {}
      done = 0
      until @chunks.empty? && running.empty?
        start(running) while running.size < @processes && @chunks.any?
        ready, = IO.select(running.keys)
        ready.each do |reader|
          collect(reader.read)
          Process.wait(running.delete(reader))
          reader.close
          puts "#{done += 1} chunks of #{CHUNK}: #{summary}"
        end
      end
      @refused.sort_by { |why, times| [-times, why] }.first(40).each { |why, times| puts format("%6d × %s", times, why) }
      @tally.each_value.none? { |outcomes| outcomes.key?("failed") }
    end

    private

    def start(running)
      chunk = @chunks.shift
      reader, writer = IO.pipe
      gpu = (@started = @started.to_i + 1) % ENV.fetch("IKRA_FUZZ_GPUS", "1").to_i
      pid = fork do
        ENV["CUDA_VISIBLE_DEVICES"] = gpu.to_s if ENV.key?("IKRA_FUZZ_GPUS")
        reader.close
        writer.write(Marshal.dump(verdicts(chunk)))
        writer.close
        exit!(0)
      end
      writer.close
      running[reader] = pid
    end

    # [name, backend, outcome, words] for each.
    def verdicts(numbers)
      Dir.mktmpdir do |folder|
        write(folder, numbers)
        names = Dir.children(folder).map { |file| File.basename(file, ".rb") }
        found = @bridged.flat_map do |backend|
          Runners.bridge(folder, backend.to_sym, processes: 1).flat_map { |name, verdicts| verdicts.map { |key, verdict| [name, key.to_s, *verdict] } }
        end
        found.concat(core(folder, names)) if @core
        keep(folder, found.select { |_, _, outcome, _| outcome == "failed" })
        found
      end
    end

    def write(folder, numbers)
      script = File.join(__dir__, "write.rb")
      system(RbConfig.ruby, "--disable=gems", script, folder, @seed.to_s, numbers.first.to_s, numbers.last.to_s, err: File::NULL)
    end

    # Programs without an answer because of a crash run again, each alone.
    def core(folder, names)
      found = Runners.core(folder, @core)
      (names - found.keys).each do |name|
        Dir.mktmpdir do |own|
          FileUtils.cp(File.join(folder, "#{name}.rb"), own)
          found[name] = Runners.core(own, @core).fetch(name, { "core" => %w[failed crash] })
        end
      end
      found.flat_map { |name, verdicts| verdicts.map { |backend, verdict| [name, backend, *verdict] } }
    end

    def keep(folder, failed)
      return if failed.empty?

      FileUtils.mkdir_p(@keep)
      failed.each do |name, backend, _, words|
        FileUtils.cp(File.join(folder, "#{name}.rb"), @keep)
        File.open(File.join(@keep, "failures.txt"), "a") { |file| file.puts [name, backend, words].join("\t") }
      end
    end

    def collect(text)
      raise "a chunk ended without an answer" if text.empty?

      Marshal.load(text).each do |name, backend, outcome, words|
        @tally[backend][outcome] += 1
        @refused[words[/: ((?:(?!: ).){1,60})(?:  |\z)/, 1] || words[0, 60]] += 1 if outcome == "refused"
        puts "── #{name} on #{backend}: #{words[0, 300]}" if outcome == "failed"
      end
    end

    def summary
      @tally.map { |backend, outcomes| "#{backend}: #{outcomes.sort.map { |outcome, times| "#{times} #{outcome}" }.join(", ")}" }.join("; ")
    end
  end
end

if $PROGRAM_NAME == __FILE__
  from, to, seed, processes = ARGV.map { |text| Integer(text) }
  abort "ruby spec/support/fuzz/many.rb FROM TO [SEED [PROCESSES]]" unless to
  $stdout.sync = true
  ENV["IKRA_FUZZ_THREADS"] ||= "1"
  exit Fuzz::Many.new(from, to, seed || 1, processes || Etc.nprocessors).call
end
