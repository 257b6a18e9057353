# frozen_string_literal: true

RSpec.describe Ikra::Parallel do
  on_every_backend do
    describe "#pmap" do
      it "gives what map gives" do
        expect([1, 2, 3].pmap(backend:) { |x| x + 1 }).to eq [2, 3, 4]
      end

      it "gives a plain Array for a Range" do
        expect((3...6).pmap(backend:) { |i| i * i }).to eq [9, 16, 25]
      end

      it "gives an empty Array for no elements, whatever the block is" do
        expect([].pmap(backend:) { |x| `no #{x}` }).to eq []
        expect((3...3).pmap(backend:) { |x| x }).to eq []
      end

      it "gives the very objects that the block gives" do
        objects = [Object.new, Object.new]
        expect(objects.pmap(backend:) { |object| object }.zip(objects)).to all(satisfy { |a, b| a.equal?(b) })
      end

      it "gives values of all kinds side by side" do
        values = [1, 2.5, nil, true, false, :symbol, Float::INFINITY, -0.0, 2**62, -2**63]
        expect(values).to map_same_as_ruby(on: backend) { |value| value }
      end

      it "sees the captured variables of each call" do
        factor = 2
        double = ->(values) { values.pmap(backend:) { |x| x * factor } }
        expect(double.call([1, 2])).to eq [2, 4]
        factor = 2.5
        expect(double.call([1, 2])).to eq [2.5, 5.0]
      end

      it "takes a symbol, a lambda, and a method" do
        def self.twice(x) = x * 2
        expect([1, -2].pmap(backend:, &:abs)).to eq [1, 2]
        expect([1, 2].pmap(backend:, &->(x) { x + 1 })).to eq [2, 3]
        expect([1, 2].pmap(backend:, &method(:twice))).to eq [2, 4]
      end

      it "calls a lambda as any is called" do
        expect { [[1, 2]].pmap(backend:, &->(a, b) { a + b }) }.to raise_error(ArgumentError, "wrong number of arguments (given 1, expected 2)")
        expect([1, 2].pmap(backend:, &->(x) { x == 2 ? (break 5) : x })).to eq [1, 5]
        sum = 0
        [1, 2].peach(backend:, &->(x) { sum += x })
        expect(sum).to eq 3
      end

      it "destructures as blocks do" do
        expect([[1, 2], [3, 4]]).to map_same_as_ruby(on: backend) { |a, b| a * b }
      end

      it "gives what break gives" do
        expect([1, 2, 3].pmap(backend:) { |x| break x * 10 if x == 2 }).to eq 20
      end
    end

    describe "#peach" do
      it "gives its receiver" do
        values = [1, 2]
        expect(values.peach(backend:) { |x| x }).to equal values
      end

      it "runs each tick for all before the next" do
        expect { [[0], [0]] }.to each_same_as_ruby(ticks: 5, on: backend) { |cell| cell[0] += 1 }
      end

      it "does nothing in no ticks" do
        expect { [[1]] }.to each_same_as_ruby(ticks: 0, on: backend) { |cell| cell[0] = 2 }
      end

      it "runs the occurrences of one object one after the other" do
        counter = Class.new do
          attr_reader :trace

          def initialize = @trace = 1
          def add(n) = @trace = @trace * 10 + n
        end
        make = lambda do
          one, other = counter.new, counter.new
          [one, other, one, one]
        end
        list = make.call.peach(backend:) { |c| c.add(Ikra.index) }
        expect(list.map(&:trace)).to eq [1023, 11, 1023, 1023]
      end
    end
  end

  it "gives an Enumerator without a block" do
    expect([1].pmap).to be_an(Enumerator).and have_attributes(size: 1)
    expect([1].peach(3)).to be_an(Enumerator)
  end

  it "names the known options for an unknown one" do
    expect { [1].pmap(bakend: :cpu) { |x| x } }.to raise_error(ArgumentError, /unknown option bakend.*backend, blas, block_size/)
    expect { [1].pmap(backend: :gpu) { |x| x } }.to raise_error(ArgumentError, /backend: :gpu is not one of :auto, :cpu, :cuda, (:cuda_shim, )?:reference/)
    expect { [1].pmap(block_size: 0) { |x| x } }.to raise_error(ArgumentError, /block_size: 0 is not an Integer from 1 to 1024/)
  end

  it "refuses ticks that are no number" do
    expect { [1].peach(-1) { |x| x } }.to raise_error(ArgumentError, "ticks: -1 is negative")
    expect { [1].peach(1.5) { |x| x } }.to raise_error(ArgumentError, "ticks: 1.5 is not an Integer")
  end

  it "refuses Ranges that are not of Integers, or have no end" do
    expect { (1..).pmap { |x| x } }.to raise_error(ArgumentError, /not over 1\.\./)
    expect { ("a".."c").pmap { |x| x } }.to raise_error(ArgumentError, /not over "a"\.\."c"/)
  end

  it "raises a CompileError from where the user called" do
    expect { [1].pmap { |x| [x].pack("C") } }.to raise_error(Ikra::CompileError) { |error| expect(error.backtrace.first).to start_with(__FILE__) }
  end
end
