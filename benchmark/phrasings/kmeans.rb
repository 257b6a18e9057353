# frozen_string_literal: true

require_relative "../programs/kmeans/model"

class Program::Kmeans
  # Points that look otherwise than those of the program.
  module Made
    def state(input)
      clusters = input.fetch(:cx).values.zip(input.fetch(:cy).values).map { |x, y| Cluster.new(x, y) }
      [input.fetch(:x).values.zip(input.fetch(:y).values).map { |x, y| point(x, y) }, clusters, input[:rounds]]
    end

    def compute((points, clusters, rounds))
      rounds.times do
        points.peach { |point| point.join(clusters) }
        clusters.each(&:settle)
      end
    end
  end

  # One that looks at all clusters.
  class Looking
    attr_reader :cluster

    def initialize(x, y)
      @x = x
      @y = y
      @cluster = nil
    end

    def join(clusters)
      @cluster = nearest(clusters)
      @cluster.sum_x += @x
      @cluster.sum_y += @y
      @cluster.count += 1
    end
  end

  # One with each and a guard.
  class Each < Looking
    def nearest(clusters)
      best = nil
      least = 0
      clusters.each do |cluster|
        dx = cluster.x - @x
        dy = cluster.y - @y
        distance = dx * dx + dy * dy
        next if best && distance >= least

        best = cluster
        least = distance
      end
      best
    end
  end

  phrasing "each, a guard, early next" do
    include Made

    def point(...) = Each.new(...)
  end

  # One with while over indices.
  class While < Looking
    def nearest(clusters)
      best = 0
      least = nil
      i = 0
      while i < clusters.size
        distance = (clusters[i].x - @x)**2 + (clusters[i].y - @y)**2
        if least.nil? || distance < least
          least = distance
          best = i
        end
        i += 1
      end
      clusters[best]
    end
  end

  phrasing "while, indices, squares by **, a variable that begins with nil" do
    include Made

    def point(...) = While.new(...)
  end

  # One with methods cut small.
  class Small < Looking
    def squared(number) = number * number
    def distance_to(cluster) = squared(cluster.x - @x) + squared(cluster.y - @y)
    def nearer(one, other) = distance_to(other) < distance_to(one) ? other : one
    def nearest(clusters) = clusters.reduce { |best, cluster| nearer(best, cluster) }
  end

  phrasing "methods cut small, reduce, a ternary" do
    include Made

    def point(...) = Small.new(...)
  end

  # One that makes an Array of distances.
  class Distances < Looking
    def nearest(clusters)
      distances = clusters.map { |cluster| (cluster.x - @x) * (cluster.x - @x) + (cluster.y - @y) * (cluster.y - @y) }
      clusters[distances.each_with_index.min_by { |distance, _| distance }.last]
    end
  end

  phrasing "an Array of distances, each_with_index.min_by" do
    include Made

    def point(...) = Distances.new(...)
  end

  # One with times from the first cluster on.
  class Times < Looking
    def nearest(clusters)
      best = clusters[0]
      least = distance(best)
      clusters.size.times do |i|
        other = distance(clusters[i])
        best, least = clusters[i], other if other < least
      end
      best
    end

    def distance(cluster)
      dx, dy = cluster.x - @x, cluster.y - @y
      dx * dx + dy * dy
    end
  end

  phrasing "times, assignments in parallel" do
    include Made

    def point(...) = Times.new(...)
  end

  phrasing "flat Arrays of numbers" do
    def state(input)
      [*%i[x y].map { |name| input.fetch(name).values }, *%i[cx cy cluster].map { |name| input.fetch(name).values.dup }, input[:rounds]]
    end

    def outputs((_, _, cx, cy, cluster, _), _result) = { cx: cx, cy: cy, cluster: cluster }

    def compute((x, y, cx, cy, cluster, rounds))
      rounds.times do
        sum_x, sum_y, count = Array.new(3) { Array.new(CLUSTERS, 0) }
        (0...x.size).peach do |i|
          best = 0
          least = (cx[0] - x[i]) * (cx[0] - x[i]) + (cy[0] - y[i]) * (cy[0] - y[i])
          1.upto(CLUSTERS - 1) do |k|
            distance = (cx[k] - x[i]) * (cx[k] - x[i]) + (cy[k] - y[i]) * (cy[k] - y[i])
            if distance < least
              least = distance
              best = k
            end
          end
          cluster[i] = best
          sum_x[best] += x[i]
          sum_y[best] += y[i]
          count[best] += 1
        end
        CLUSTERS.times do |k|
          next if count[k] == 0

          cx[k] = sum_x[k] / count[k]
          cy[k] = sum_y[k] / count[k]
        end
      end
    end
  end
end
