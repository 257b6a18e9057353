# frozen_string_literal: true

require "etc"
require "rbconfig"
require "tempfile"

module Fuzz
  # Ways to run a folder of cases. Each gives a Hash by name of a case, of backend to [outcome, what is wrong].
  module Runners
    ROOT = File.expand_path("../../..", __dir__)

    # Processes that share a GPU. Each takes half a gigabyte, and may reserve a quarter of the free memory for stacks.
    # With twelve, the last ones found no memory left of 141 GB.
    ON_A_GPU = 6

    # Through Ikra as users have it. Several processes share the cases.
    def self.bridge(folder, backend, compiled: File.join(ROOT, "lib"), processes: backend == :cuda ? ON_A_GPU : Etc.nprocessors)
      files = Dir[File.join(folder, "*.rb")]
      script = File.join(__dir__, "bridge.rb")
      shares = files.each_slice([(files.size / processes.to_f).ceil, 1].max).map do |share|
        errors = Tempfile.new("ikra-fuzz")
        [share, errors, IO.popen([RbConfig.ruby, "--disable=gems", "-I#{compiled}", script, backend.to_s, *share], err: errors)]
      end
      shares.each_with_object({}) do |(share, errors, io), found|
        verdicts = io.readlines(chomp: true).to_h { |line| line.split("\t", 3).then { |file, *verdict| [file, verdict] } }
        io.close
        # After a crash, the rest of the process's share has no answers.
        crash = ["failed", "crash: #{Process.last_status}; #{File.readlines(errors.path, chomp: true).grep_v(/warning:/).first(3).join(" ")}"]
        share.each { |file| found[File.basename(file, ".rb")] = { backend => verdicts.fetch(file, crash) } }
        errors.close!
      end
    end

    # Through the core alone, on the backends that need no Ruby: reference, cpu, and CUDA's code on the host.
    # `IKRA_FUZZ_BINARY` names the core's test if it was built before. Else cargo builds it, and without cargo there are
    # no answers.
    def self.core(folder, backends = "reference,cpu,cuda-shim")
      report = File.join(folder, "report.txt")
      environment = { "IKRA_FUZZ" => folder, "IKRA_FUZZ_BACKENDS" => backends, "IKRA_FUZZ_REPORT" => report }
      built = ENV.fetch("IKRA_FUZZ_BINARY", nil)
      test = built ? [File.expand_path(built)] : %w[cargo test --quiet --locked --package ikra-core --test fuzz]
      system(environment, *test, chdir: built ? File.join(ROOT, "ext/ikra-core") : ROOT, out: File::NULL, err: File::NULL)
      found = Hash.new { |hash, name| hash[name] = {} }
      return found unless File.exist?(report)

      File.foreach(report, chomp: true) do |line|
        name, backend, *verdict = line.split("\t", 4)
        found[name]["core #{backend}"] = verdict
      end
      found
    end

    # Writes programs of a seed, on all cores.
    def self.write(folder, seed, numbers)
      script = File.join(__dir__, "write.rb")
      share = [(numbers.size / Etc.nprocessors.to_f).ceil, 1].max
      writers = numbers.each_slice(share).map do |slice|
        spawn(RbConfig.ruby, "--disable=gems", script, folder, seed.to_s, slice.first.to_s, slice.last.to_s)
      end
      writers.each { |pid| Process.wait2(pid)[1].success? or abort "the programs could not be made" }
    end
  end
end
