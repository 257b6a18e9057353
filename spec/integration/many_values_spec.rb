# frozen_string_literal: true

# Long lists, whose values all cores scan. They must find the same as one thread.
module ManyValues
  Thing = Struct.new(:size)

  class << self
    def kinds(list) = list.pmap { |x| x.is_a?(Thing) ? x.size : x }
    def twice(list) = list.pmap { |x| x * 2 }
    def looked_up(list) = (0...40_000).pmap { |i| list[i] }
  end
end

RSpec.describe "Lists of many values" do
  let(:numbers) { Array.new(40_000) { |i| i.odd? ? i : i * 0.5 } }

  it "are of the kinds that one thread finds in them, wherever these stand" do
    [nil, true, :symbol, 1e300, 0.0, ManyValues::Thing.new(7)].each do |other|
      [0, 16_383, 20_000, 39_999].each do |at|
        list = numbers.dup.tap { |all| all[at] = other }
        expected = list.map { |x| x.is_a?(ManyValues::Thing) ? x.size : x }
        expect([ManyValues.kinds(list), ManyValues.looked_up(expected)]).to eq([expected, expected])
      end
    end
  end

  it "have large Integers among small ones where they have" do
    list = Array.new(40_000) { |i| i }
    expect(ManyValues.twice(list)).to eq(list.map { |x| x * 2 })
    large = list.dup.tap { |all| all[30_000] = 2**62 }
    expect { ManyValues.twice(large) }.to raise_error(Ikra::IntegerOverflow)
    expect { large.pmap { |x| x * 3 } }.to raise_error(Ikra::IntegerOverflow)
  end

  it "refuse what kernels cannot hold at the element that is it" do
    list = numbers.dup.tap { |all| all[25_000] = 2**70 }
    expect { ManyValues.kinds(list) }.to raise_error(Ikra::CompileError, /element 25000/)
  end
end
