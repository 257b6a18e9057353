# frozen_string_literal: true

module Sharing
  class Node
    attr_accessor :value, :link

    def initialize(value, link = nil)
      @value = value
      @link = link
    end

    def step
      @link = @link.link if @link
      @value += 1
    end

    def visit
      @link.value
    end
  end

  class Street
    attr_reader :length, :neighbors
    attr_accessor :count

    def initialize(length)
      @length = length
      @neighbors = []
      @count = 0
    end
  end

  class Car
    attr_reader :street, :at

    def initialize(street, at)
      @street = street
      @at = at
    end

    def move(distance)
      @at += distance
      return if @at < @street.length

      @at -= @street.length
      @street = @street.neighbors[@at.to_i % @street.neighbors.size]
    end

    def enter
      @street.count += 1
    end
  end

  # A ring of streets, each with two next streets.
  def self.streets(count)
    streets = Array.new(count) { |i| Street.new(5.0 + i) }
    streets.each_with_index { |street, i| street.neighbors.push(streets[(i + 1) % count], streets[(i * 3 + 2) % count]) }
  end
end

RSpec.describe "Shared references and cycles" do
  on_every_backend do
    it "keeps one object one object", :stress do
      expect do |run|
        shared = Sharing::Node.new(5)
        nodes = Array.new(4) { Sharing::Node.new(0, shared) }
        results = run.pmap(nodes) { |node| node.link }
        [nodes, results.map { |node| node.equal?(shared) }]
      end.to be_same_as_ruby
    end

    it "follows cycles", :stress do
      expect do |run|
        nodes = Array.new(7) { |i| Sharing::Node.new(i) }
        nodes.each_with_index { |node, i| node.link = nodes[i * 2 % 7] }
        nodes[3].link = nodes[3]
        run.pmap(nodes) do |node|
          sum = 0
          at = node
          10.times do
            sum = sum * 3 % 1_000_003 + at.value
            at = at.link
          end
          sum
        end
      end.to be_same_as_ruby
    end

    it "moves references about, and they lead to the very objects" do
      expect do |run|
        streets = Sharing.streets(6)
        cars = Array.new(30) { |i| Sharing::Car.new(streets[i % 6], i / 10.0) }
        run.peach(cars, 50) { |car| car.move(1.25) }
        [cars, streets, cars.map { |car| streets.index { |street| street.equal?(car.street) } }]
      end.to be_same_as_ruby
    end

    it "counts in shared objects" do
      expect do |run|
        streets = Sharing.streets(4)
        cars = Array.new(50) { |i| Sharing::Car.new(streets[i * i % 4], 0.0) }
        run.peach(cars, 3) { |car| car.enter }
        streets
      end.to be_same_as_ruby
    end

    it "runs one object that stands several times in the array in the order of the array" do
      expect do |run|
        a = Sharing::Node.new(1)
        b = Sharing::Node.new(100)
        results = run.pmap([a, b, a, a, b]) { |node| node.value = node.value * 2 + 1 }
        [results, a, b]
      end.to be_same_as_ruby
    end

    it "sees objects that are made between calls", :stress do
      expect do |run|
        nodes = [Sharing::Node.new(1)]
        run.peach(nodes) { |node| node.value += 1 }
        nodes << Sharing::Node.new(2.5) << Sharing::Node.new(3, nodes.first)
        run.peach(nodes) { |node| node.value += 1 }
        nodes.shift
        run.peach(nodes) { |node| node.value += node.link ? node.link.value : 0 }
        nodes
      end.to be_same_as_ruby
    end

    it "follows a list as far as it goes", :slow do
      head = nil
      1_000_000.times { |i| head = Sharing::Node.new(i % 10, head) }
      sum = [head].pmap(backend:) do |node|
        total = 0
        while node
          total += node.value
          node = node.link
        end
        total
      end
      expect(sum).to eq([4_500_000])
    end

    it "follows a list of many thousands" do
      head = nil
      20_000.times { |i| head = Sharing::Node.new(i % 10, head) }
      expect do |node|
        total = 0
        while node
          total += node.value
          node = node.link
        end
        total
      end.to be_same_as_ruby.over(head)
    end
  end
end
