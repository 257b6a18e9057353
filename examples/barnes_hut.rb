# frozen_string_literal: true

# Gravity between many bodies in n log n steps (Barnes and Hut): bodies that are far away are taken as one.
#
#   ruby -Ilib examples/barnes_hut.rb [bodies]

require_relative "support/comparison"

module BarnesHut
  class Body
    attr_reader :x, :y, :mass

    def initialize(x, y, mass)
      @x = x
      @y = y
      @mass = mass
      @dx = @dy = 0.0
    end

    def pull(other_x, other_y, other_mass)
      away_x = other_x - @x
      away_y = other_y - @y
      distance = Math.sqrt(away_x * away_x + away_y * away_y + 0.01)
      strength = other_mass / (distance * distance * distance)
      @dx += away_x * strength * 0.02
      @dy += away_y * strength * 0.02
    end

    def move
      @x += @dx * 0.02
      @y += @dy * 0.02
    end
  end

  # One body alone in its square.
  class Leaf
    attr_reader :body

    def initialize(body)
      @body = body
    end

    def attract(body)
      body.pull(@body.x, @body.y, @body.mass) unless body.equal?(@body)
    end

    def summarize = [@body.x * @body.mass, @body.y * @body.mass, @body.mass]
  end

  # A square of four squares, each of them empty (nil), a leaf or a branch.
  class Branch
    OPENING = 0.5

    def initialize(left, top, size)
      @left = left
      @top = top
      @size = size
      @children = [nil, nil, nil, nil]
    end

    def insert(body)
      half = @size / 2
      right = body.x >= @left + half ? 1 : 0
      below = body.y >= @top + half ? 1 : 0
      place = below * 2 + right
      case child = @children[place]
      when nil then @children[place] = Leaf.new(body)
      when Branch then child.insert(body)
      when Leaf
        branch = Branch.new(@left + right * half, @top + below * half, half)
        branch.insert(child.body)
        branch.insert(body)
        @children[place] = branch
      end
    end

    def summarize
      x, y, @mass = @children.compact.map(&:summarize).transpose.map(&:sum)
      @x = x / @mass
      @y = y / @mass
      [x, y, @mass]
    end

    def attract(body)
      distance = Math.hypot(@x - body.x, @y - body.y)
      if @size / distance < OPENING
        body.pull(@x, @y, @mass)
      else
        @children.each { |child| child&.attract(body) }
      end
    end
  end

  def self.bodies(count, random: Random.new(13))
    Array.new(count) do
      angle = random.rand * 2 * Math::PI
      radius = random.rand**2
      Body.new(radius * Math.cos(angle), radius * Math.sin(angle), 1.0 / count)
    end
  end

  def self.tree(bodies)
    left, right = bodies.map(&:x).minmax
    top, bottom = bodies.map(&:y).minmax
    root = Branch.new(left, top, [right - left, bottom - top].max * 1.01)
    bodies.each { |body| root.insert(body) }
    root.tap(&:summarize)
  end

  # Where the bodies are after a few steps.
  def self.run(count, steps: 5)
    bodies = bodies(count)
    steps.times do
      root = tree(bodies)
      bodies.peach { |body| root.attract(body) }
      bodies.peach(&:move)
    end
    bodies.map { |body| [body.x, body.y] }
  end
end

if $PROGRAM_NAME == __FILE__
  places = Comparison.run(5_000) { |count| BarnesHut.run(count) }
  puts format("The last body is at (%.6f, %.6f).", *places.last)
end
