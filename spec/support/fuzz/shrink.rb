# frozen_string_literal: true

require "tmpdir"
require_relative "program"

module Fuzz
  # Makes a failing program smaller as long as it fails in the same way.
  class Shrink
    # How many smaller programs are tried at once.
    BATCH = 60

    # `runner.call(folder)` gives, for each case in the folder that fails, its name and what is wrong.
    def initialize(runner, log: $stdout)
      @runner = runner
      @log = log
    end

    # The smallest program found, and its failure.
    def call(program)
      failure = failures([program])[0] or return
      while (smaller, what = step(program, failure))
        program = smaller
        @log.puts "  #{program.size}: #{what[0, 120]}"
      end
      [program, failure]
    end

    private

    def step(program, failure)
      tried = program.reductions
      # Large and small cuts in each batch: most large ones fail, and small ones take long.
      strides = (tried.size / BATCH.to_f).ceil
      (0...strides).each do |first|
        batch = tried.each_slice(strides).filter_map { |slice| slice[first] }
        found = failures(batch)
        batch.each_with_index { |smaller, i| return [smaller, found[i]] if found[i] && kind(found[i]) == kind(failure) }
      end
      nil
    end

    def failures(programs)
      Dir.mktmpdir do |folder|
        programs.each_with_index { |program, i| program.write(File.join(folder, "program_#{i}.rb"), "Smaller.") }
        found = @runner.call(folder)
        programs.each_index.map { |i| found["program_#{i}"] }
      end
    end

    # The part of a failure that stays the same while the program gets smaller.
    def kind(failure)
      failure[/internal error in Ikra \(\w+\)|"Ikra: .*?"|panic: [^0-9]*|speculations/] ||
        failure[/class: "(\w+)"/, 1] || failure[/\A(gives|after it|crash)/] || failure
    end
  end
end
