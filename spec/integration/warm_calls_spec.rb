# frozen_string_literal: true

# What earlier calls have shown holds only for the same circumstances.
RSpec.describe "A call that was made before" do
  on_quick_backends do |backend|
    let(:array) { md([1.0, 2.0, 3.0]) }
    let(:double) { proc { |x| x * 2 } }

    # Runs the block so often that nothing is new any more.
    def warm(count = 3) = Array.new(count) { yield }.last

    it "does with another captured value, or one of another kind, what the block then means" do
      scale = 2
      block = proc { |x| x * scale }
      list = [1, 2, 3]
      warm { [array.map(&block), list.pmap(&block)] }
      [0.5, 3, 1 << 40, Complex(1, 1)].each do |other|
        scale = other
        expect(list.pmap(&block)).to eq(list.map(&block))
        expect(array.map(&block)).to same_as(array.to_a.map(&block)) unless other.is_a?(Complex)
      end
      scale = nil
      expect { list.pmap(&block) }.to raise_error(TypeError)
    end

    it "does with another array what the block means there: of other elements, another length, a view, objects, none" do
      twice = double
      warm { array.map(&twice) }
      others = [[1, 2, 3], [0.5] * 300, [], [[1, 2], [3, 4]]]
      2.times { others.each { |other| expect(md(other).map(&twice)).to same_as(deep_map(other, &twice)) } }
      expect(md([1, 2, 3, 4])[(0..).step(2)].map(&twice)).to same_as([2, 6])
      expect(md([[1, 2], [3, 4]]).t.map(&twice)).to same_as([[2, 6], [4, 8]])
      expect(md([1.5, 2.5], dtype: :f32).map(&twice)).to same_as([3.0, 5.0])
      expect(md([3, 4], dtype: :u8).map(&twice)).to same_as([6, 8])
      expect(md(%w[a b]).map(&:size)).to same_as([1, 1])
      sum = array + 1
      expect([sum.map(&twice), sum.map(&twice), sum.map(&twice)]).to all(same_as([4.0, 6.0, 8.0]))
    end

    it "sees what was written to the array since, by whom ever" do
      twice = double
      other = array[1..]
      warm { array.map(&twice) }
      array[0] = 10
      other.map! { |x| x + 100 }
      expect(array.map(&twice)).to same_as([20.0, 204.0, 206.0])
      frozen = array.dup.freeze
      expect(frozen.map(&twice)).to same_as([20.0, 204.0, 206.0])
      expect { frozen.map!(&twice) }.to raise_error(FrozenError)
      array.free
      expect { array.map(&twice) }.to raise_error(ArgumentError, /freed/)
      expect { array.map!(&twice) }.to raise_error(ArgumentError, /freed/)
    end

    it "runs other code where other code stands at the same place, and methods as they are now" do
      blocks = [2, 2.5].map { |scale| eval("proc { |x| x * #{scale} }", binding, "warm_calls", 1) }
      2.times { expect(blocks.map { |block| [1, 2].pmap(&block) }).to eq([[2, 4], [2.5, 5.0]]) }
      change = Class.new { def of(x) = x + 1 }
      object = change.new
      block = proc { |x| object.of(x) }
      expect(warm { [1, 2].pmap(&block) }).to eq([2, 3])
      change.class_eval do
        undef_method :of
        def of(x) = x - 1
      end
      expect([1, 2].pmap(&block)).to eq([0, 1])
      expect(md([1, 2]).map(&block)).to same_as([0, 1])
    end

    it "takes options and configuration as they are then" do
      block = proc { |x| x + (1 << 62) }
      list = md([1 << 61])
      expect { warm { list.map(&block) }.sync }.not_to raise_error
      far = md([1 << 62])
      expect { far.map(&block).sync }.to raise_error(Ikra::IntegerOverflow)
      expect(far.map(overflow: :wrap, &block)[0]).to eq(-(1 << 63))
      Ikra.config.overflow = :wrap
      expect(far.map(&block)[0]).to eq(-(1 << 63))
      Ikra.config.overflow = :raise
      expect { far.map(&block).sync }.to raise_error(Ikra::IntegerOverflow)
      expect { far.map(nonsense: 1, &block) }.to raise_error(ArgumentError, /nonsense/)
    ensure
      Ikra.config.overflow = :raise
    end

    it "ends by break, next and exceptions as the first did" do
      limit = 10
      block = proc { |x| 6 / (x - limit) }
      list = md([1, 2, 3])
      warm { list.map(&block) }
      limit = 2
      expect { list.map(&block).to_a }.to raise_error(ZeroDivisionError)
      limit = 10
      expect(list.map(&block)).to same_as([-1, -1, -1])
      stop = 5
      3.times do
        expect(list.map { |x| x == stop ? (break :out) : x }).to same_as([1, 2, 3])
        expect(list.map { |x| next 0 if x == 2; x }).to same_as([1, 0, 3])
      end
      left = [5, 3, 5].map do |value|
        stop = value
        list.map { |x| x == stop ? (break x * 100) : x }
      end
      expect(left[1]).to eq(300)
      expect([left[0], left[2]]).to all(same_as([1, 2, 3]))
    end

    it "is measured and explained where somebody asks" do
      twice = double
      warm { array.map(&twice) }
      report = Ikra.profile { array.map(&twice).sync }
      expect(report.sections.map(&:operation)).to include(:map)
      expect(Ikra.explain { array.map(&twice) }.to_s).to include("map")
      expect(array.map(&twice)).to same_as([2.0, 4.0, 6.0])
      expect(Ikra.resident([]) { array.map(&twice) }).to same_as([2.0, 4.0, 6.0])
    end

    it "minds what it is given to: the same block by itself, within methods, and as a lambda" do
      block = proc { |x| x + 1 }
      3.times do
        expect([1, 2].pmap(&block)).to eq([2, 3])
        expect(md([1, 2]).map(&block)).to same_as([2, 3])
        expect(md([1, 2]).map(dtype: :f64, &block)).to same_as([2.0, 3.0])
        expect([1, 2].pselect { |x| x > 1 }).to eq([2])
        expect([1, 2].pmap(&->(x) { return x + 1 })).to eq([2, 3])
        expect([[1, 2]].pmap { |x, y| [x, y] }).to eq([[1, 2]])
      end
      expect { md([1, 2]).map { |x, y| [x, y] } }.to raise_error(ArgumentError, /2 parameters/)
    end

    it "may be made by several threads at once, and with the GC at work" do
      scale = 3
      threads = Array.new(4) { |at| Thread.new { Array.new(30) { md([at, 1]).map { |x| x * scale }.to_a } } }
      expect(threads.flat_map(&:value).uniq).to contain_exactly([0, 3], [3, 3], [6, 3], [9, 3])
      output = run_ruby(<<~RUBY, backend.to_s)
        Ikra.config.backend = ARGV[0].to_sym
        scale, shift = 2.0, [1.0, 10.0]
        block = proc { |x| x * scale + shift[1] }
        array = Ikra::MDArray.new([1.0, 2.0])
        kept = Array.new(3) { [array.map(&block), [1, 2].pmap(&block)] }
        GC.stress = true
        4.times { kept << [array.map(&block), [1, 2].pmap(&block)] }
        array.map!(&block)
        GC.stress = false
        GC.compact
        kept << [array.map(&block), [1, 2].pmap(&block)]
        p kept.map { |one, two| [one.to_a, two] }.uniq
      RUBY
      expect(output).to eq("[[[12.0, 14.0], [12.0, 14.0]], [[34.0, 38.0], [12.0, 14.0]]]\n")
    end
  end
end
