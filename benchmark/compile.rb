# frozen_string_literal: true

# The time from a block's source to its kernel, stage by stage, on the CPU backend. It is measured for the sections of
# every example, and for generated programs of 10 to 10 000 lines, which show how the time grows with the program.
#
# Not measured: loading Ruby and Ikra, and running the kernel. Work that a process does once is in the row of a small
# section that runs before the others. `world` is questions about live objects, classes and methods, and for the
# examples includes scanning their objects. `passes` and `prepare` are the optimiser and Cranelift.
#
#   ruby -Ilib benchmark/compile.rb        # PROCESSES=, LINES= in the environment

require "tmpdir"
require_relative "harness"
require_relative "compile/generated"

class CompileBenchmark
  STAGES = %i[source syntax world infer lower passes layout prepare].freeze
  # Arguments with which each example ends soon.
  ARGUMENTS = Hash.new(%w[24]).update("traffic" => %w[--actors 300 --ticks 2 --out traffic.svg], "boids" => %w[30], "nbody" => %w[30], "kmeans" => %w[200], "sudoku" => %w[4]).freeze
  ONCE = File.expand_path("compile/once.rb", __dir__)

  def initialize
    @bench = Harness.new("compile")
    @processes = @bench.size(:processes, 5, tiny: 1)
    @most = @bench.size(:lines, 10_000, tiny: 100)
  end

  def run
    examples
    generated
    @bench.finish
  end

  private

  def examples
    table("Examples, in milliseconds")
    Dir[File.expand_path("../examples/*.rb", __dir__)].sort.each do |file|
      name = File.basename(file, ".rb")
      runs = Array.new(@processes) { once("example", file, *ARGUMENTS[name]) }
      runs.flatten.group_by { |section| section[:place] }.each do |place, sections|
        next (@first ||= []).concat(sections) if place.start_with?("first")

        whole = row(place, sections)
        @bench.target("#{place}: source to kernel", whole * 1e3, unit: "ms", at_most: 20)
      end
    end
  end

  def generated
    row("first section of a process", @first)
    Generated::KINDS.each do |kind|
      table("Generated: #{kind}, in milliseconds")
      Dir.mktmpdir do |directory|
        sizes = [10, 100, 1_000, 10_000].select { |lines| lines <= @most }
        inferred = sizes.map do |lines|
          file = Generated.write(directory, kind, lines)
          runs = Array.new(@processes) { once("generated", file) }
          row("#{kind}, #{lines} lines", runs.map(&:last))
          [lines, runs.map { |sections| sections.last[:stages][:infer] }.min]
        end
        linear(kind, inferred)
      end
    end
  end

  # Inference should grow linearly with the program, apart from cache effects of larger data. A program of ten times the
  # size would take a hundred times as long if it grew quadratically.
  def linear(kind, inferred)
    large = inferred.select { |lines, _| lines >= 100 }
    large.each_cons(2) do |(few, before), (many, after)|
      @bench.target("#{kind}: inference per line, #{many} lines against #{few}", (after / many) / (before / few), at_most: 2)
    end
  end

  # Runs in a temporary folder, because examples write pictures into the current one.
  def once(*arguments) = Dir.mktmpdir { |there| @bench.child(ONCE, *arguments, env: { "IKRA_BENCH_PLACE" => there }).fetch(:sections) }

  def table(title)
    puts "\n#{title}"
    puts format("%-44s%s", "", [*STAGES, :total].map { |stage| format("%9s", stage) }.join)
  end

  # Adds a row of medians over sections. Returns the seconds of all stages together.
  def row(name, sections)
    medians = STAGES.map { |stage| middle(sections.map { |section| section[:stages].fetch(stage) }) }
    whole = middle(sections.map { |section| section[:stages].values.sum })
    puts format("%-44s%s", name, [*medians, whole].map { |seconds| format("%9.2f", seconds * 1e3) }.join)
    @bench.record("stages", name, STAGES.zip(medians).to_h.merge(total: whole))
    whole
  end

  def middle(numbers)
    sorted = numbers.sort
    sorted[sorted.size / 2]
  end
end

CompileBenchmark.new.run if $PROGRAM_NAME == __FILE__
