# frozen_string_literal: true

module OwnEnumerable
  # `each` gives `count` Integers, whatever `size` says.
  class Sized
    include Enumerable

    attr_reader :size

    def initialize(count, size) = (@count, @size = count, size)

    def each
      i = 0
      while i < @count
        yield i
        i += 1
      end
      self
    end
  end

  class Secret < Sized
    private :size
  end

  class Triple
    include Enumerable

    attr_reader :asked

    def initialize(a, b, c) = (@a, @b, @c, @asked = a, b, c, 0)

    def each
      @asked += 1
      yield @a
      yield @b
      yield @c
      self
    end
  end
end

RSpec.describe "Enumerable in kernels" do
  ints = [3, 1, 4, 1, 5, 9, 2, 6]
  floats = [0.1, 0.2, 0.3, 1e100, -1e100, 5.5]
  mixed = [1, 0.1, 2, 0.2, 0.3]

  [[], [7], ints].each do |list|
    context "over #{list.size} Integers" do
      it "asks all?, any?, none?, one?" do
        expect([0, 1, 5, 7]).to map_same_as_ruby { |x|
          bits = 0
          bits += 1 if list.all? { |y| y > x }
          bits += 2 if list.any? { |y| y > x }
          bits += 4 if list.none? { |y| y == x }
          bits += 8 if list.one? { |y| y == x }
          bits += 16 if list.all?(Integer)
          bits += 32 if list.any?(x..6)
          bits += 64 if list.any?
          bits
        }
      end

      it "counts and finds" do
        expect([0, 1, 5, 7]).to map_same_as_ruby { |x|
          sum = list.count + (list.count(x) * 10) + (list.count { |y| y < x } * 100)
          sum += 1000 * (list.find { |y| y > x } || -1)
          sum += 100_000 * (list.index(x) || 50)
          sum + (10_000_000 * (list.find_index { |y| y > x } || 20)) + (list.rindex(x) || 0)
        }
      end

      it "folds" do
        expect([1, 2]).to map_same_as_ruby { |x|
          (list.inject(:+) || -1) + list.inject(x, :*) + (list.inject { |a, b| a - b } || 0) +
            list.reduce(x) { |a, b| (a * 3) + b } + list.sum + list.sum { |y| y * x } + list.sum(x)
        }
      end

      it "finds the least and the greatest" do
        expect([1, 4]).to map_same_as_ruby { |x|
          (list.min || -1) + ((list.max || -1) * 10) + ((list.min_by { |y| (y - x).abs } || -1) * 100) +
            ((list.max_by { |y| y % x } || -1) * 1000) + ((list.min { |a, b| b <=> a } || -1) * 10_000)
        }
      end
    end
  end

  it "adds Floats as Ruby does, compensated, with infinities and NaN" do
    odd = [[0.1] * 10, [1e308, 1e308, -1e308], [Float::INFINITY, 1.0], [Float::INFINITY, -Float::INFINITY], [Float::NAN, 1.0], []]
    odd.each { |list| expect([1]).to map_same_as_ruby { |_| list.sum } }
    expect([1, 2]).to map_same_as_ruby { |x| floats.sum + floats.sum { |y| y * x } + mixed.sum + [1.5, 2.25].sum(0.5) + (1..4).sum { |y| y * 0.1 } }
  end

  on_every_backend do
    it "do not take a pattern and a block for one cut" do
      expect { |x| [x, 2].slice_after(2) { |y| y }.to_a }.to be_same_as_ruby.over(1)
      expect { |x| [x, 2].slice_before(2) { |y| y }.to_a }.to be_same_as_ruby.over(1)
    end

    it "give a block of zip without lists the element itself, but for Arrays" do
      expect { |x| (1..x).zip { |y| x += y }; { x => 3 }.zip { |k, v| x += v }; [x].zip { |y| x += y.size }; x }.to be_same_as_ruby.over(3, 0)
    end

    it "compensates from a Float on as well, like Enumerable#sum, even where Ruby's Array#sum does not" do
      expect([0.0, 0.5].pmap(backend:) { |x| floats.sum(x) }).to eq([0.0, 0.5].map { |x| floats.each.sum(x) }).and eq([6.1, 6.6])
    end
  end

  on_every_backend do
    it "raises what Ruby raises for what cannot be compared" do
      odd = [1.0, Float::NAN, 2.0]
      nils = [1, nil]
      expect { |_| odd.max }.to be_same_as_ruby.over(1)
      expect { |_| nils.min_by { |y| y } }.to be_same_as_ruby.over(1)
    end
  end

  it "works on Ranges" do
    expect([0, 1, 6]).to map_same_as_ruby { |x|
      r = (1..x)
      r.sum + r.count(&:even?) + (r.inject(:*) || -1) + (r.find { |y| y > 3 } || -2) + r.reduce(5) { |a, b| a - b } +
        (r.include?(3) ? 10 : 0) + (r.min_by { |y| (y - 3).abs } || 7)
    }
  end

  it "nests, and leaves the inner one with break" do
    expect([2, 5]).to map_same_as_ruby { |x|
      ints.sum { |a| ints.count { |b| break 100 if b == x; b > a } }
    }
  end

  on_every_backend do
    it "hands a memo along" do
      expect { |n| [[1, n].each_with_object([]) { |x, list| list = [x] }, n.times.each_with_object([]) { |x, list| list += [x] }] }.to be_same_as_ruby.over(0, 2) # rubocop:disable Lint/ShadowedArgument
      expect { |run| run.peach([[0, 0], [0, 0]]) { |memo| ints.each_with_object(memo) { |y, m| m[y % 2] += y } } }.to be_same_as_ruby
    end
  end

  it "refuses forms that kernels lack, and says what to write" do
    list = [3, 1, 2]
    {
      ->(_) { list.reverse { |a| a } } => /this form of reverse.*takes no block/m,
      ->(_) { list.inject(:+, 1) } => /this form of inject.*inject\(start, :name\)/m,
      ->(_) { list.dig(0, 1, 2, 3, 4, 5) } => /this form of dig.*it is given 6 arguments.*five levels/m,
      ->(_) { list.shuffle(random: Random) } => /this form of shuffle.*no such keywords/m,
      ->(x) { list.rotate(by: x) } => /this form of rotate.*no such keywords/m,
      ->(x) { list.zip(x) } => /zip with Arrays and Ranges of Integers only/,
      ->(x) { list.zip(x, list) { |a| a } } => /zip with Arrays and Ranges of Integers only/,
      ->(_) { 1.step(by: 2).to_a } => /step without a limit/,
      ->(_) { list.lazy } => /make no lazy chains/,
      ->(_) { list.chunk_while { |a, b| a < b } } => /Enumerable#chunk_while/
    }.each { |block, message| expect { [1].pmap(&block) }.to raise_error(Ikra::CompileError, message) }
  end

  on_every_backend do
    it "of a program's own class says how many arguments it expects as Ruby does" do
      triples = [OwnEnumerable::Triple.new(3, 1, 2)]
      expect { |t| t.count(1, 2) }.to be_same_as_ruby.over(triples)
      expect { |t| t.first(1, 2) }.to be_same_as_ruby.over(triples)
      expect { |t| t.max(1, 2) }.to be_same_as_ruby.over(triples)
    end

    it "of a program's own class looks at a count before it asks for elements" do
      expect do |run|
        triples = [OwnEnumerable::Triple.new(3, 1, 2), OwnEnumerable::Triple.new(1, 1.0, 1)]
        run.pmap(triples) { |t| [t.min(0), t.max(0) { |a, b| b <=> a }, t.min_by(0) { |x| x }, t.max_by(0) { |x| x }, t.asked, t.min(2), t.asked] }
      end.to be_same_as_ruby
      expect { |t| t.min(-1) }.to be_same_as_ruby.over([OwnEnumerable::Triple.new(3, 1, 2)])
    end

    it "asks an object for its size in each_slice and each_cons" do
      sized = [[5, 2], [5, 9], [5, nil], [5, 0], [5, -1], [5, 1.5], [2, 3]].flat_map { |of| [OwnEnumerable::Sized.new(*of), OwnEnumerable::Secret.new(*of)] }
      expect { |x| list = []; x.each_slice(3) { |part| list << part.dup }; list }.to be_same_as_ruby.over(sized)
      expect { |x| list = []; x.each_cons(3) { |part| list << part.dup }; list }.to be_same_as_ruby.over(sized)
    end

    it "compares pairs in minmax and minmax_by" do
      triples = [OwnEnumerable::Triple.new(3, 1, 2), OwnEnumerable::Triple.new(1, 1.0, 1), OwnEnumerable::Triple.new(2, 3, 3.0)]
      expect { |t| [t.minmax, t.minmax { |a, b| b <=> a }, t.minmax_by { |x| x % 3 }, t.minmax { |_, _| 1 }, t.minmax { |_, _| -1 }, t.minmax { |_, _| 0 }] }
        .to be_same_as_ruby.over(triples)
      # the line of an exception is that of the call, and in Ruby that of the `yield`
      expect { |t| (t.minmax rescue :raised) }.to be_same_as_ruby.over([OwnEnumerable::Triple.new(1, nil, 2)])
      expect { |t| (t.minmax rescue :raised) }.to be_same_as_ruby.over([OwnEnumerable::Triple.new(1, 2, nil)])
      expect { |t| (t.minmax rescue :raised) }.to be_same_as_ruby.over([OwnEnumerable::Triple.new(1.0, Float::NAN, 2.0)])
      expect { |t| (t.minmax_by { |x| x } rescue :raised) }.to be_same_as_ruby.over([OwnEnumerable::Triple.new(nil, 2, 1)])
      expect { |x| [x, 2, 1].minmax_by { |y| y } }.to be_same_as_ruby.over(nil)
      expect { |x| [[x, 2, 1].minmax_by { |y| y % 3 }, [x].minmax_by { |y| y }, [x, 5, x].minmax_by { 1 }] }.to be_same_as_ruby.over(4, 7)
    end

    it "raises ArgumentError where Ruby's own methods do not take so many arguments either" do
      list = [3, 1, 2]
      expect { |_| list.reverse(1) }.to be_same_as_ruby.over(1)
      expect { |_| list.take }.to be_same_as_ruby.over(1)
      expect { |_| list.first(-1) }.to be_same_as_ruby.over(1)
      expect { |_| list * -1 }.to be_same_as_ruby.over(1)
    end
  end
end
