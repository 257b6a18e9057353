# frozen_string_literal: true

require "set"
require "tmpdir"

RSpec.describe "The parallel methods of Hash, Set and Enumerator" do
  hash = { a: 1, b: 2, c: 3, d: 2 }.freeze
  blocks = {
    map: ->(&run) { run.call { |key, value| value * 10 } },
    filter_map: ->(&run) { run.call { |key, value| value if value > 1 } },
    flat_map: ->(&run) { run.call { |key, value| [value, value] } },
    group_by: ->(&run) { run.call { |key, value| value % 2 } },
    partition: ->(&run) { run.call { |key, value| value > 1 } },
    min_by: ->(&run) { run.call { |key, value| -value } },
    max_by: ->(&run) { run.call { |key, value| -value } },
    minmax_by: ->(&run) { run.call { |key, value| value } },
    sort_by: ->(&run) { run.call { |key, value| -value * 10 + (key == :b ? 1 : 0) } },
    find: ->(&run) { run.call { |key, value| value == 2 } },
    find_index: ->(&run) { run.call { |key, value| value == 2 } },
    count: ->(&run) { run.call { |key, value| value == 2 } },
    all?: ->(&run) { run.call { |key, value| value > 1 } },
    any?: ->(&run) { run.call { |key, value| value > 1 } },
    none?: ->(&run) { run.call { |key, value| value > 1 } },
    one?: ->(&run) { run.call { |key, value| value > 1 } },
    sum: ->(&run) { run.call { |key, value| value } },
    uniq: ->(&run) { run.call { |key, value| value } },
    select: ->(&run) { run.call { |key, value| value == 2 } },
    filter: ->(&run) { run.call { |key, value| value == 2 || key == :a } },
    reject: ->(&run) { run.call { |key, value| value == 2 } }
  }

  on_every_backend do
    blocks.each do |name, call|
      it "p#{name} of a Hash is what #{name} is" do
        expect(call.call { |&block| hash.public_send(:"p#{name}", backend:, &block) }).to same_as(call.call { |&block| hash.public_send(name, &block) })
      end

      it "p#{name} of an Enumerator of several values is what #{name} is" do
        several = hash.keys.each_with_index
        expect(call.call { |&block| several.public_send(:"p#{name}", backend:, &block) }).to same_as(call.call { |&block| several.public_send(name, &block) })
      end
    end

    it "gives blocks of one parameter what Ruby gives them" do
      expect(hash.pmap(backend:) { |pair| pair }).to eq(hash.map { |pair| pair })
      expect(hash.pselect(backend:) { |key| key == :b }).to eq(hash.select { |key| key == :b })
      expect(hash.preject(backend:) { |key| key == :b }).to eq(hash.reject { |key| key == :b })
      pairs = Enumerator.new { |yielder| yielder.yield(1, 2); yielder.yield(3, 4) }
      expect(pairs.pmap(backend:) { |x| x }).to eq(pairs.map { |x| x })
      expect(pairs.pcount(backend:) { |x| x == 3 }).to eq(pairs.count { |x| x == 3 })
      expect(pairs.pselect(backend:) { |x| x[0] == 3 }).to eq(pairs.select { |x| x[0] == 3 })
      expect(pairs.psum(backend:) { |x| x[1] }).to eq(pairs.sum { |x| x[1] })
      expect(%w[a b].each_with_index.pmap(backend:) { |x| x }).to eq(%w[a b])
      expect([1, 2, 3, 4].each_slice(2).pmap(backend:) { |x| x[1] }).to eq([2, 4])
      [-> { hash.pselect(backend:, &:nil?) }, -> { pairs.pmap(backend:) { |*x| x } }, -> { pairs.plazy(backend:) }].each { |call| expect(&call).to raise_error(Ikra::CompileError, /call to_a first/) }
    end

    it "gives a Hash with the receiver's ways of comparing" do
      keys = [+"a", +"a"]
      identical = {}.compare_by_identity
      keys.each_with_index { |key, i| identical[key] = i }
      chosen = identical.pselect(backend:) { |_, value| value == 1 }
      expect(chosen).to be_compare_by_identity
      expect(chosen.keys.first).to equal(keys[1])
      expect(Hash.new(7).merge(a: 1).pselect(backend:) { |_, value| value == 1 }[:z]).to be_nil
    end

    it "gives the receiver, an index, and what break says" do
      sum = 0
      numbers = { 1 => 2, 3 => 4 }
      expect(numbers.peach(2, backend:) { |key, value| sum += key * value }).to equal(numbers)
      expect(sum).to eq(28)
      expect(hash.pmap(backend:).with_index(1) { |(_, value), i| value * i }).to eq([1, 4, 9, 8])
      expect(hash.pselect(backend:).with_index { |(_, value), i| value == 2 && i > 1 }).to eq(d: 2)
      expect(hash.preject(backend:).each { |_, value| value == 2 }).to eq(a: 1, c: 3)
      expect(hash.pselect(backend:) { |_, value| break [value] if value == 2 }).to eq([2])
      expect(hash.pselect(backend:).with_index { |(_, value), i| break [i] if value == 2 }).to eq([1])
      expect(hash.pmap_with_index(backend:) { |(_, value), i| value - i }).to eq([1, 1, 1, -1])
    end

    it "goes over Sets, steps and other Enumerators" do
      expect(Set[1, 2, 3].pmap(backend:) { |x| x + 1 }).to eq([2, 3, 4])
      expect(Set[1, 2, 3].pselect(backend:, &:odd?)).to eq(Set[1, 2, 3].select(&:odd?))
      expect((1..10).step(3).pmap(backend:) { |x| x * x }).to eq([1, 16, 49, 100])
      expect(1.step(10, 4).preduce(backend:) { |a, b| a + b }).to eq(15)
      expect((1.0..2.0).step(0.5).pmap(backend:) { |x| x * 2 }).to eq([2.0, 3.0, 4.0])
      expect([3, 1].pmap(backend:).pmap(backend:) { |x| x + 1 }).to eq([4, 2])
      expect(hash.plazy(backend:).map { |_, value| value }.select(&:even?).to_a).to eq([2, 2])
      expect([{}.pmap(backend:) { |_, _| 1 }, {}.pselect(backend:) { |_, _| true }, Set[].preduce(backend:) { |a, _| a }]).to eq([[], {}, nil])
    end
  end

  it "leaves the receiver alone, and names to_a where it cannot go over it" do
    %i[pmap! pnew].each { |name| expect([hash, Set[], [].each].map { |whole| whole.respond_to?(name) }).to eq([false] * 3) }
    expect { loop.pmap { 1 } }.to raise_error(ArgumentError, /has no end/)
    expect { (1..3).lazy.pmap { |x| x } }.to raise_error(ArgumentError, /call to_a first/)
    expect { ("a".."c").pmap { |x| x } }.to raise_error(ArgumentError, /call to_a first/)
  end

  it "refuses lambdas where Ruby passes several values, as kernels would be given an Array of them" do
    expect { [1, 2].each_with_index.pmap(&->(x, i) { x + i }) }.to raise_error(Ikra::CompileError, /call to_a first/)
    expect { { a: 1 }.pselect(&->(_, value) { value > 0 }) }.to raise_error(Ikra::CompileError, /call to_a first/)
  end

  it "is there by refinements, too" do
    program = <<~RUBY
      require "ikra/refinements"
      using Ikra::Refinements
      p({ a: 1 }.pmap { |_, value| value + 1 }, { a: 1 }.pselect { |_, value| value == 1 }, (1..5).step(2).pmap { |x| x })
      p Hash.method_defined?(:pmap)
    RUBY
    Dir.mktmpdir do |folder|
      File.write(path = File.join(folder, "refined.rb"), program)
      expect(IO.popen([RbConfig.ruby, "-I#{File.expand_path("../../lib", __dir__)}", path], &:read)).to eq("[2]\n#{{ a: 1 }.inspect}\n[1, 3, 5]\nfalse\n")
    end
  end
end
