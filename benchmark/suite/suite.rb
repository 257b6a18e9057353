# frozen_string_literal: true

require "open3"
require "tmpdir"
require_relative "../harness"
require_relative "program"
require_relative "versions"

# Runs versions of programs on the same random input, and compares their outputs before it keeps any time.
#
# Plain Ruby's output is the expected one. At a size that would take it too long, one version (C on one thread, where it
# exists) must agree with plain Ruby at a smaller size. All other versions must then agree with that version.
class Suite
  # Seconds after which a version is stopped, and counts as unable to run here. Where the runs after the first would
  # take more than ten seconds together, there are fewer of them, but at least two.
  LIMIT = Integer(ENV.fetch("LIMIT", "60"))

  # The answer of a version's process. With a +reason+, nothing is timed.
  Answer = Struct.new(:facts, :outputs, :reason)

  attr_reader :failed

  def initialize(bench, versions: Version.all, seed: bench.seed, out: $stdout)
    @bench = bench
    @versions = versions
    @seed = seed
    @out = out
    @failed = []
    @unavailable = {}
  end

  # Measures a program at a size, and plain Ruby at a size that it can do in time.
  #
  # @return [Hash] the record: sizes, work, and for each version its medians, or why there are none
  def measure(name, size, runs:, ruby_size: nil)
    program = Program.find(name).new(name)
    small = ruby_size || program.ruby_size(size)
    found = { size: size, elements: program.elements(size), ruby_size: small, runs: runs, tolerance: tolerance(program), versions: {}, skipped: {} }
    Dir.mktmpdir do |directory|
      @directory = directory
      good = versions_of(program, found)
      good = with_reference(program, small, good, found, runs) if small < size
      at_size(program, size, good, found, runs)
    end
    found
  end

  private

  def versions_of(program, found)
    @versions.select { |version| version.there?(program) }.filter_map do |version|
      command = @unavailable[version.name] || version.command(@bench, program)
      next version unless command.is_a?(String)

      skip(found, version, command)
    end
  end

  def skip(found, version, reason)
    found[:skipped][version.name] = reason
    say format("  %-22s skipped: %s", version.name, reason)
    nil
  end

  def tolerance(program)
    { exact: program.tolerance, loose: program.loose_tolerance }.transform_values { |pair| pair || "the same bits" }
  end

  # Measures the versions other than plain Ruby. The first of them must agree with plain Ruby at the size that it can do
  # in time. Plain Ruby's time there is kept, scaled up.
  def with_reference(program, small, versions, found, runs)
    ruby = versions.find { |version| version.kind == :ruby } or return versions
    input, path = prepared(program, small)
    answer = ask(program, ruby, path, runs)
    abort "#{program.name}: plain Ruby: #{answer.reason}" if answer.reason
    keep(program, ruby, answer, found, scale: program.ratio(found[:size], small))
    found[:ruby_work] = program.work(input, answer.outputs)
    others = (versions - [ruby]).sort_by.with_index { |version, index| [version.name == "c, one thread" ? 0 : 1, index] }
    # A version that is compared loosely cannot be the reference.
    others.shift until others.empty? || (!others.first.loose? && agrees?(program, others.first, answer.outputs, ask(program, others.first, path, 0), found))
    others
  end

  def at_size(program, size, versions, found, runs)
    input, path = prepared(program, size)
    expected = nil
    versions.each do |version|
      answer = ask(program, version, path, runs)
      good = agrees?(program, version, expected || answer.outputs, answer, found)
      return versions.drop(1).each { |other| skip(found, other, "plain Ruby gave nothing to compare with") } if !good && version.kind == :ruby
      next unless good

      expected ||= answer.outputs
      found[:work] ||= program.work(input, answer.outputs).merge(columns: input.bytes, written: input.bytes(only_outputs: true))
      keep(program, version, answer, found)
    end
  end

  def prepared(program, size)
    input = program.input(size, Random.new(@seed))
    path = File.join(@directory, "input-#{size}")
    input.write(path)
    [input, path]
  end

  def agrees?(program, version, expected, answer, found)
    return skip(found, version, answer.reason) if answer.reason
    return true unless (difference = program.difference(expected, answer.outputs, loose: version.loose?))

    @failed << "#{program.name}: #{version.name}: #{difference}"
    skip(found, version, "ANOTHER RESULT: #{difference}")
  end

  def ask(program, version, path, runs)
    environment, command = version.command(@bench, program)
    output = File.join(@directory, "output")
    text, status = run(environment, [*command, path, output, runs.to_s])
    return Answer.new(nil, nil, status) if status.is_a?(String)

    facts = JSON.parse(text.lines.last, symbolize_names: true)
    if facts[:missing]
      @unavailable[version.name] = facts[:missing]
      return Answer.new(nil, nil, facts[:missing])
    end
    Answer.new(facts, Columns.read(output).outputs, nil)
  end

  # A version's output, and nil; or nil, and what went wrong.
  def run(environment, command)
    Open3.popen3(environment, *command) do |input, output, errors, process|
      input.close
      said = [Thread.new { output.read }, Thread.new { errors.read }]
      stopped = process.join(LIMIT).nil?
      Process.kill(:KILL, process.pid) if stopped
      text, complaints = said.map(&:value)
      return [nil, "stopped after #{LIMIT} s"] if stopped

      return [text, nil] if process.value.success? && !text.empty?

      [nil, "failed: #{complaints.lines.reject { |line| line.start_with?("\tfrom") }.last(3).join.strip[0, 300]}"]
    end
  end

  def keep(program, version, answer, found, scale: 1.0)
    facts = answer.facts
    seconds = facts[:seconds] || facts[:kernel]
    kept = { lines: version.lines(program), kind: version.kind, device: version.device, phases: phases(facts) }
    kept.update(Harness::Timing.new(seconds.map { |time| time * scale }).to_h.except(:runs)) unless seconds.empty?
    kept[:scaled_from] = found[:ruby_size] unless scale == 1.0
    kept.update(facts.slice(:yjit, :version, :threads, :compile, :first, :first_phases, :backends))
    kept[:kernel] = kept[:phases][:kernel] || kept[:median]
    kept[:marshalling] = median(facts[:phases].map { |run| marshalling(run) }) if version.kind == :ikra && !seconds.empty?
    found[:versions][version.name] = kept
    show(version, kept)
  end

  # Medians of phases over runs.
  def phases(facts)
    return %i[upload kernel download].to_h { |phase| [phase, median(facts[phase])] } if facts[:kernel]
    return {} unless facts[:phases] && !facts[:phases].empty?

    facts[:phases].first.keys.to_h { |phase| [phase, median(facts[:phases].map { |run| run.fetch(phase, 0.0) })] }
  end

  # The seconds of a call that do not depend on the backend.
  def marshalling(run) = run.values_at(:source, :infer, :trace, :pack, :unpack).sum(&:to_f)

  def median(numbers) = numbers.empty? ? 0.0 : Harness::Timing.new(numbers).median

  def show(version, kept)
    phases = kept[:phases].select { |_, time| time > 5e-7 }.map { |phase, time| "#{phase} #{Harness.show(time)}" }
    about = [*("scaled up from #{kept[:scaled_from]}" if kept[:scaled_from]), *phases]
    say format("  %-22s %12s  %s", version.name, kept[:median] ? Harness.show(kept[:median]) : "", about.join(", "))
  end

  def say(text) = @out.puts(text)
end
