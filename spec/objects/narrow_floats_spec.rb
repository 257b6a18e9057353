# frozen_string_literal: true

# Bodies with Floats that 32 bits do not hold.
module NarrowFloats
  class Body
    attr_accessor :x, :mass, :pulled

    def initialize(x, mass = 1.0)
      @x = x
      @mass = mass
      @pulled = 0.0
    end

    def pull(all)
      sum = 0.0
      all.each { |other| sum += (other.x - @x) * other.mass }
      @pulled = sum
    end

    # Reads the field in a loop, so that it has 32 bits although it is written.
    def move(all, limit)
      @x += all.sum { |other| other.mass } if all.count { |other| other.x > limit } > 0 && @x < limit
    end

    def near(all) = all.min_by { |other| (other.x - @x).abs }.x
  end

  # Ruby's arithmetic, in which each operand and result is rounded.
  module Rounded
    module_function

    def round(float) = [float].pack("e").unpack1("e")

    def pulls(bodies)
      bodies.map do |body|
        bodies.reduce(0.0) do |sum, other|
          round(sum + round(round(round(other.x) - round(body.x)) * round(other.mass)))
        end
      end
    end
  end
end

# Under `precision: :f32` columns of Floats may have 32 bits (ext/ikra-core/src/passes/narrow_floats.rs). This must not
# show.
RSpec.describe "Columns of Floats with 32 bits" do
  extend MDArrays::Groups

  def bits(floats) = floats.map { |float| float.nan? ? :nan : [float].pack("G") }

  def bodies(*xs) = xs.map { |x| NarrowFloats::Body.new(x, x.abs < 1e30 ? x + 1.1 : 0.1) }

  def odd = [0.1, -0.3, 1e-40, 1e-46, 1e-310, -0.0, 3.4028235677973366e38, 1e300, Float::INFINITY, Float::NAN]

  on_every_backend do
    let(:options) { { backend:, precision: :f32 } }

    it "hold what is rounded anyway" do
      [bodies(0.1, 0.2, -0.7, 2.5), bodies(*odd), bodies(*odd.reject(&:nan?))].each do |all|
        expected = NarrowFloats::Rounded.pulls(all)
        before = bits(all.map(&:x))
        all.peach(**options) { |body| body.pull(all) }
        expect(bits(all.map(&:pulled))).to eq(bits(expected))
        expect(bits(all.map(&:x))).to eq(before)
      end
    end

    it "leave all bits of what is not assigned", :stress do
      all = bodies(0.1, 0.2, 0.7, 0.9)
      sum = all.reduce(0.0) { |total, body| NarrowFloats::Rounded.round(total + NarrowFloats::Rounded.round(body.mass)) }
      all.peach(**options) { |body| body.move(all, 0.5) }
      moved = [0.1, 0.2].map { |x| NarrowFloats::Rounded.round(NarrowFloats::Rounded.round(x) + sum) }
      expect(all.map(&:x).last(2)).to eq([0.7, 0.9])
      all.first(2).zip(moved) { |body, x| expect(body.x).to be_within(1e-6).of(x) }
    end

    it "round what is assigned, even if it is the same Float of 32 bits" do
      all = bodies(0.1, 0.7)
      all.peach(**options) do |body|
        sum = 0.0
        all.each { |other| sum += other.mass * 0.0 }
        3.times { body.x = body.x * 1.0 + sum if body.x < 0.5 }
      end
      expect(all.map(&:x)).to eq([NarrowFloats::Rounded.round(0.1), 0.7])
    end

    it "round what is only assigned to itself" do
      all = bodies(0.1, 0.7)
      all.peach(**options) do |body|
        all.each { |other| body.pulled += other.x }
        body.x = body.x * 1.0
      end
      expect(all.map(&:x)).to eq([0.1, 0.7].map { |x| NarrowFloats::Rounded.round(x) })
    end

    it "keep all bits of what is never assigned" do
      all = bodies(0.1, 0.7)
      all.peach(**options) do |body|
        all.each { |other| body.pulled += other.x }
        body.x = 1.0 if body.pulled.nil?
      end
      expect(all.map(&:x)).to eq([0.1, 0.7])
    end

    it "have all bits where a program gives a field as it is" do
      all = bodies(0.1, 0.2, 0.9)
      expect(all.pmap(**options) { |body| body.near(all) }).to eq([0.1, 0.2, 0.9])
    end

    it "hold elements of Arrays" do
      weights = odd.reject(&:nan?)
      expected = [0.5, -2.0].map do |x|
        weights.reduce(0.0) { |sum, w| NarrowFloats::Rounded.round(sum + NarrowFloats::Rounded.round(x * NarrowFloats::Rounded.round(w))) }
      end
      sums = [0.5, -2.0].pmap(**options) do |x|
        sum = 0.0
        weights.each { |weight| sum += x * weight }
        sum
      end
      expect(bits(sums)).to eq(bits(expected))
      expect(weights).to eq(odd.reject(&:nan?))
    end

    it "do not hold arrays on the device, nor Arrays beside these" do
      block = lambda do |weights|
        [2.0].pmap(**options) do |x|
          sum = 0.0
          3.times { |i| sum += weights[i] * x }
          sum
        end
      end
      plain = [0.1, 0.2, 0.3]
      results = [plain, Ikra::MDArray[*plain], plain, Ikra::MDArray[*plain, dtype: :f32]].map(&block)
      expect(results.uniq.size).to eq(1)
    end

    it "do not hold Integers and Floats together" do
      all = [NarrowFloats::Body.new(16_777_217, 0.1), NarrowFloats::Body.new(0.1, 2)]
      all.peach(**options) { |body| body.pull(all) }
      one = NarrowFloats::Rounded.round(NarrowFloats::Rounded.round(0.1) - 16_777_217)
      expect(all.first.pulled).to be_within(1.0).of(2 * one)
      expect(all.map(&:x)).to eq([16_777_217, 0.1])
    end

    it "are not written where an object is frozen" do
      all = bodies(0.1, 0.2)
      all.last.freeze
      block = lambda do
        all.peach(**options) do |body|
          2.times { body.x = body.x * 3.0 + all.first.mass }
        end
      end
      expect(&block).to raise_error(FrozenError)
      expect(all.map(&:x)).to eq([0.1, 0.2])
      expect { all.peach(**options) { |body| all.each { |other| body.x += other.mass if body.x > 1.0 } } }.not_to raise_error
      expect(all.map(&:x)).to eq([0.1, 0.2])
    end

    it "do not show in objects that kernels make" do
      made = [0.1, 1e300].pmap(**options) do |x|
        body = NarrowFloats::Body.new(x, 2.0)
        3.times { body.mass = body.mass * body.mass }
        body
      end
      expect(made.map(&:x)).to eq([0.1, 1e300])
      expect(made.map(&:mass)).to eq([256.0, 256.0])
    end
  end

  on_all_backends do
    def steps(all, precision, other)
      3.times do |i|
        all.peach(precision:) { |body| body.pull(all) }
        all.peach(precision: other) { |body| 2.times { body.x = body.x + body.pulled * 0.25 if body.x < 0.5 } }
        yield i
      end
    end

    [%i[f32 f32], %i[f32 f64], %i[f64 f32]].each do |precision, other|
      it "stay right in a scope, of #{precision} and #{other}" do
        resident, plain = bodies(0.1, 0.2, 0.7, -0.9), bodies(0.1, 0.2, 0.7, -0.9)
        seen = [[], []]
        [resident, plain].zip(seen) do |all, own|
          look = lambda do |i|
            own << all[i].x
            all[3].x = 0.3 if i == 1
            all[2].x = 0.25 if i == 0
            own << all.map(&:x) if i == 1
          end
          all.equal?(resident) ? Ikra.resident(all) { steps(all, precision, other, &look) } : steps(all, precision, other, &look)
        end
        expect(seen.first).to eq(seen.last)
        expect(resident.map { |body| [body.x, body.pulled] }).to eq(plain.map { |body| [body.x, body.pulled] })
      end
    end

    it "hold Arrays in a scope, whose changes are noticed" do
      weights = [0.1, 0.2]
      all = bodies(0.5)
      block = lambda do
        all.pmap(precision: :f32) do |body|
          sum = body.x
          weights.each { |weight| sum += weight }
          sum
        end
      end
      results = Ikra.resident(all) do
        [block.call, block.call].tap { weights[1] = 0.3 } << block.call
      end
      expect(results).to eq([[0.800000011920929], [0.800000011920929], [0.9000000357627869]])
    end
  end
end
