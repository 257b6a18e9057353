# frozen_string_literal: true

# Pending arrays that share operators are results of one kernel.
RSpec.describe Ikra::MDArray do
  # On a GPU, the wait for a kernel is a section of its own, which packs nothing.
  def kernels = Ikra.profile { yield }.sections.count { |section| section.spans.any? { |phase, _, _| phase == :pack } }

  forms = 4

  on_quick_backends do
    let!(:x) { md([[1.0, -2.0, 3.5], [0.25, 5.0, -6.0]]) }
    let!(:y) { md([[2.0, 0.5, -1.0], [4.0, 3.0, 7.0]]) }

    # Arrays that share an expression. They differ by a number, as the results of a loop do. Each example has a form of
    # its own, because what was seen of a form counts for all of Ikra.
    def siblings(count)
      shared = @form.digits(2).reduce(x * y) { |made, digit| digit.zero? ? made + 1.0 : made * 2.0 } * (x - y)
      Array.new(count) { |number| shared * (number + 0.5) - x }
    end

    before { @form = forms += 1 }

    it "are computed by one kernel, once it was seen that they are" do
      rounds = Array.new(4) do
        arrays = siblings(4)
        [kernels { arrays.each(&:sync) }, arrays.map(&:to_a)]
      end
      expect(rounds.map(&:first)).to eq([5, 1, 1, 1])
      expect(rounds.map(&:last).uniq.size).to eq(1)
      expect(rounds.last.last.first).to same_as(siblings(1).first.to_a)
    end

    it "give bools, Floats of both widths, views and broadcasts" do
      answers = Array.new(3) do
        shared = @form.digits(2).reduce(x.t) { |made, digit| digit.zero? ? made + 0.0 : made * 1.0 }
        shared = (shared + y.t[true, 0..0]) * x.t
        single = shared.to(:f32)
        arrays = [shared > 1.5, single * 0.1, described_class.where(shared < 2.0, shared, y.t), shared.minimum(3.0), single.maximum(single * 2.0)]
        [kernels { arrays.each(&:sync) }, arrays.map(&:dtype), arrays.map(&:to_a)]
      end
      expect(answers.map { |answer| answer.drop(1) }.uniq.size).to eq(1)
      expect(answers.last.first).to be < answers.first.first
      plain = x.to_a.transpose.each_with_index.map { |row, i| row.each_with_index.map { |value, j| (value + y[0, i]) * value } }
      expect(answers.last[1]).to eq(%i[bool f32 f64 f64 f32])
      expect(answers.last[2][0]).to eq(plain.map { |row| row.map { |value| value > 1.5 } })
      expect(answers.last[2][3]).to same_as(plain.map { |row| row.map { |value| value > 3.0 ? 3.0 : value } })
    end

    it "are seldom computed where Ruby does not ask for all of them" do
      counts = Array.new(24) do
        arrays = siblings(3)
        # The last one is never looked at.
        kernels { arrays.first(2).each(&:sync) }
      end
      # The second needs what the first computed, and finds it where it was guessed.
      expect(counts.tally).to eq(3 => 22, 1 => 2)
      arrays = siblings(3)
      expect(arrays.reverse.map(&:to_a)).to same_as(siblings(3).map { |array| array.dup.to_a }.reverse)
    end

    it "are of few kernels, however many there are each time" do
      expect((2..12).map { |count| siblings(count).then { |arrays| kernels { arrays.each(&:sync) } } }).to eq([3, 1, 1, 1, 1, 13, *(9..13)])
    end

    it "raise only what Ruby asks for raises" do
      numbers, zeros = md([6, 7, 8]), md([1, 0, 2])
      4.times do
        shared = numbers.to(:f64) * 0.5
        good, bad, other = shared + 1.0, (shared / 0.0).to(:i64), shared * 2.0
        quotients = numbers / zeros
        expect(good.sync.to_a).to same_as([4.0, 4.5, 5.0])
        expect(other.sync.to_a).to same_as([6.0, 7.0, 8.0])
        expect { bad.sync.to_a }.to raise_error(FloatDomainError)
        expect { quotients.sync.to_a }.to raise_error(ZeroDivisionError)
      end
    end

    it "have the elements of when they were built" do
      3.times do
        changed = x.dup
        shared = changed * y
        one, two = shared + 1.0, shared - 1.0
        expected = [one, two].map { |array| (array * 1.0).to_a }
        one, two = (changed * y).then { |again| [again + 1.0, again - 1.0] }
        one.sync
        changed.fill(0.0)
        expect([one, two].map(&:to_a)).to same_as(expected)
        expect(changed.to_a).to same_as([[0.0] * 3] * 2)
      end
    end

    it "leave a chain that nothing else uses one kernel" do
      3.times { expect(kernels { (x * y + 1.0).sync }).to eq(1) }
    end
  end

  it "give the bits of arrays that are computed one by one, in random expressions" do
    dice = Random.new(RSpec.configuration.seed)
    Array.new(ENV["IKRA_SLOW"] ? 200 : 20) do
      leaves = [[:f64, [4, 5]], [:f32, [4, 5]], [:f64, [1, 5]]].map { |dtype, shape| described_class.new(*shape, dtype: dtype) { |i, j| Math.sin(i * 3.7 + j) * 4 } }
      plan = Array.new(dice.rand(3..12)) { |at| [%i[+ - * minimum maximum > where].sample(random: dice), *Array.new(3) { dice.rand(leaves.size + at) }] }
      build = lambda do |each|
        plan.each_with_object(leaves.dup) do |(operator, *operands), arrays|
          one, two, three = arrays.values_at(*operands).map { |array| array.dtype == :bool ? described_class.where(array, 1.5, -0.5) : array }
          arrays << each.(operator == :where ? described_class.where(one > 0.25, two, three) : one.public_send(operator, two))
        end.drop(leaves.size)
      end
      expected = build.(->(array) { array.sync }).map(&:to_a)
      asked = Array.new(dice.rand(1..plan.size)) { dice.rand(plan.size) }
      3.times do
        arrays = build.(:itself.to_proc)
        asked.each { |at| arrays[at].sync }
        expect(arrays.values_at(*asked).map(&:to_a)).to same_as(expected.values_at(*asked))
      end
    end
  end
end
