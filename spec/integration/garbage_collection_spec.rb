# frozen_string_literal: true

require_relative "../support/garbage"

RSpec.describe "Garbage collection" do
  on_every_backend do
    it "may happen at every allocation" do
      output = run_ruby(<<~RUBY, backend.to_s)
        require "#{File.expand_path("../support/garbage", __dir__)}"
        backend = ARGV[0].to_sym
        quiet = Garbage.story(backend)
        GC.stress = true
        known = Garbage.story(backend)
        fresh = (1..5).pmap(backend:) { |x| Garbage::LIST[x % 3] * x }
        GC.stress = false
        p known == quiet, fresh
      RUBY
      expect(output).to eq("true\n[20, 60, 30, 80, 150]\n")
    end

    it "may move objects between calls" do
      quiet = Garbage.story(backend)
      2.times do
        GC.compact
        expect(Garbage.story(backend)).to eq(quiet)
      end
    end

    it "may move them at any time" do
      quiet = Garbage.story(backend)
      GC.auto_compact = true
      5.times do
        Array.new(1000) { Object.new }
        GC.start
        expect(Garbage.story(backend)).to eq(quiet)
      end
    ensure
      GC.auto_compact = false
    end

    it "finds every reference in place after compaction" do
      Garbage.story(backend)
      more = RUBY_VERSION >= "3.2" ? :expand_heap : :double_heap
      GC.verify_compaction_references(more => true, toward: :empty) if GC.respond_to?(:verify_compaction_references)
      expect(Garbage.story(backend)).to eq(Garbage.story(:reference))
    end

    it "keeps what is written into old objects: young ones, and numbers that need objects" do
      states = [backend, nil].map do |given|
        cells = Array.new(1_000) { |i| Garbage::Cell.new(i) }
        4.times { GC.start }
        Garbage.fill(cells, given)
        GC.start(full_mark: false)
        Array.new(10_000) { Garbage::Cell.new(0) }
        cells.map(&:state)
      end
      expect(states.first).to eq(states.last)
    end

    it "may run on another thread meanwhile" do
      collecting = Thread.new { loop { GC.start; Array.new(100) { +"x" } } }
      quiet = Garbage.story(:reference)
      5.times { expect(Garbage.story(backend)).to eq(quiet) }
    ensure
      collecting&.kill&.join
    end

    it "frees what sections made" do
      call = -> { (1..200).to_a.pmap(backend:) { |x| x * 1.5 }.size }
      50.times { call.call }
      GC.start
      before = ObjectSpace.count_objects
      200.times { call.call }
      GC.start
      after = ObjectSpace.count_objects
      kept = (after[:TOTAL] - after[:FREE]) - (before[:TOTAL] - before[:FREE])
      expect(kept).to be < 500
    end

    # In a process of its own, because objects of other examples come and go.
    it "leaks nothing in ten thousand calls", :slow do
      grown = run_ruby(<<~RUBY)
        resident = -> { GC.start; File.read("/proc/self/statm").split[1].to_i * 4096 }
        class Counter; attr_accessor :value; def initialize(value) = @value = value; end
        nodes = Array.new(50) { |i| Counter.new(i) }
        call = lambda do |i|
          nodes.peach(backend: :#{backend}) { |node| node.value = node.value * 5 % 97 }
          (0..i % 50).pmap(backend: :#{backend}) { |x| x * 2 }
          begin
            [1, 0].pmap(backend: :#{backend}) { |x| 1 / x }
          rescue ZeroDivisionError
            nil
          end
        end
        1000.times { |i| call.call(i) }
        before = resident.call
        10_000.times { |i| call.call(i) }
        print resident.call - before
      RUBY
      expect(Integer(grown)).to be < 8 << 20
    end
  end

  # Ruby 3.1 frees [:b] of `[*a, :b]` where the GC runs while Ruby compiles the file. Then the program crashes.
  it "may happen while Ruby compiles the library" do
    skip "NOT TESTED: this Ruby shows no syntax trees" unless RubyVM::AbstractSyntaxTree.respond_to?(:parse_file) && RUBY_VERSION < "3.4"

    constant = ->(node) { RubyVM::AbstractSyntaxTree::Node === node && %i[LIT STR NIL TRUE FALSE].include?(node.type) }
    behind = lambda do |node|
      list = node.children[1]
      constant[list] || (RubyVM::AbstractSyntaxTree::Node === list && list.type == :LIST && list.children.compact.all?(&constant))
    end
    found = lambda do |node, path|
      next [] unless RubyVM::AbstractSyntaxTree::Node === node

      own = %i[ARGSCAT ARGSPUSH].include?(node.type) && behind[node] ? ["#{path}:#{node.first_lineno}"] : []
      own + node.children.flat_map { |child| found[child, path] }
    end
    files = Dir[File.expand_path("../../lib/**/*.rb", __dir__)]
    expect(files.flat_map { |path| found[RubyVM::AbstractSyntaxTree.parse_file(path), path] }).to eq([])
    expect(found[RubyVM::AbstractSyntaxTree.parse("[*a, :b]"), "here"]).to eq(["here:1"])
  end
end
