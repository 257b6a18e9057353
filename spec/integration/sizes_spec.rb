# frozen_string_literal: true

RSpec.describe "Numbers of elements" do
  on_every_backend do |name|
    it "may be none" do
      expect { |run| run.pmap([]) { |x| x + 1 } }.to be_same_as_ruby
      sum = 7
      [].peach(3, backend:) { |x| sum += x }
      (1...1).peach(backend:) { |x| sum += x }
      (5..1).pmap(backend:) { |x| x }
      expect(sum).to eq(7)
    end

    it "may be one" do
      expect { |x| x * 2 }.to be_same_as_ruby.over(21)
      expect((7..7).pmap(backend:) { |x| x * 2 }).to eq([14])
    end

    it "may be any" do
      [2, 31, 32, 33, 63, 65, 255, 257, 1000, 4097].each do |count|
        expect((0...count).pmap(backend:) { |x| x * x }).to eq((0...count).map { |x| x * x })
        sum = 0
        (0...count).peach(backend:) { |x| sum += x }
        expect(sum).to eq(count * (count - 1) / 2)
      end
    end

    it "may be in Ranges of all kinds" do
      expect((-3..3).pmap(backend:) { |x| x * x }).to eq([9, 4, 1, 0, 1, 4, 9])
      expect((-3...3).pmap(backend:) { |x| x * x }).to eq([9, 4, 1, 0, 1, 4])
      top = Values::MAX
      expect((top - 2..top).pmap(backend:) { |x| x - 1 }).to eq([top - 3, top - 2, top - 1])
      expect((Values::MIN..Values::MIN + 1).pmap(backend:) { |x| x }).to eq([Values::MIN, Values::MIN + 1])
    end

    next if name == :reference

    it "may be ten million", :slow do
      numbers = (0...10_000_000).to_a
      doubled = numbers.pmap(backend:) { |x| x * 2 }
      expect([doubled.size, doubled[1234], doubled.last]).to eq([10_000_000, 2468, 19_999_998])
      sum = 0
      numbers.peach(backend:) { |x| sum += x }
      expect(sum).to eq(49_999_995_000_000)
    end
  end
end
