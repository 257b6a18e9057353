# frozen_string_literal: true

# Runs one version in Ruby of a program, in a process of its own.
#
#   ruby --yjit benchmark/suite/run.rb PROGRAM ruby INPUT OUTPUT RUNS
#   IKRA_BACKEND=cpu ruby -Ilib benchmark/suite/run.rb PROGRAM ikra INPUT OUTPUT RUNS
#
# INPUT and OUTPUT are files of columns. Prints as its last line {"seconds": […], "yjit": true}. For Ikra it adds:
#
# * "first" and "first_phases": the time and the phases of the first call, which compiles;
# * "phases": those of each run, by Ikra's profile;
# * "backends": those of the last run.
#
# The first run does not count. Nor do the runs of SETTLE seconds after it, if that is given, which use the state that
# the first one left.

require "json"
require_relative "program"

name, version, input, output, runs = ARGV
ikra = version != "ruby"
require "ikra" if ikra
program = Program.find(name).new(name)
load program.file("#{version}.rb")
columns = Columns.read(input)
clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }

state = result = nil
again = lambda do
  state = program.state(columns) if state.nil? || program.changes?
  result = nil
  GC.start
  next Ikra.profile { result = program.compute(state) } if ikra

  started = clock.call
  result = program.compute(state)
  clock.call - started
end

first = again.call
settled = clock.call + Float(ENV.fetch("SETTLE", "0"))
program.compute(state) while clock.call < settled
# Where the first run of plain Ruby took long, a second one would add nothing new.
timed = !ikra && first > 2.0 ? [first] : Array.new([Integer(runs), [2, (10 / (ikra ? first.seconds : first)).floor].max].min) { again.call }

written = Columns.new
program.outputs(state, result).each { |column, values| written.output(column, columns.type(column), values) }
written.write(output)

found = { yjit: defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? true : false }
if ikra
  backends = timed.last&.sections.to_a.map { |section| section.backend.to_s }.uniq
  found.update(seconds: timed.map(&:seconds), phases: timed.map(&:phases), first: first.seconds, first_phases: first.phases, backends: backends)
else
  found[:seconds] = timed
end
puts JSON.generate(found)
