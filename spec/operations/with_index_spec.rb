# frozen_string_literal: true

RSpec.describe "Enumerators of parallel methods" do
  %i[map select reject partition filter_map flat_map min_by max_by minmax_by group_by find find_index].each do |method|
    it "#{method}.with_index takes the index from an offset on" do
      [[], [4], [4, -5, 6, 1]].each do |list|
        expect(list).to do_as_ruby(method).with_index(1) { |x, i| (x * i) % 3 }
        expect(list).to do_as_ruby(method).with_index { |x, i| i > 1 ? x : nil.to_i }
      end
    end
  end

  it "each_with_index and each_with_index of operations without an offset are the same" do
    expect([5, 6].pmap.each_with_index { |x, i| x * i }).to eq [0, 6]
    expect([5, 6].pmap_with_index { |x, i| x * i }).to eq [0, 6]
    sum = 0
    list = [5, 6]
    expect(list.peach_with_index { |x, i| sum += x * i }).to equal list
    expect(list.peach.with_index(1) { |x, i| sum += x * i }).to equal list
    expect(sum).to eq 23
  end

  it "counts ticks and indices apart" do
    sum = 0
    [1, 2].peach(3).with_index(10) { |x, i| sum += x * i * Ikra.tick }
    expect(sum).to eq 96
  end

  it "keeps elements that are arrays whole" do
    expect([[1, 2], [3, 4]].pmap.with_index { |pair, i| pair[i] }).to eq [1, 4]
    expect([[1, 2], [3, 4]].pmap.with_index { |(a, b), i| a * 10 + b + i }).to eq [12, 35]
  end

  it "takes a Symbol, which is sent to the element with the index" do
    expect([5, 6].pmap.with_index(2, &:+)).to eq [7, 9]
  end

  it "reads the offset anew at each call" do
    run = ->(offset) { [1, 1].pmap.with_index(offset) { |x, i| x + i } }
    expect([run.call(1), run.call(5), run.call(nil)]).to eq [[2, 3], [6, 7], [1, 2]]
  end

  it "is an Enumerator for whatever else is asked" do
    enumerator = [3, 4].pmap
    expect(enumerator).to be_a Enumerator
    expect([enumerator.size, enumerator.next, enumerator.next, enumerator.to_a]).to eq [2, 3, 4, [3, 4]]
    expect(enumerator.each { |x| x * 2 }).to eq [6, 8]
    expect([3, 4].pselect.each { |x| x > 3 }).to eq [4]
    expect([enumerator.with_index(1).to_a, enumerator.each_with_index.map { |x, i| x * i }]).to eq [[[3, 1], [4, 2]], [0, 4]]
    expect { [1].pmap.with_index("a") { |x, i| x + i } }.to raise_error(TypeError, "no implicit conversion of String into Integer")
  end

  it "leaves the operation by break" do
    expect([1, 2, 3].pselect.with_index { |x, i| break [x, i] if i == 1 }).to eq [2, 1]
  end
end
