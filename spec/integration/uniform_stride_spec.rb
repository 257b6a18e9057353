# frozen_string_literal: true

# Where all arrays of a kind are equally long, sections assume that those of a column have a uniform stride, and compute
# where each is. The assumption is checked before every launch. Where it fails, the section is compiled without it.
RSpec.describe "arrays with a uniform stride" do
  def sums(rows, width)
    (0...rows.size).pmap do |row|
      sum = 0
      width.times { |at| sum += rows[row][at] * (at + 1) }
      sum
    end
  end

  def expected(rows, width) = rows.map { |row| (0...width).sum { |at| row[at] * (at + 1) } }

  let(:rows) { Array.new(20) { |row| Array.new(6) { |at| 10 * row + at } } }

  def explained(&) = Ikra.explain(&).sections.last.code(:ir)

  it "are not looked up" do
    last = ->(list) { (0...list.size).pmap { |row| list[row][5] } }
    expect(last.call(rows)).to eq rows.map(&:last)
    expect(explained { last.call(rows) }).to match(/^stride c\d+ from/)
  end

  it "may have other places and lengths in the next call" do
    [rows, rows.first(3), rows.map { |row| row + [7] }, rows.map { |row| row.first(2) }, [[1, 2]]].each do |list|
      width = list.first.size
      expect(sums(list, width)).to eq expected(list, width)
    end
  end

  it "are looked up once they were of several lengths, in another order, or shared" do
    shared = [rows[0], rows[1], rows[0], rows[2]]
    ragged = rows.each_with_index.map { |row, at| at.even? ? row : [*row, 99] }
    first = ->(list) { (0...list.size).pmap { |row| list[row][0] + list[row].size } }
    [rows, shared, ragged, rows].each { |list| expect(first.call(list)).to eq(list.map { |row| row[0] + row.size }) }
    expect(explained { first.call(rows) }).not_to match(/^stride/)
  end

  it "raise what Ruby raises beyond their end" do
    short = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    expect { short.each_index.to_a.peach { |row| short[row].fetch(3) } }.to raise_error(IndexError)
    expect { sums(short, 4) }.to raise_error(NoMethodError)
  end

  it "may be empty" do
    empty = Array.new(5) { [] }
    expect((0...5).pmap { |row| empty[row].sum { |x| x * 2 } }).to eq [0] * 5
  end

  it "may be of objects, whose rows do not begin at zero" do
    other = Class.new { attr_reader(:list) && define_method(:initialize) { |list| @list = list } }
    stub_const("Rows", Class.new(other) { def total = @list.sum })
    stub_const("OtherRows", Class.new(other) { def total = @list.sum * 2 })
    objects = rows.each_with_index.map { |row, at| at.odd? ? Rows.new(row) : OtherRows.new(row) }
    expect(objects.pmap(&:total)).to eq objects.map(&:total)
    expect(objects.reverse.pmap(&:total)).to eq objects.reverse.map(&:total)
  end

  it "are what they were changed to between calls in which columns stay" do
    list = Array.new(4) { |row| [row, row + 1] }
    Ikra.resident do
      expect(sums(list, 2)).to eq expected(list, 2)
      list[1], list[2] = list[2], list[1]
      list[3] = list[0]
      expect(sums(list, 2)).to eq expected(list, 2)
    end
    expect(sums(list, 2)).to eq expected(list, 2)
  end

  it "are looked up where the block writes to the column" do
    grid = Array.new(4) { |row| [row, row] }
    spare = [100, 200]
    (0...4).peach { |row| grid[row] = spare if row.odd? }
    expect(grid).to eq [[0, 0], spare, [2, 2], spare]
  end
end
