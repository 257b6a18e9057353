# frozen_string_literal: true

require "tmpdir"
require_relative "../support/stand_in"

RSpec.describe "Ten thousand groups of sections" do
  around { |example| Dir.mktmpdir("ikra") { |folder| (@folder = folder) && example.run } }

  # Groups of all kinds on a simulated GPU, and what there is of its driver's objects after some of them.
  it "leave as much on the device, and as many streams and events, as the first ones" do
    found = run_ruby(<<~RUBY, environment: StandIn.environment(@folder).merge("IKRA_BACKEND" => "cuda"), folder: @folder, seconds: 300)
      require "fiddle"
      class Body
        attr_accessor :a, :b
        def initialize(a) = (@a, @b = a, 1)
      end
      driver = Fiddle.dlopen("libcuda.so.1")
      counters = %w[used streams events graphs modules page_locked].to_h { |name| [name, Fiddle::Function.new(driver["stand_in_\#{name}"], [], Fiddle::TYPE_LONG)] }
      policies = %i[auto paper plain serial]
      lists = Array.new(3) { Array.new(8) { |i| Body.new(i) } }
      numbers = Ikra::MDArray.new([1, 2, 3])
      run = lambda do |turn|
        sections = nil
        Ikra.concurrently(policy: policies[turn % 4]) do
          sections = lists.map { |list| list.peach { |o| o.a += 1 } }
          sections[turn % 3].cancel if turn % 7 == 3
          lists[0].pmap { |o| 1 / (o.b - 1) } if turn % 11 == 5
          [lists[1].pmap(&:a), (numbers + turn if turn % 5 == 2)]
        end
      rescue ZeroDivisionError
        lists[0].async.pmap(&:a).value
      end
      there = lambda do
        GC.start
        Ikra.concurrently { [[1].pmap { |x| x }] }
        counters.transform_values(&:call)
      end
      1000.times(&run)
      first = there.call
      9000.times(&run)
      last = there.call
      puts first.map { |name, count| [name, count, last[name]].join(" ") }
      puts Thread.list.size
    RUBY
    *counts, threads = found.lines.map(&:split)
    expect(counts.size).to eq 6
    # As many launches as sections of a group may have been under way at once later for the first time: at most this.
    more = { "used" => 64 << 10, "streams" => 4, "events" => 32, "graphs" => 0, "modules" => 0, "page_locked" => 1 << 20 }
    counts.each { |name, first, last| expect(last.to_i).to be <= first.to_i + more.fetch(name), "#{name}: #{first} after 1000 groups, #{last} after 10 000" }
    expect(threads[0].to_i).to be <= 3
  end
end
