# frozen_string_literal: true

require_relative "graph"

# A story that runs while the garbage collector does, and a period without it.
module Garbage
  LIST = [10, 20, 30].freeze

  class Node
    attr_accessor :value, :link, :list

    def initialize(value, link = nil)
      @value = value
      @link = link
      @list = [value, value * 2.0]
    end

    def step
      @value = @value * 3 + (@link ? @link.list.size : 0)
      @list[1] = @value / 3.0
      @link, @spare = @spare, @link
    end
  end

  class Cell
    attr_reader :number

    def initialize(number)
      @number = number
      @rate = number * 1.5
      @other = self
    end

    def state = [@number, @rate, @other.number]

    # Every third Float and every fifth Integer is beyond what a VALUE itself holds.
    def take(fresh)
      @other = fresh[@number % 7]
      @rate = (@number % 3).zero? ? @rate * 1e-300 : @rate + 0.5
      @number = (@number % 5).zero? ? @number + 0x4000_0000_0000_0000 : @number + 1
    end
  end

  # The value of a block during which nothing is collected, so that the garbage of the block can be counted.
  def self.uncollected
    GC.start # objects that were found already are swept even while the collector is off
    GC.disable
    yield
  ensure
    GC.enable
  end

  # Gives all cells new objects that nothing else refers to. Without a backend plain Ruby does.
  def self.fill(cells, backend)
    fresh = Array.new(7) { |i| Cell.new(i) }
    backend ? cells.peach(backend:) { |cell| cell.take(fresh) } : cells.each { |cell| cell.take(fresh) }
  end

  # The graph of some nodes at the end of the story.
  def self.story(backend)
    nodes = Array.new(20) { |i| Node.new(i * 1.5) }
    nodes.each_with_index { |node, i| node.link = nodes[i * 7 % 20] }
    sum = 0
    nodes.peach(3, backend:) { |node| node.step }
    nodes.peach(backend:) { |node| sum += node.list.size }
    Graph.of(nodes.pmap(backend:) { |node| node.value }, sum, nodes.pmap(backend:) { |node| node.link }, nodes)
  end
end
