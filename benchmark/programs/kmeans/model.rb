# frozen_string_literal: true

class Program::Kmeans
  class Cluster
    attr_reader :x, :y
    attr_accessor :sum_x, :sum_y, :count

    def initialize(x, y)
      @x = x
      @y = y
      @sum_x = @sum_y = @count = 0
    end

    # Moves to the middle of its points.
    def settle
      if @count > 0
        @x = @sum_x / @count
        @y = @sum_y / @count
      end
      @sum_x = @sum_y = @count = 0
    end
  end

  class Point
    attr_reader :cluster

    def initialize(x, y)
      @x = x
      @y = y
      @cluster = nil
    end

    def join(clusters)
      @cluster = clusters.min_by do |cluster|
        dx = cluster.x - @x
        dy = cluster.y - @y
        dx * dx + dy * dy
      end
      @cluster.sum_x += @x
      @cluster.sum_y += @y
      @cluster.count += 1
    end
  end
end
