# frozen_string_literal: true

# Stages after flat_map go over its arrays in the same kernel. The answer is Ruby's, and there is one kernel where
# possible.
RSpec.describe "flat_map in a chain of plazy" do
  # Counts as an array.
  class self::Pair
    def initialize(one, other)
      @one = one
      @other = other
    end

    def to_ary = [@one, @other]
  end

  def outcome
    value = yield
    [value.is_a?(Float) ? [value].pack("G") : value.inspect]
  rescue StandardError => e
    raise if e.is_a?(Ikra::CompileError)

    [e.class, e.message.lines.first.chomp]
  end

  def expect_as_ruby(list, stages, last)
    expected = outcome { last.call(stages.call(list.lazy)) }
    got = outcome { last.call(stages.call(list.plazy(backend: backend))) }
    expect(got).to eq(expected), "#{list.size} elements, #{stages.source_location} #{last.source_location}: Ruby #{expected}, Ikra #{got}"
  end

  # Each chain with each end; or a third of these, where that takes long.
  def combined(flat_maps, behind, ends)
    all = flat_maps.product(behind).map { |one, other| one >> other }
    backend == :cuda_shim ? all.each_with_index.select { |_, i| i % 3 == 0 }.map { |chain, i| [chain, ends[i % ends.size]] } : all.product(ends)
  end

  def told(&work) = Ikra.explain(&work).chains.last

  ends = [
    ->(chain) { chain.to_a }, ->(chain) { chain.sum }, ->(chain) { chain.sum(3) }, ->(chain) { chain.sum(0.0) }, ->(chain) { chain.count }, ->(chain) { chain.min }, ->(chain) { chain.max },
    ->(chain) { chain.minmax }, ->(chain) { chain.reduce(:+) }, ->(chain) { chain.inject(5, :+) }, ->(chain) { chain.reduce { |a, _| a } }, ->(chain) { chain.reduce(nil) { |_, b| b } },
    ->(chain) { chain.first(70) }, ->(chain) { chain.any? { |x| x == 9 } }, ->(chain) { chain.all? { |x| x != 9 } }, ->(chain) { chain.one? { |x| x == 12 } }, ->(chain) { chain.none? },
    ->(chain) { chain.include?(12) }, ->(chain) { chain.find { |x| x == 12 } }, ->(chain) { chain.min_by { |x| x == 12 ? 0 : 1 } }, ->(chain) { chain.count { |x| x } }
  ]
  behind = [
    ->(chain) { chain }, ->(chain) { chain.map { |x| x } }, ->(chain) { chain.select { |x| x != 3 } }, ->(chain) { chain.compact.reject { |x| x == 12 } },
    ->(chain) { chain.filter_map { |x| x if x != 4 } },
    ->(chain) { chain.flat_map { |x| [x, [x], 7] } }, ->(chain) { chain.map { |x| [x, 1] }.map { |x, y| y ? x : 2 } }, ->(chain) { chain.take(50) }, ->(chain) { chain.map { |x| x }.drop(3) },
    ->(chain) { chain.with_index.map { |x, i| i.odd? ? x : 0 } }, ->(chain) { chain.take_while { |x| x != 66 } }
  ]

  on_every_backend do |name|
    sizes = { cpu: [0, 1, 2, 31, 32, 33, 63, 64, 65, 1000], reference: [0, 1, 33, 64, 300] }.fetch(name, [0, 33, 64])

    {
      "arrays of one length" => [->(chain) { chain.flat_map { |x| [x, x * 2] } }],
      "arrays of many lengths, which may be empty" => [->(chain) { chain.flat_map { |x| Array.new(x.abs % 4) { |i| x + i } } }, ->(chain) { chain.flat_map { |_| [] } }],
      "arrays and what is none" => [->(chain) { chain.flat_map { |x| x.even? ? [x, 3] : x } }, ->(chain) { chain.flat_map { |x| x > 20 ? nil : [x] } }],
      "arrays within arrays" => [->(chain) { chain.flat_map { |x| [[x, 1], [2]] } }, ->(chain) { chain.flat_map { |x| [x, [x, [x]]] } }],
      "Floats" => [->(chain) { chain.flat_map { |x| [x / 8.0, -0.0] } }, ->(chain) { chain.flat_map { |x| x == 5 ? [Float::NAN, 1.5] : [x * 0.25] } }],
      "values of several kinds" => [->(chain) { chain.flat_map { |x| [x, x / 2.0] } }, ->(chain) { chain.flat_map { |x| [nil, x] } }, ->(chain) { chain.flat_map { |x| [x, :few] } }]
    }.each do |kind, flat_maps|
      it "is Ruby's, whatever follows, for #{kind}" do
        combined(flat_maps, behind, ends).each_with_index do |(stages, last), i|
          # Where there are many chains, each has some of the sizes.
          sizes.rotate(i).first(name == :cpu ? 4 : 2).each { |size| expect_as_ruby(Array.new(size) { |j| (j * 7919 % 101) - 20 }, stages, last) }
        end
      end
    end

    it "is Ruby's behind other stages, over Ranges, and for what is taken for an array" do
      pair = self.class.const_get(:Pair)
      flat_maps = [
        ->(chain) { chain.select(&:even?).flat_map { |x| [x, -x] } }, ->(chain) { chain.with_index.flat_map { |x, i| [x, i] } }, ->(chain) { chain.each_slice(3).flat_map { |slice| slice } },
        ->(chain) { chain.take_while { |x| x < 80 }.flat_map { |x| [x, 3] } }, ->(chain) { chain.flat_map(&:digits) }, ->(chain) { chain.drop(2).take(70).flat_map(&->(x) { [x, 9] }) },
        ->(chain) { chain.flat_map { |x| pair.new(x, 7) }.map { |x| x + 1 } }, ->(chain) { chain.flat_map { |x| [[x, 4]] }.flat_map { |x| x } }
      ]
      (name == :cuda_shim ? flat_maps.zip(ends) : flat_maps.product(ends)).each { |stages, last| [0...1, 0...33, 0...150].each { |list| expect_as_ruby(list, stages, last) } }
    end

    it "raises what Ruby raises, and not what Ruby would not come to" do
      chains = [
        ->(chain) { chain.flat_map { |x| [x, 600 / (x - 70)] }.map { |x| x + 1 } },
        ->(chain) { chain.flat_map { |x| [x, x + 1] }.map { |x| 600 / (x - 70) } },
        ->(chain) { chain.flat_map { |x| [x, 70] }.select { |x| 600 / (x - 70) != 1 } }, ->(chain) { chain.flat_map { |x| [x, x > 70 ? nil : 1] }.map { |x| x + 1 } }
      ]
      more = [->(chain) { chain.first }, ->(chain) { chain.first(2) }, ->(chain) { chain.find { |x| x > 2 } }, ->(chain) { chain.reduce { |a, b| a + b } }]
      (name == :cuda_shim ? chains.zip(more) : chains.product(more + ends - [ends[8], ends[9]])).each { |stages, last| [0...60, 0...100].each { |list| expect_as_ruby(list, stages, last) } }
    end

    it "adds Integers up in as many digits as it takes" do
      big = ->(chain) { chain.flat_map { |x| [(2**62) + x, 2**62, x] } }
      [->(chain) { chain.sum }, ->(chain) { chain.map { |x| x }.sum }, ->(chain) { chain.inject(:+) }].each { |last| expect_as_ruby(0...100, big, last) }
      wrapped = (0...100).plazy(backend: backend, overflow: :wrap).flat_map { |x| [(2**62) + x, 2**62, x] }
      expect([wrapped.sum, wrapped.map { |x| x }.sum]).to eq [(0...100).sum { |x| (2**63) + (2 * x) }] * 2
    end

    it "runs blocks that change objects once for each, and in Ruby's order" do
      make = -> { Array.new(100) { |i| DoAsRuby::Person.new([], i) }.tap { |people| people.each_with_index { |person, i| person.name << person << people[(i + 1) % 100] } } }
      chains = [
        ->(chain) { chain.flat_map { |person| person.name }.map { |friend| friend.age += 1 } }, ->(chain) { chain.flat_map { |person| [person.age += 1, 2] } },
        ->(chain) { chain.flat_map { |person| [person.age += 1, 2] }.map { |x| x * 2 } }
      ]
      (name == :cuda_shim ? chains.zip(ends.drop(4)) : chains.product(ends - [ends[13], ends[14], ends[15], ends[17], ends[18]])).each do |stages, last|
        ruby, ikra = make.call, make.call
        expected = outcome { last.call(stages.call(ruby.lazy)) }
        expect([outcome { last.call(stages.call(ikra.plazy(backend: backend))) }, stages.source_location, last.source_location]).to eq [expected, stages.source_location, last.source_location]
        expect(ikra.map(&:age)).to eq(ruby.map(&:age)) unless [ends[12], ends[16]].include?(last)
      end
      drawn = (0...100).plazy(backend: backend).flat_map { |_| [rand, rand] }.map { |x| x }.minmax
      expect(drawn).to all(be_between(0.0, 1.0))
    end

    it "adds Floats in the order in which it adds any list's, and compares NaN as Ruby does" do
      list = Array.new(1000) { |i| i.even? ? 1e16 : 0.1 * i }
      values = list.flat_map { |x| [x, 1 / x, -x] }.map { |x| x - 3.0 }
      chain = list.plazy(backend: backend).flat_map { |x| [x, 1 / x, -x] }
      expect(chain.map { |x| x - 3.0 }.sum).to eql(values.plazy(backend: backend).map { |x| x }.sum)
      expect([chain.sum, chain.minmax, chain.map { |x| -x }.minmax]).to eql([list.lazy.flat_map { |x| [x, 1 / x, -x] }.sum, [-1e16, 1e16], [-1e16, 1e16]])
      [->(one) { one.minmax }, ->(one) { one.min }].each do |last|
        expect_as_ruby(list, ->(one) { one.flat_map { |x| [x, 1 / x] }.map { |x| x > 90 ? Float::NAN : x } }, last)
      end
    end

    it "is one kernel with what follows, and with what that is reduced to" do
      chain = (0...1000).plazy(backend: backend).flat_map { |x| [x, x * 2] }
      many = (0...17_000).plazy(backend: backend).flat_map { |x| x < 300 ? [] : [x, nil] }
      expect([many.reduce { |a, _| a }, many.compact.reduce(-1) { |_, b| b }, many.reduce { |_, b| b }]).to eq [300, 16_999, nil]
      works = {
        %i[flat_map sum] => -> { chain.sum }, %i[flat_map map sum] => -> { chain.map { |x| x + 1 }.sum }, %i[flat_map map max] => -> { chain.map { |x| x / 2.0 }.max },
        %i[flat_map select count] => -> { chain.select(&:odd?).count }, %i[flat_map flat_map min] => -> { chain.flat_map { |x| [x, 1] }.min },
        %i[flat_map map reduce] => -> { many.map { |x| x }.reduce { |a, _| a } }, [:flat_map, :"reduce(:+)"] => -> { chain.reduce(:+) },
        %i[flat_map map] => -> { chain.map { |x| x + 1 }.to_a }
      }
      works.each do |stages, work|
        explanation = Ikra.explain(&work)
        expect([explanation.chains.last.kernels.map(&:stages), explanation.chains.last.to_s[/# kernels: \d+/]]).to eq [[stages], "# kernels: 1"]
        expect(explanation.sections.count { |section| section.operation == :plazy }).to eq 1
      end
    end
  end

  it "says what of what follows is not in its kernel, and why" do
    chain = (0...100).plazy.flat_map { |x| [x, x * 2] }
    expect(told { chain.map { |x| x + 1 }.to_a }.to_s).to eq <<~TEXT.chomp
      plazy.flat_map.map
        kernel 1: flat_map, map
          then its arrays one after the other
        # kernels: 1
    TEXT
    expect(told { chain.map { |x| x + 1 }.with_index.map { |x, i| x * i }.take(5).to_a }.to_s).to eq <<~TEXT.chomp
      plazy.flat_map.map.with_index(0).map.take(5)
        kernel 1: flat_map, map
          then its arrays one after the other
          with_index asks for positions, which are known only after flat_map has run
        kernel 2: with_index, map, take
        # kernels: 2
    TEXT
    expect(told { chain.map { |x| x * 0.5 }.sum }.to_s).to eq <<~TEXT.chomp
      plazy.flat_map.map.sum
        kernel 1: flat_map, map
          then its arrays one after the other
          sum is not in it: that takes that all values are Integers, and that blocks change nothing
        # kernels: 1
    TEXT
    people = Array.new(64) { |i| DoAsRuby::Person.new("x", i) }
    expect(told { people.plazy.flat_map { |person| [person, person] }.map { |person| person.age += 1 }.sum }.to_s).to eq <<~TEXT.chomp
      plazy.flat_map.map.sum
        kernel 1: flat_map
          then its arrays one after the other
          what follows is not in it: blocks change something, or draw
        kernel 2: map
          sum is not in it: its values are not all Integers or all Floats, or blocks change what they would run for again
        # kernels: 2
    TEXT
    expect(told { (0...9).plazy.flat_map { |x| [x] }.map { |x| x + 1 }.count }.to_s).to include("what follows is not in it: there are fewer than 64 elements, whose arrays may be long")
    expect(told { chain.map { |_| rand }.to_a }.to_s).to include("what follows is not in it: blocks change something, or draw")
    expect(told { chain.minmax }.to_s).to include("minmax is not in it: behind flat_map it is made of the values")
    expect(told { chain.take_while { |x| x < 9 }.to_a }.to_s).to include("take_while ends at a position, which is known only after flat_map has run")
  end
end
