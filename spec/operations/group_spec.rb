# frozen_string_literal: true

RSpec.describe "pgroup_by, puniq, ptally" do
  %i[group_by uniq].each do |method|
    it "#{method} does what Ruby does, in its order" do
      [0, 1, 2, 31, 32, 33, 1000].each do |size|
        list = Array.new(size) { |i| (i * 7919) % 101 - 50 }
        expect(list).to(do_as_ruby(method) { |x| x % 7 })
        expect(list).to(do_as_ruby(method) { |x| x / 3.0 })
        expect(list).to(do_as_ruby(method) { |x| x > 0 ? nil : x.even? })
        expect(list).to(do_as_ruby(method) { |x| [x % 3, x % 2] })
      end
    end

    it "#{method} tells 1 and 1.0 apart, and keeps 0.0 and -0.0 as Ruby does" do
      expect([1, 1.0, 2, 2.0]).to(do_as_ruby(method) { |x| x })
      expect([0.0, -0.0]).to(do_as_ruby(method) { |x| x })
    end

    it "#{method} takes objects for keys and for elements" do
      people = Array.new(50) { |i| DoAsRuby::Person.new(%i[a b c][i % 3], i % 5) }
      friends = people.each_slice(7).map(&:first)
      owner = Struct.new(:friend)
      list = people.each_index.map { |i| owner.new(friends[i % friends.size]) }
      expect { people }.to do_as_ruby(method, &:name)
      expect(list.public_send(:"p#{method}", &:friend)).to eq(list.public_send(method, &:friend))
    end

    it "#{method} of a Range" do
      expect(1..10).to(do_as_ruby(method) { |x| x % 3 })
    end
  end

  it "counts and groups many keys as Ruby does, in its order" do
    kinds = [:a, :b, nil, true, false, 7, -8]
    lists = [
      Array.new(70_000) { |i| (i * 7919) % 1009 },
      Array.new(70_000) { |i| ((i * 7919) % 1009) / 8.0 },
      Array.new(70_000) { |i| kinds[(i * i) % 11 % 7] },
      Array.new(70_000) { |i| i.even? ? 0.0 : -0.0 },
      Array.new(70_000) { |i| (i % 100) + 0.5 } << 3,
      Array.new(70_000) { |i| i % 100 == 3 ? 2**80 : i % 100 },
      Array.new(70_000) { |i| i % 10 == 3 ? Float::INFINITY : 1.0 },
      Array.new(5_000) { |i| "key #{i % 7}" },
      Array.new(70_000, &:itself)
    ]
    lists.each do |list|
      expect(list.ptally.to_a).to eq list.tally.to_a
      expect(list.ptally.keys.map(&:class)).to eq list.tally.keys.map(&:class)
    end
    lists.first(4).each do |list|
      expect((0...list.size).to_a.pgroup_by(backend: :cpu) { |i| list[i] }.to_a).to eq (0...list.size).group_by { |i| list[i] }.to_a
      expect((0...list.size).to_a.puniq(backend: :cpu) { |i| list[i] }).to eq (0...list.size).uniq { |i| list[i] }
    end
    nan = [Float::NAN, 1.0, 0.0 / 0.0] * 20
    expect(nan.ptally.size).to eq nan.tally.size
  end

  it "tells each what it tells of many" do
    expect(Array.new(100_000) { |i| i % 13 }).to(do_as_ruby(:group_by, on: :cpu) { |x| x % 5 })
  end

  it "counts and drops what is there without a block" do
    expect([1, 1.0, :a, 1, nil]).to do_as_ruby(:tally)
    expect([1, 1.0, :a, 1, nil]).to do_as_ruby(:uniq)
    expect(1..3).to do_as_ruby(:tally)
  end
end
