# frozen_string_literal: true

# Clusters points around centres (Lloyd's algorithm), in ten rounds, with a call for each. Points join the nearest
# cluster and add themselves to it.
#
# Coordinates are Integers, as on a picture: sums are exact in any order.
class Program::Kmeans < Program
  ROUNDS = 10
  CLUSTERS = 16
  sizes tiny: 40, small: 50_000, normal: 500_000, ruby: 20_000, scaling: [100, 1_000, 10_000, 100_000, 1_000_000]

  def input(size, random)
    homes = Array.new(CLUSTERS) { [random.rand(100_000), random.rand(100_000)] }
    points = Array.new(size) { homes.sample(random: random).map { |place| place + random.rand(20_000) - 10_000 } }
    centres = points.sample(CLUSTERS, random: random)
    Columns.new.input(:rounds, :int64, ROUNDS).input(:x, :int64, points.map(&:first)).input(:y, :int64, points.map(&:last))
           .output(:cx, :int64, centres.map(&:first)).output(:cy, :int64, centres.map(&:last)).output(:cluster, :int64, [0] * size)
  end

  def state(input)
    clusters = input.fetch(:cx).values.zip(input.fetch(:cy).values).map { |x, y| Cluster.new(x, y) }
    points = input.fetch(:x).values.zip(input.fetch(:y).values).map { |x, y| Point.new(x, y) }
    [points, clusters, input[:rounds]]
  end

  def changes? = true

  def outputs((points, clusters, _), _result)
    numbers = clusters.each_with_index.to_h.compare_by_identity
    { cx: clusters.map(&:x), cy: clusters.map(&:y), cluster: points.map { |point| numbers[point.cluster] } }
  end

  def work(input, outputs) = { flops: 6 * CLUSTERS * input[:rounds] * outputs[:cluster].size, bytes: 24 * input[:rounds] * outputs[:cluster].size }
end
