# frozen_string_literal: true

require_relative "graph"

# A story to tell while the garbage collector runs.
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

  # The graph of what becomes of some nodes.
  def self.story(backend)
    nodes = Array.new(20) { |i| Node.new(i * 1.5) }
    nodes.each_with_index { |node, i| node.link = nodes[i * 7 % 20] }
    sum = 0
    nodes.peach(3, backend:) { |node| node.step }
    nodes.peach(backend:) { |node| sum += node.list.size }
    Graph.of(nodes.pmap(backend:) { |node| node.value }, sum, nodes.pmap(backend:) { |node| node.link }, nodes)
  end
end
