# frozen_string_literal: true

# Privatized reductions: of a column that a section only adds to, and that has few rows, each thread or block of threads
# first sums its own copy.
module PrivatizedReductions
  class Cluster
    attr_accessor :count, :sum, :bits, :total

    def initialize(sum = 0)
      @count = 0
      @sum = sum
      @bits = 0
      @total = 0.0
    end
  end

  Point = Struct.new(:value, :cluster)

  module_function

  # Points, each of which belongs to one of a few clusters.
  def points(count, clusters) = Array.new(count) { |i| Point.new((i * 7919 % 2003) - 1000, clusters[i * i % clusters.size]) }
end

RSpec.describe "Sums in few objects" do
  on_every_backend do
    it "are exact" do
      expect do |run|
        clusters = Array.new(16) { PrivatizedReductions::Cluster.new }
        run.peach(PrivatizedReductions.points(20_000, clusters)) do |point|
          cluster = point.cluster
          cluster.count += 1
          cluster.sum -= point.value
          cluster.bits ^= point.value
          cluster.total += point.value
        end
        clusters
      end.to be_same_as_ruby
    end

    it "may be of one object, tick after tick" do
      expect do |run|
        all = PrivatizedReductions::Cluster.new(5)
        run.peach((1..5000).to_a, 3) { |x| all.sum += x }
        all
      end.to be_same_as_ruby
    end

    it "may be in an array, of any length" do
      [1, 100, 1500, 10_000].each do |size|
        expect do |run|
          counts = Array.new(size, 2)
          run.peach((0...20_000).to_a) { |x| counts[x * x % size] += x }
          counts
        end.to be_same_as_ruby
      end
    end

    it "may be large where they began far on the other side of 0" do
      expect do |run|
        all = PrivatizedReductions::Cluster.new(-2**63)
        run.peach(Array.new(20_000) { |i| i < 3 ? 2**62 : 1 }) { |x| all.sum += x }
        all
      end.to be_same_as_ruby
    end

    it "that leave 64 bits raise, and nothing is changed" do
      all = PrivatizedReductions::Cluster.new(2**63 - 10_000)
      list = [1] * 20_000
      expect { list.peach(backend:) { |x| all.sum += x; all.count += 1 } }.to raise_error(Ikra::IntegerOverflow) do |error|
        expect(error.ikra.index).to be_between(0, list.size - 1)
        expect(error.backtrace.first).to start_with("#{__FILE__}:#{__LINE__ - 2}")
      end
      expect([all.sum, all.count]).to eq([2**63 - 10_000, 0])
    end

    it "that leave 64 bits are told of behind what an element raises" do
      all = PrivatizedReductions::Cluster.new(2**63 - 10_000)
      list = Array.new(20_000) { |i| i == 3 ? 0 : 1 }
      expect { list.peach(backend:) { |x| all.sum += 1 / x } }.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq(3) }
      expect(all.sum).to eq(2**63 - 10_000)
    end

    it "end where the section is left" do
      expect do |run|
        all = PrivatizedReductions::Cluster.new
        run.peach((0...20_000).to_a) do |x|
          all.sum += x
          break if x == 12_345
        end
        all
      end.to be_same_as_ruby
    end
  end
end
