# frozen_string_literal: true

RSpec.describe "rand" do
  # The numbers of one seed on the reference backend. Every other backend must equal them.
  def drawn(backend, seed: 42, size: 50, &block)
    Ikra.srand(seed)
    (1..size).pmap(backend:, &block)
  end

  on_every_backend do
    it "draws Floats from 0 to 1" do
      values = drawn(backend) { rand }
      expect(values).to all(be_a(Float).and(be >= 0.0).and(be < 1.0))
      expect(values.uniq.size).to eq(50)
      expect(values).to eq(drawn(:reference) { rand })
    end

    it "draws Integers" do
      values = drawn(backend, size: 500) { rand(6) }
      expect(values.uniq.sort).to eq([0, 1, 2, 3, 4, 5])
      expect(values).to eq(drawn(:reference, size: 500) { rand(6) })
    end

    it "draws from Ranges" do
      integers = drawn(backend, size: 300) { rand(-2..4) }
      expect(integers.uniq.sort).to eq([-2, -1, 0, 1, 2, 3, 4])
      expect(drawn(backend, size: 300) { rand(-2...4) }.max).to eq(3)
      floats = drawn(backend) { rand(-1.0..2.5) }
      expect(floats).to all(be_a(Float).and(be >= -1.0).and(be <= 2.5))
      expect(floats).to eq(drawn(:reference) { rand(-1.0..2.5) })
    end

    it "draws anew at each call, element, tick and section" do
      differences = drawn(backend) { rand - rand }
      expect(differences.uniq.size).to eq(50)
      first = drawn(backend) { rand }
      second = (1..50).pmap(backend:) { rand }
      expect(second).not_to eq(first)
      sum = 0.0
      (1..2).peach(2, backend:) { sum += rand }
      expect(sum).to be > 0
    end

    it "repeats after the same seed" do
      expect(drawn(backend) { rand }).to eq(drawn(backend) { rand })
      expect(drawn(backend, seed: 1) { rand }).not_to eq(drawn(backend, seed: 2) { rand })
    end

    it "does not depend on the number of elements" do
      expect(drawn(backend, size: 10) { rand(100) }).to eq(drawn(backend, size: 1000) { rand(100) }.first(10))
    end

    it "is drawn by a chain's total as by the chain, where a kernel for both was refused" do
      chain = lambda do
        Ikra.srand(3)
        (0...100).to_a.plazy(backend:).map { |v| (v + rand) % 7.0 }
      end
      expect(chain.call.min_by { |v| v > 3.0 ? v : 5 }).to eq(chain.call.to_a.min_by { |v| v > 3.0 ? v : 5 })
    end

    it "is Kernel.rand and Random.rand too" do
      expect(drawn(backend) { Kernel.rand(10) }).to eq(drawn(backend) { rand(10) })
      expect(drawn(backend) { Random.rand(1.5) }).to all(be < 1.5)
    end

    it "takes a captured limit" do
      limit = 3
      expect(drawn(backend) { rand(limit) }).to all(be_between(0, 2))
      limit = 0
      expect(drawn(backend) { rand(limit) }).to all(be_a(Float))
    end
  end
end
