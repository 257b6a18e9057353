# frozen_string_literal: true

module ArraysInObjects
  class Cell
    attr_reader :neighbors, :value, :history

    def initialize(value)
      @value = value
      @neighbors = []
      @history = [0, 0, 0]
    end

    def sum_around
      sum = 0
      @neighbors.each { |cell| sum += cell.value }
      sum
    end

    def remember(tick)
      @history[tick % 3] = @value + tick
    end

    def weight = @value
  end

  class Heavy < Cell
    def weight = @value * 100
  end

  class Table
    attr_accessor :rows

    def initialize(*rows)
      @rows = rows
    end
  end
end

RSpec.describe "Arrays in objects" do
  on_every_backend do
    it "joins objects with many others" do
      expect do |run|
        cells = Array.new(20) { |i| ArraysInObjects::Cell.new(i) }
        cells.each_with_index { |cell, i| (i % 5).times { |k| cell.neighbors << cells[(i * 3 + k) % 20] } }
        run.pmap(cells) { |cell| cell.sum_around }
      end.to be_same_as_ruby
    end

    it "joins more objects than are traced at once" do
      expect do |run|
        cells = Array.new(1_000) { |i| ArraysInObjects::Cell.new(i) }
        cells.each_with_index { |cell, i| cell.neighbors.push(cells[i - 1], cells[(i * 7) % 1_000], cells[(i + 1) % 1_000]) }
        run.pmap(cells) { |cell| cell.sum_around }
      end.to be_same_as_ruby
    end

    it "holds objects of several classes, numbers and nil" do
      expect do |run|
        heavy = ArraysInObjects::Heavy.new(2)
        cells = [ArraysInObjects::Cell.new(1), heavy]
        cells[0].neighbors.push(heavy, cells[0], nil, 5, 2.5)
        cells[1].neighbors.push(heavy)
        run.pmap(cells) do |cell|
          sum = 0
          cell.neighbors.each { |n| sum += n.is_a?(Numeric) ? n : n ? n.weight : 1000 }
          sum
        end
      end.to be_same_as_ruby
    end

    it "is one array where two objects share it" do
      expect do |run|
        table = [1, 2, 3]
        tables = [ArraysInObjects::Table.new(1), ArraysInObjects::Table.new(2)]
        tables.each { |t| t.rows = table }
        run.pmap(tables) { |t| t.rows }
      end.to be_same_as_ruby
    end

    it "may change hands" do
      expect do |run|
        spare = [7, 8]
        tables = [ArraysInObjects::Table.new(1), ArraysInObjects::Table.new(2, 3)]
        run.peach(tables) { |t| t.rows = spare if t.rows.size == 1 }
        run.pmap(tables) { |t| t.rows[0] }
      end.to be_same_as_ruby
    end

    it "is written at the tick" do
      expect do |run|
        cells = Array.new(5) { |i| ArraysInObjects::Cell.new(i) }
        run.peach(cells, 3) { |cell| cell.remember(cell.history[0] + 1) }
        cells
      end.to be_same_as_ruby
    end

    it "nests" do
      expect do |run|
        tables = [ArraysInObjects::Table.new([1, 2], [3], []), ArraysInObjects::Table.new([4])]
        run.pmap(tables) do |t|
          sum = 0
          t.rows.each_with_index { |row, i| row.each { |v| sum += v * (i + 1) } }
          sum
        end
      end.to be_same_as_ruby
    end

    it "may hold itself" do
      expect do |run|
        loop_array = [1]
        loop_array << loop_array
        tables = [ArraysInObjects::Table.new(1)]
        tables[0].rows = loop_array
        run.pmap(tables) { |t| t.rows[1].equal?(t.rows) }
      end.to be_same_as_ruby
    end

    it "sees an array that has grown since the last call" do
      expect do |run|
        tables = [ArraysInObjects::Table.new(1)]
        sizes = []
        4.times do |i|
          sizes << run.pmap(tables) { |t| t.rows.size * 10 + t.rows.last }
          tables[0].rows << i
        end
        sizes
      end.to be_same_as_ruby
    end
  end
end
