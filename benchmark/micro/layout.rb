# frozen_string_literal: true

# What columns and job reordering are worth: kernel times of the same objects with and without each, the four
# combinations of the paper.
#
# There are two programs. "fields" has objects of six Floats. The block reads one and writes one, so that an array of
# structures loads four that are not needed. "classes" has objects of eight classes in random order, each with a method
# of its own, so that neighbouring threads diverge. Both switches exist only for this benchmark (`__layout:
# :structures`, `__reorder: false`). They change no result, which is compared. Not measured: anything but the kernel.
#
#   ruby -Ilib benchmark/micro/layout.rb      # OBJECTS=, RUNS=, SEED= in the environment; IKRA_BENCH_BACKENDS=cpu,cuda

require "ikra"
require_relative "../harness"

class LayoutBenchmark
  KINDS = 8
  COMBINATIONS = { "columns, by class" => {}, "columns, as given" => { __reorder: false },
                   "structures, by class" => { __layout: :structures }, "structures, as given" => { __layout: :structures, __reorder: false } }.freeze

  class Body
    attr_accessor :a

    def initialize(a, b, c, d, e, f)
      @a = a
      @b = b
      @c = c
      @d = d
      @e = e
      @f = f
    end

    # Uses two of the six. Because of #all, kernels have columns for the others.
    def step = @a = @a * 0.5 + @b
    def all = @a + @b + @c + @d + @e + @f
  end

  class Kind
    attr_reader :x

    def initialize(x)
      @x = x
      @y = x * 0.5
    end
  end

  # Each has another length, as methods of programs have.
  CLASSES = Array.new(KINDS) do |kind|
    Class.new(Kind) { class_eval("def step; #{"@x = @x * 0.999 + @y / (@x * @x + 1.0); " * (kind + 1)}end", __FILE__, __LINE__) }
  end
  CLASSES.each_with_index { |type, kind| const_set("Kind#{kind}", type) }

  def initialize
    @bench = Harness.new("layout")
    @objects = @bench.size(:objects, 1_000_000, tiny: 64)
    @runs = @bench.size(:runs, 31, tiny: 1)
    @random = Random.new(@bench.seed)
  end

  def run
    bodies = Array.new(@objects) { Body.new(*Array.new(6) { @random.rand }) }
    kinds = Array.new(@objects) { CLASSES.sample(random: @random).new(@random.rand) }
    @bench.backends.each do |backend|
      four(backend, "fields", bodies, ->(body) { body.a }) { |some, options| some.peach(**options) { |body| body.a < 0.0 ? body.a = body.all : body.step } }
      four(backend, "classes", kinds, ->(kind) { kind.x }) { |some, options| some.peach(**options) { |kind| kind.step } } # rubocop:disable Style/SymbolProc
    end
    @bench.finish
  end

  private

  def four(backend, what, objects, state)
    expected = nil
    times = COMBINATIONS.to_h do |name, options|
      copies = objects.map(&:dup)
      options = options.merge(backend: backend)
      yield copies, options
      name = "#{backend}: #{what}: #{name}"
      result = @bench.bits(copies.map(&state))
      @bench.same(name, expected ||= result, result)
      [name, @bench.timed("#{name}: kernel", Array.new(@runs) { Ikra.profile { yield copies, options }.phases.fetch(:kernel) }).median]
    end
    best = times.values.first
    times.drop(1).each { |name, time| @bench.value("#{name} takes, of columns by class", time / best, "×") }
  end
end

LayoutBenchmark.new.run if $PROGRAM_NAME == __FILE__
