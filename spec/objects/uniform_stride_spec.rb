# frozen_string_literal: true

module UniformStride
  class Bird
    attr_accessor :place, :sum, :near

    def initialize(place)
      @place = place
      @sum = 0
      @near = []
    end

    def look(flock)
      total = 0
      flock.each { |bird| total += bird.place unless bird.equal?(self) }
      @sum = total
    end

    def count = @near.sum { |bird| bird.place }
  end

  class Hawk < Bird; end
end

# Columns with a uniform stride are used without a look at each place. Columns without one are found, too.
RSpec.describe "Objects and lists that follow each other" do
  def birds(count, kind = UniformStride::Bird) = Array.new(count) { |i| kind.new(i * i % 101) }

  Backends.present.each do |backend|
    context "on #{backend}" do
      look = ->(list, flock) { list.peach(backend: backend) { |bird| bird.look(flock) } }
      expected = ->(list, flock) { list.map { |bird| flock.sum { |other| other.equal?(bird) ? 0 : other.place } } }
      near = ->(list) { list.pmap(backend: backend) { |bird| bird.count } }

      it "are the same in any order, some of them, twice, and of two classes" do
        list = birds(60)
        [list, list.reverse, list.shuffle(random: Random.new(1)), list.drop(7), list.first(9), [list[3]], list + birds(5),
         list + birds(5, UniformStride::Hawk), birds(5, UniformStride::Hawk) + list].each do |elements|
          [elements, list, list.reverse, list.drop(1), list + list.first(2), birds(4) + list].each do |flock|
            look.call(elements, flock)
            expect(elements.map(&:sum)).to eq(expected.call(elements, flock))
          end
        end
        expect { look.call(list + [nil], list) }.to raise_error(NoMethodError)
      end

      it "may have lists of one length, of another, and of several" do
        list = birds(40)
        [8, 8, 5, 16, 0, 8, 17].each do |length|
          list.each_with_index { |bird, i| bird.near = list.rotate(i).first(length) }
          expect(near.call(list)).to eq(list.map(&:count))
        end
        list.each_with_index { |bird, i| bird.near = list.first(i % 11) }
        expect(near.call(list)).to eq(list.map(&:count))
        list.each { |bird| bird.near = list.first(8) }
        expect(near.call(list)).to eq(list.map(&:count))
      end

      it "may be in another order, where all are known from a call before" do
        list = birds(5_000)
        3.times do
          list.peach(backend: backend) { |bird| bird.sum = bird.place + Ikra.index }
          expect(list.map(&:sum)).to eq(list.each_with_index.map { |bird, i| bird.place + i })
          list.shuffle!(random: Random.new(1))
        end
      end
    end
  end

  it "are not looked up" do
    list = birds(60)
    used = ->(report) { report.to_s.lines.grep(/^  element/).to_h { |line| [line[/\S+/], !line.include?("not used")] } }
    report = Ikra.explain { list.peach(backend: :cpu) { |bird| bird.look(list) } }
    expect(used.call(report)).to include("element" => false)
    list << UniformStride::Hawk.new(1)
    report = Ikra.explain { list.peach(backend: :cpu) { |bird| bird.look(list) } }
    expect(used.call(report)).to include("element" => true)
  end
end
