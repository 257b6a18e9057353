# frozen_string_literal: true

# The measurements of benchmark/micro/objects.rb, in a process of its own. It has as many cores as are measured: one,
# except for the tracer.
#
#   ruby -Ilib benchmark/micro/marshalling.rb reorder OBJECTS CLASSES RUNS SEED
#   ruby -Ilib benchmark/micro/marshalling.rb trace NODES EDGES allocated|shuffled RUNS SEED
#   ruby -Ilib benchmark/micro/marshalling.rb slots OBJECTS IVARS RUNS SEED
#   ruby -Ilib benchmark/micro/marshalling.rb array ELEMENTS float|integer RUNS SEED
#
# Prints seconds of each run as JSON; of `reorder`, three times as many.

require "json"
require "ikra"

module Marshalling
  class << self
    # Objects of some classes in random order: the time to pack them, with and without ordering by class.
    def reorder(count, classes, runs, random)
      types = Array.new(classes) do |number|
        Class.new(Counter) { class_eval("def step = @n += #{number}", __FILE__, __LINE__) }.tap { |type| const_set("Type#{number}", type) }
      end
      objects = Array.new(count) { types.sample(random: random).new }
      # The two take turns, and there are more runs. On a machine that others use, the share of a core changes within a
      # second, and the difference is a small part of the time.
      turns = 3 * runs
      calls = [true, false].map { |by_class| -> { objects.peach(backend: :cpu, __reorder: by_class) { |object| object.step } } } # rubocop:disable Style/SymbolProc
      calls.each(&:call)
      times = Array.new(turns) { calls.map { |call| Ikra.profile(&call).phases.fetch(:pack) } }.transpose
      expected = objects.map { |object| 2 * (turns + 1) * types.index(object.class) }
      wrong unless objects.map(&:n) == expected
      { reordered: times.first, given: times.last }
    end

    # A graph of nodes, each with an array of edges to random ones. Measures the time to trace a new graph, and to
    # revalidate the same one.
    def trace(count, degree, order, runs, random)
      compiled = graph([count, 1_000].min, degree, order, random)
      found = { trace: [], again: [] }
      look(compiled)
      lists = []
      runs.times do
        nodes = graph(count, degree, order, random)
        GC.start
        found.each_value { |seconds| seconds << look(nodes) }
        # No later list gets its address. Otherwise the call would first check whether it is the same graph.
        lists << nodes.clear
      end
      # The slots are @weight and @edges of each node, and the edges themselves. @seen is not read.
      found.merge(slots: count * (2 + degree))
    end

    # Objects of some Floats, each of which is read and written.
    def slots(count, ivars, runs, random)
      names = Array.new(ivars) { |number| "@v#{number}" }
      type = Class.new do
        class_eval("def step; #{names.map { |name| "#{name} += 1.0; " }.join}end", __FILE__, __LINE__)
      end
      const_set(:Slots, type)
      objects = Array.new(count) { type.new.tap { |object| names.each { |name| object.instance_variable_set(name, random.rand(1000).to_f) } } }
      first = objects.first.instance_variable_get("@v0")
      phases = profiles(runs) { objects.peach(backend: :cpu) { |object| object.step } } # rubocop:disable Style/SymbolProc
      wrong unless objects.first.instance_variable_get("@v0") == first + runs + 1
      whole = Array.new(runs) { time { objects.peach(backend: :cpu) { |object| object.step } } } # rubocop:disable Style/SymbolProc
      %i[trace pack unpack].to_h { |phase| [phase, phases.map { |each| each.fetch(phase) }] }.merge(whole: whole)
    end

    # An Array of numbers that becomes a column. From the third call on, the column's memory is reused.
    def array(count, kind, runs, random)
      numbers = Array.new(count) { kind == "float" ? random.rand : random.rand(1 << 40) }
      sum = -> { numbers.preduce(backend: :cpu) { |a, b| a + b } }
      wrong unless (sum.call - numbers.sum).abs <= (kind == "float" ? 1e-9 * count : 0)
      sum.call
      { pack: profiles(runs, &sum).map { |phase| phase.fetch(:pack) } }
    end

    private

    def graph(count, degree, order, random)
      nodes = Array.new(count) { Node.new }
      nodes.shuffle!(random: random) if order == "shuffled"
      nodes.each_with_index do |node, index|
        node.edges = Array.new(degree) { |edge| order == "shuffled" ? nodes[random.rand(count)] : nodes[(index + edge + 1) % count] }
      end
    end

    # Seconds of tracing.
    def look(nodes)
      seconds = Ikra.profile { nodes.peach(backend: :cpu) { |node| node.look } }.phases.fetch(:trace) # rubocop:disable Style/SymbolProc
      wrong unless nodes.all? { |node| node.seen == node.edges.last.weight }
      seconds
    end

    def profiles(runs, &work)
      work.call
      Array.new(runs) { Ikra.profile(&work).phases }
    end

    def time
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      yield
      Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
    end

    def wrong = abort("another result than plain Ruby's")
  end

  class Counter
    attr_reader :n

    def initialize
      @n = 0
    end
  end

  class Node
    attr_reader :seen, :weight
    attr_accessor :edges

    def initialize
      @weight = 1
      @seen = 0
    end

    def look = @seen = @edges.last.weight
  end
end

what, *arguments, runs, seed = ARGV
arguments.map! { |argument| argument.match?(/\A\d+\z/) ? Integer(argument) : argument }
puts JSON.generate(Marshalling.public_send(what, *arguments, Integer(runs), Random.new(Integer(seed))))
