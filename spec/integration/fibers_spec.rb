# frozen_string_literal: true

module Fibers
  class Car
    attr_accessor :v

    def initialize(v) = @v = v
    def go = @v += 1
  end

  class << self
    # Leaves a block of a scope for good, in a Fiber that nothing refers to. It runs in a thread of its own, because a
    # stack may still refer to the Fiber.
    def abandon(&scope)
      Thread.new { Fiber.new(&scope).resume && nil }.join
      nil
    end

    # Runs the GC until it has found that the Fiber is gone.
    def collect = 5.times { GC.start }
  end
end

RSpec.describe "A scope in a Fiber" do
  on_every_backend do
    let(:cars) { [Fibers::Car.new(1), Fibers::Car.new(2)] }

    it "is that Fiber's: others of the thread see what it did, and it sees what they do", :stress do
      fiber = Fiber.new do
        Ikra.resident(cars) do
          2.times { cars.peach(backend:) { |car| car.go } }
          Fiber.yield
          cars.peach(backend:) { |car| car.go }
          Fiber.yield
        end
      end
      fiber.resume
      expect(cars.map(&:v)).to eq([3, 4])
      cars.peach(backend:) { |car| car.v += 100 }
      cars[0].v += 1
      fiber.resume
      expect(cars.pmap(backend:) { |car| car.v }).to eq([105, 105])
      fiber.resume
      expect(cars.map(&:v)).to eq([105, 105])
      expect(Ikra.__resident?).to be(false)
    end

    it "is of no other Fiber's sections" do
      Ikra.resident(cars) do
        cars.peach(backend:) { |car| car.go }
        numbers = Enumerator.new { |yielder| loop { cars.peach(backend:) { |car| car.go }; yielder << cars[0].v } }
        expect([numbers.next, numbers.next]).to eq([3, 4])
        cars.peach(backend:) { |car| car.go }
        expect(numbers.next).to eq(6)
      end
      expect(cars.map(&:v)).to eq([6, 7])
    end

    it "ends with a Fiber that is abandoned, and loses nothing", :stress do
      on, list = backend, cars
      Fibers.abandon { Ikra.resident(list) { list.peach(backend: on) { |car| car.go }; Fiber.yield } }
      expect(list.map(&:v)).to eq([2, 3])
      Fibers.abandon { Ikra.resident(list) { list.peach(backend: on) { |car| car.go }; Fiber.yield } }
      Fibers.collect
      Ikra.resident(list) { list.peach(backend: on) { |car| car.go } }
      expect(list.map(&:v)).to eq([4, 5])
      expect(Ikra.__resident?).to be(false)
    end

    # Ruby 3.1's ObjectSpace::WeakMap breaks the C heap here.
    it "is counted right while the heap is compacted" do
      on, list = backend, cars
      30.times do |turn|
        Fibers.abandon { Ikra.resident(list) { Fiber.yield } }
        Ikra.resident(list) { list.peach(backend: on) { |car| car.go } }
        GC.compact if turn % 10 == 0
      end
      Fibers.collect
      Ikra.resident(list) { list.peach(backend: on) { |car| car.go } }
      expect(list.map(&:v)).to eq([32, 33])
      expect(Ikra::Resident.open?).to be(false)
    end
  end

  it "measures and explains that Fiber alone", :stress do
    enumerator = Enumerator.new { |yielder| yielder << Ikra.profile { Fiber.yield([1].pmap(backend: :cpu) { |x| x }) } }
    enumerator.next
    expect(Ikra.__measured?).to be(false)
    fiber = Fiber.new { Ikra.explain { [1].pmap(backend: :cpu) { |x| x }; Fiber.yield }.sections.size }
    fiber.resume
    expect(Ikra.profile { [1].pmap(backend: :cpu) { |x| x + 1 } }.sections.size).to eq(1)
    expect(Ikra.explain { [1].pmap(backend: :cpu) { |x| x + 1 } }.sections.size).to eq(1)
    expect(fiber.resume).to eq(1)
  end

  it "is not measured any more once its Fiber is abandoned", :stress do
    Fibers.abandon { Ikra.profile { Ikra.explain { Fiber.yield } } }
    Fibers.collect
    expect(Ikra.profile { [1].pmap(backend: :cpu) { |x| x + 1 } }.sections.size).to eq(1)
    expect(Ikra.__measured?).to be(false)
    expect(Ikra.__explaining?).to be(false)
  end
end
