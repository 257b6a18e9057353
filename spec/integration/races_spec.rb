# frozen_string_literal: true

module Races
  class Cell
    attr_accessor :value, :other, :log

    def initialize(value)
      @value = value
      @log = [0, 0, 0]
    end

    def copy = @value = @other.value
    def push = @other.value = @value
    def add(n) = @other.value += n
    def own = @value += 1
  end

  def self.ring(count)
    cells = Array.new(count) { |i| Cell.new(i) }
    cells.each_with_index { |cell, i| cell.other = cells[(i + 1) % count] }
  end
end

RSpec.describe "Data races" do
  it "are found where one element reads what another writes" do
    cells = Races.ring(4)
    line = Races::Cell.instance_method(:copy).source_location.last
    expect { cells.peach(check: :races) { |cell| cell.copy } }.to raise_error(Ikra::RaceError) { |error|
      expect(error.message).to match(/value is read by element 0 \(at .*:#{line}\) and written by element 1 \(at .*:#{line}\) in tick 0/)
      expect(error.ikra.index).to eq(1)
    }
    expect(cells.map(&:value)).to eq([0, 1, 2, 3])
  end

  it "are found where two elements write one slot, of an object or of an array" do
    cells = Races.ring(3)
    cells.each { |cell| cell.other = cells[0] }
    expect { cells.peach(check: :races) { |cell| cell.push } }.to raise_error(Ikra::RaceError, /written by element 0.*written by element 1/)
    list = [0, 0]
    expect { [0, 2, 4].peach(check: :races) { |i| list[i % 2] = i } }.to raise_error(Ikra::RaceError, /an element of an array is written by element 0 .*element 1 /)
  end

  it "are found by tick" do
    cells = Races.ring(2)
    expect { cells.peach(3, check: :races) { |cell| cell.copy if Ikra.tick == 2 } }.to raise_error(Ikra::RaceError) { |error|
      expect(error.ikra.tick).to eq(2)
    }
  end

  it "are none where each writes its own, or all only add" do
    cells = Races.ring(4)
    cells.peach(5, check: :races) { |cell| cell.own }
    expect(cells.map(&:value)).to eq([5, 6, 7, 8])
    cells.peach(check: :races) { |cell| cell.add(10) }
    expect(cells.map(&:value)).to eq([15, 16, 17, 18])
    expect((0...5).pmap(check: :races) { |i| list = [i]; list << (i * 2); list.sum }).to eq([0, 3, 6, 9, 12])
  end

  it "are none between occurrences of one object" do
    cell = Races::Cell.new(0)
    [cell, cell, cell].peach(check: :races) { |c| c.own }
    expect(cell.value).to eq(3)
  end

  it "are looked for where the configuration says so" do
    old = Ikra.config.check
    Ikra.configure { |c| c.check = :races }
    expect { Races.ring(4).peach { |cell| cell.copy } }.to raise_error(Ikra::RaceError)
  ensure
    Ikra.configure { |c| c.check = old }
  end
end
