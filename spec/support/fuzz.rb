# frozen_string_literal: true

# Compares generated programs with Ruby: ruby -Ilib -Ispec spec/support/fuzz.rb COUNT [SEED]
#
# Each program runs through Ikra on every backend present, and through the core's own test on the backends that need no
# GPU. A program that fails is made smaller and kept under ext/ikra-core/tests/cases/regressions.
require "tmpdir"
require_relative "backends"
require_relative "fuzz/runners"
require_relative "fuzz/shrink"

count = Integer(ARGV.fetch(0, "2000"))
seed = Integer(ARGV.fetch(1) { Random.new_seed % 1_000_000 })
bridged = Backends.present - [:cuda_shim]
puts "#{count} programs of seed #{seed}, on #{bridged.join(", ")}#{" and the core's own" if system("cargo", "--version", out: File::NULL, err: File::NULL)}"

results = Hash.new { |hash, name| hash[name] = {} }
Dir.mktmpdir do |folder|
  Fuzz::Runners.write(folder, seed, 0...count)
  bridged.each { |backend| Fuzz::Runners.bridge(folder, backend).each { |name, verdict| results[name].update(verdict) } }
  Fuzz::Runners.core(folder).each { |name, verdicts| results[name].update(verdicts) }
end

tally = Hash.new { |hash, backend| hash[backend] = Hash.new(0) }
results.each_value { |verdicts| verdicts.each { |backend, (outcome, _)| tally[backend][outcome] += 1 } }
tally.each { |backend, outcomes| puts "#{backend}: #{outcomes.sort.map { |outcome, times| "#{times} #{outcome}" }.join(", ")}" }

failed = results.filter_map do |name, verdicts|
  backend, (_, what) = verdicts.find { |_, (outcome, _)| outcome == "failed" }
  [name, backend, what] if backend
end
failed.sort.each do |name, backend, what|
  puts "── #{name} on #{backend}: #{what[0, 500]}"
  runner = lambda do |folder|
    found = backend.is_a?(Symbol) ? Fuzz::Runners.bridge(folder, backend) : Fuzz::Runners.core(folder, backend.delete_prefix("core "))
    found.filter_map { |smaller, verdicts| verdicts.each_value.find { |outcome, _| outcome == "failed" }&.then { |_, text| [smaller, text] } }.to_h
  end
  program, = Fuzz::Shrink.new(runner).call(Fuzz::Program.generate(seed, Integer(name[/\d+\z/], 10)))
  next puts("  it does not fail again") unless program

  path = File.join(Fuzz::Runners::ROOT, "ext/ikra-core/tests/cases/regressions/found_#{name.delete_prefix("program_")}.rb")
  program.write(path, "Found by a generated program (seed #{seed}).")
  puts "  kept as #{path}", File.read(path).gsub(/^/, "    ")
end
exit failed.empty?
