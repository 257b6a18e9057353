# frozen_string_literal: true

module WriteBack
  class Cell
    attr_accessor :a, :b, :big

    def initialize(a, b)
      @a = a
      @b = b
      @big = 1e300 * a
    end
  end
end

RSpec.describe "Write-back" do
  # Identities of Floats on the heap, which show whether a slot was assigned anew.
  def identities(cells) = cells.map { |cell| cell.big.object_id }

  on_every_backend do
    it "leaves alone what no kernel wrote" do
      cells = Array.new(10) { |i| WriteBack::Cell.new(i + 1, 0.5) }
      before = identities(cells)
      cells.peach(backend:) { |cell| cell.a += cell.big > 0 ? 1 : 0 }
      expect(identities(cells)).to eq(before)
      expect(cells.map(&:a)).to eq((2..11).to_a)
    end

    it "leaves alone what a kernel wrote with the value that was there", :stress do
      cells = Array.new(10) { |i| WriteBack::Cell.new(i + 1, 0.5) }
      before = identities(cells)
      cells.peach(backend:) { |cell| cell.big = cell.big * (cell.a == 5 ? 2 : 1) }
      expect(identities(cells).zip(before).count { |after, former| after != former }).to eq(1)
    end

    it "does not add instance variables that no path wrote", :stress do
      cell = WriteBack::Cell.allocate
      [cell].peach(backend:) { |c| c.a = 1 if c.b }
      expect(cell.instance_variables).to be_empty
    end

    it "keeps 0.0 apart from -0.0, and 1 from 1.0", :stress do
      expect do |run|
        cells = [WriteBack::Cell.new(1, 0.0), WriteBack::Cell.new(1, -0.0), WriteBack::Cell.new(1.0, 0.0)]
        run.peach(cells) do |cell|
          cell.b = -cell.b
          cell.a = cell.a.to_f
        end
      end.to be_same_as_ruby
    end

    it "writes an array's changed elements only", :stress do
      array = [1e300, 2e300, 3e300]
      ids = array.map(&:object_id)
      [0].peach(backend:) { |i| array[i] = 5.0 }
      expect(array).to eq([5.0, 2e300, 3e300])
      expect(array[1..].map(&:object_id)).to eq(ids[1..])
    end
  end
end
