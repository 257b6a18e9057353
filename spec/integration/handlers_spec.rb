# frozen_string_literal: true

require "timeout"

module Handlers
  class Car
    attr_accessor :v

    def initialize(v) = @v = v
    def go = @v += 1
  end

  module Silent
    def self.warn(*) = nil
  end

  # One of each family of public operations, as a block that gets the backend's name.
  OPERATIONS = {
    pmap: ->(on) { [1, 2, 3].pmap(backend: on) { |x| x + 1 } },
    peach: ->(on) { [Car.new(1)].peach(3, backend: on) { |car| car.go }.map(&:v) },
    pnew: ->(on) { Array.pnew(2, 2, backend: on) { |y, x| y + x } },
    objects: ->(on) { (0..3).pmap(backend: on) { |x| Car.new(x) }.map(&:v) },
    psort_by: ->(on) { [3, 1, 2].psort_by(backend: on) { |x| -x } },
    pgroup_by: ->(on) { [3, 1, 2].pgroup_by(backend: on) { |x| x % 2 } },
    preduce: ->(on) { [3, 1, 2].preduce(backend: on) { |x, y| x + y } },
    pscan: ->(on) { [3, 1, 2].pscan(backend: on) { |x, y| x + y } },
    pstencil: ->(on) { [1, 5, 9].pstencil([-1, 1], 0, backend: on) { |left, right| left + right } },
    with_index: ->(on) { [1, 5, 9].pmap(backend: on).with_index { |x, i| x + i } },
    plazy: ->(on) { [1, 2, 3].plazy(backend: on).map { |x| x * 2 }.select { |x| x > 2 }.to_a },
    plazy_sum: ->(on) { (1..10).plazy(backend: on).map { |x| x * 2 }.sum },
    elementwise: ->(_) { (Ikra::MDArray.new([1.0, 2.0]) * 2 + 1).then { |a| [a.to_a, a.sum, (a > 3).to_a] } },
    in_place: ->(_) { Ikra::MDArray.new([1, 2]).then { |a| (a * 2).tap { a[0] = 7 }.to_a } },
    iterators: ->(on) { Ikra::MDArray.new([1, 2]).map(backend: on) { |x| x + 1 }.to_a },
    sort: ->(_) { Ikra::MDArray.new([3, 2]).sort.to_a },
    views: ->(_) { Ikra::MDArray.new([[3, 2], [4, 5]]).then { |a| a[true, 0] += 3; a.transpose.dot(a).to_a } },
    inspect: ->(_) { Ikra::MDArray.new([[3, 2], [4, 5]]).inspect },
    resident: ->(on) { [Car.new(1)].then { |cars| Ikra.resident(cars) { 3.times { cars.peach(backend: on) { |car| car.go } }; cars[0].v } } },
    explain: ->(on) { Ikra.explain { [1].pmap(backend: on) { |x| x + 5 } }.value },
    profile: ->(on) { Ikra.profile { [1].pmap(backend: on) { |x| x + 5 } }.value },
    configure: ->(_) { Ikra.configure { |config| config.overflow = :raise }.overflow },
    memory: ->(_) { Ikra.memory.keys },
    sync: ->(_) { [Ikra.sync] },
    races: ->(_) { [1].peach(check: :races) { |x| x } },
    compile_error: ->(on) { [1].pmap(backend: on) { |x| puts x } },
    exception: ->(on) { [1].pmap(backend: on) { |x| x / 0 } },
    plain_ruby: ->(on) { [1].pmap(backend: on, unsupported: :ruby) { |x| x.to_s * 2 } }
  }.freeze

  class << self
    def outcome(name, on)
      OPERATIONS.fetch(name).call(on)
    rescue StandardError => e
      [e.class, e.message]
    end

    # The results of +name+ in signal handlers that run while the block runs.
    def in_handlers(name, on)
      outcomes = []
      old = trap("USR1") { outcomes << outcome(name, on) }
      yield outcomes
      outcomes
    ensure
      trap("USR1", old || "DEFAULT")
    end
  end
end

RSpec.describe "The handler of a signal" do
  around do |example|
    logger, Ikra.logger = Ikra.logger, Handlers::Silent
    Timeout.timeout(120) { example.run }
  ensure
    Ikra.logger = logger
  end

  on_every_backend do
    Handlers::OPERATIONS.each_key do |name|
      it "may call #{name}, also in the middle of the same" do
        expected = Handlers.outcome(name, backend)
        outside = []
        inside = Handlers.in_handlers(name, backend) do |handled|
          Process.kill("USR1", Process.pid)
          sleep 0.001 while handled.empty?
          sender = Thread.new { 10.times { Process.kill("USR1", Process.pid); sleep rand * 0.003 } }
          outside << Handlers.outcome(name, backend) while sender.alive? || outside.empty?
        end
        expect(inside.uniq).to eq([expected])
        expect(outside.uniq).to eq([expected])
      end
    end
  end

  it "computes an expression that another computes, and changes what it looks at" do
    a = Ikra::MDArray.new([1, 2, 3])
    seen = []
    old = trap("USR1") { seen << (a + 1).to_a; a[0] += 0 }
    sender = Thread.new { 50.times { Process.kill("USR1", Process.pid); sleep rand * 0.003 } }
    while sender.alive?
      b = a * 2
      c = b + a
      expect([b.to_a, c.sum]).to eq([[2, 4, 6], 18])
    end
    expect(seen.uniq).to eq([[2, 3, 4]])
  ensure
    trap("USR1", old || "DEFAULT")
  end
end
