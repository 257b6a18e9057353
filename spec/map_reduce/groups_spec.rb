# frozen_string_literal: true

RSpec.describe Ikra::Groups do
  groups = -> { %w[the cat the dog a cat].pmap_reduce(:+, lazy: true) { |word, out| out.emit(word, 1) } }

  it "has the pairs of the Hash, in order" do
    found = groups.call
    expect(found.size).to eq 4
    expect(found["the"]).to eq 2
    expect(found["dogs"]).to be_nil
    expect(found.to_h).to eq("the" => 2, "cat" => 2, "dog" => 1, "a" => 1)
    expect(found.each.to_a).to eq found.to_h.to_a
    expect(found.map(&:first)).to eq %w[the cat dog a]
    expect(found.inspect).to eq "#<Ikra::Groups of 4>"
  end

  it "feeds a second pass" do
    found = groups.call.map_reduce(:+) { |(word, count), out| out.emit(word.size, count) }
    expect(found).to eq(3 => 5, 1 => 1)
  end

  it "has the greatest values, of equal ones the first" do
    expect(groups.call.top(2)).to eq [["the", 2], ["cat", 2]]
    expect(groups.call.top(0)).to eq []
    expect({ a: 1, b: 3.5, c: 3 }.top(2)).to eq [[:b, 3.5], [:c, 3]]
    expect { { a: 1 }.top(-1) }.to raise_error(ArgumentError, /negative/)
    expect { { a: 1, b: nil }.top(1) }.to raise_error(ArgumentError, /comparison/)
  end
end
