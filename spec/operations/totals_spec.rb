# frozen_string_literal: true

# Reductions of chains without a list of their values. The answer is Ruby's, with one kernel.
RSpec.describe "Totals of plazy" do
  # Whether the value is that of Ruby's lazy chain, for Floats with the same bits.
  def same?(one, other)
    return one.size == other.size && one.zip(other).all? { |a, b| same?(a, b) } if one.is_a?(Array) && other.is_a?(Array)

    one.is_a?(Float) && other.is_a?(Float) ? [one].pack("G") == [other].pack("G") || (one.nan? && other.nan?) : one.eql?(other)
  end

  def outcome
    yield
  rescue StandardError => e
    raise if e.is_a?(Ikra::CompileError)

    [e.class, e.message.lines.first.chomp]
  end

  def expect_as_ruby(list, **options)
    expected = outcome { yield(list.lazy) }
    got = outcome { yield(list.plazy(backend: backend, **options)) }
    expect(same?(expected, got)).to be(true), "#{backend}, #{list.size} elements: Ruby #{expected.inspect}, Ikra #{got.inspect}"
  end

  def ends
    [
      ->(chain) { chain.sum }, ->(chain) { chain.sum(7) }, ->(chain) { chain.sum(0.0) }, ->(chain) { chain.count }, ->(chain) { chain.min }, ->(chain) { chain.max },
      ->(chain) { chain.minmax }, ->(chain) { chain.reduce(:+) }, ->(chain) { chain.inject(4, :+) }
    ]
  end

  # Each chain with each end; where that takes long, each chain with one.
  def some(chains, ends)
    backend == :cuda_shim ? chains.each_with_index.map { |chain, i| [chain, ends[i % ends.size]] } : chains.product(ends)
  end

  on_every_backend do |name|
    sizes = name == :cpu ? [0, 1, 2, 31, 32, 33, 1000, 1_000_000] : [0, 1, 2, 31, 33, 700]

    # The remaining values have few digits, so that their sum is the same in any order.
    kinds = {
      "Integers" => ->(n) { Array.new(n) { |i| (i * 7919 % 1013) - 400 } }, "Floats" => ->(n) { Array.new(n) { |i| ((i * 7919 % 1013) - 400) / 8.0 } },
      "a Range" => ->(n) { (-(n / 2)...(n - (n / 2))) }
    }
    kinds.each do |kind, make|
      it "are Ruby's for #{kind}" do
        chains = [
          ->(chain) { chain.map { |x| x * 2 } }, ->(chain) { chain.map { |x| x + 1 }.select { |x| x > 100 } }, ->(chain) { chain.select { |_| false } },
          ->(chain) { chain.filter_map { |x| x - 3 if x < 20 }.reject { |x| x == 5 } }, ->(chain) { chain.with_index.map { |x, i| x + i }.take(900) }
        ]
        sizes.each do |size|
          list = make.call(size)
          pairs = size < 10_000 ? chains.product(ends) : [[chains[1], ends.first], [chains[3], ends[4]], [chains.last, ends[3]]]
          pairs.each { |stages, last| expect_as_ruby(list) { |chain| last.call(stages.call(chain)) } }
        end
      end
    end

    it "are Ruby's for zips, combinations, stencils and slices" do
      [0, 1, 33, 700].each do |size|
        list = Array.new(size) { |i| ((i * 7919) % 101) - 20 }
        other = Array.new(size) { |i| i / 4.0 }
        chains = [
          ->(chain) { chain.zip(other).map { |x, y| x * y } }, ->(chain) { chain.zip(other).select { |x, _| x > 3 }.map { |_, y| y } },
          ->(chain) { chain.map { |x| x + 1 }.zip(list).filter_map { |x, y| x * y if x > y } }, ->(chain) { chain.each_slice(3).map(&:sum) },
          ->(chain) { chain.each_slice(4).map { |slice| slice.size }.select(&:even?) }, ->(chain) { chain.drop(2).take(400).map { |x| x - 1 } }
        ]
        chains.product(ends).each { |stages, last| expect_as_ruby(list) { |chain| last.call(stages.call(chain)) } }
        stencil = ->(chain) { chain.map { |x| x * 2 }.stencil([-1, 0, 1], 0) { |a, b, c| a + b - c } }
        ends.first(4).each { |last| expect(last.call(stencil.call(list.plazy(backend: backend)))).to eq(last.call(stencil.call(list.plazy).to_a.lazy)) }
      end
    end

    it "are Ruby's for what is special: NaN, zeros with a sign, infinities, the ends of 64 bits, sums beyond them" do
      greatest = (2**63) - 1
      lists = [
        [1.0, Float::NAN, -2.0], [Float::NAN], [Float::NAN, Float::NAN], [0.0, -0.0], [-0.0, 0.0], [-0.0], [-0.0, -0.0], [Float::INFINITY, 1.0], [Float::INFINITY, -Float::INFINITY],
        [-Float::INFINITY], [Float::INFINITY], [greatest], [-greatest - 1], [greatest, greatest, 5], [-greatest - 1, -greatest - 1], [0]
      ]
      chains = [->(chain) { chain.map { |x| x } }, ->(chain) { chain.select { |x| x == x } }, ->(chain) { chain.select { |x| x != 5 && x != 1.0 } }, ->(chain) { chain.reject { |x| x >= 0 || x < 0 } }]
      lists.product(chains, ends).each { |list, stages, last| expect_as_ruby(list) { |chain| last.call(stages.call(chain)) } }
    end

    it "are compensated over Floats, and equal wherever they run" do
      list = Array.new(1000) { |i| i.even? ? 1e16 : 0.1 * i }
      chain = ->(on) { list.plazy(backend: on).map { |x| x - 3.0 }.select { |x| x > 5.0 } }
      expect([chain.call(backend).sum].pack("G")).to eq [chain.call(:reference).sum].pack("G")
      expect(chain.call(backend).sum).to be_within(4.0).of(list.map { |x| x - 3.0 }.select { |x| x > 5.0 }.sum)
    end

    it "are Ruby's where values are of several kinds, or are no numbers, or there are objects" do
      chains = [
        ->(chain) { chain.map { |x| x > 3 ? x : 1.5 } }, ->(chain) { chain.map { |x| x > 3 ? x : nil }.compact }, ->(chain) { chain.map { |x| x > 3 ? x : nil } },
        ->(chain) { chain.map { |x| x > 3 ? x : :few }.select { |x| x } }, ->(chain) { chain.map { |x| x > 5 } }, ->(chain) { chain.select(&:even?).map { |x| [x, 1] } }
      ]
      [[1, 5, 9], [1], [4, 6]].product(chains, ends).each { |list, stages, last| expect_as_ruby(list) { |chain| last.call(stages.call(chain)) } }
      people = [30, 41, 7].map { |age| DoAsRuby::Person.new("x", age) }
      chain = people.plazy(backend: backend)
      expect([chain.map(&:age).sum, chain.sum(&:age), chain.select { |person| person.age > 10 }.min_by(&:age), chain.max_by(&:age), chain.count { |person| person.age.odd? }])
        .to eq [78, 78, people[0], people[1], 2]
    end

    it "find the first of the elements with the least or the greatest key" do
      keys = [->(x) { x % 7 }, ->(x) { -x / 2.0 }, ->(x) { x == 3 ? Float::NAN : 1.0 * x }, ->(x) { [x % 3, x] }, ->(x) { x > 2 ? x : 2.5 }, ->(_) { 9_223_372_036_854_775_807 }, ->(_) {
 -Float::INFINITY }]
      chains = [->(chain) { chain }, ->(chain) { chain.map { |x| x + 1 } }, ->(chain) { chain.select(&:even?).map { |x| x * 3 } }, ->(chain) { chain.select { |x| x > 99 } }, ->(chain) {
 chain.drop(1).take(3) }]
      lists = [[], [3], [5, 3, 9, 3, 8, 2, 16, 1], (1..40)]
      some(lists.product(chains), keys.product(%i[min_by max_by])).each do |(list, stages), (key, name)|
        expect_as_ruby(list) { |chain| stages.call(chain).public_send(name, &key) }
      end
      expect_as_ruby([4, 1, 9]) { |chain| chain.with_index.min_by { |x, i| x - (i * 5) } }
      expect_as_ruby([4, 1, 9]) { |chain| chain.map { |x| x * 2 }.zip([9, 1, 5]).select { |_, y| y > 2 }.max_by { |x, y| x + y } }
    end

    it "are groups, too" do
      chains = [->(one) { one.map { |x| x % 5 } }, ->(one) { one.select(&:odd?).map { |x| x / 2.0 } }, ->(one) { one.map { |x| x > 3 ? :many : x } }, ->(one) { one.flat_map { |x| [x % 3, nil] } }]
      more = [
        ->(one) { one.tally }, ->(one) { one.tally({ 1 => 2 }) }, ->(one) { one.uniq.to_a }, ->(one) { one.uniq { |x| x == 1 ? nil : x }.to_a }, ->(one) { one.group_by { |x| x == 1 } },
        ->(one) { one.partition { |x| x == 1 } }, ->(one) { one.sort_by { |x| x == 1 ? 0 : 1 }.map { |x| x == 1 } }, ->(one) { one.minmax_by { |x| x == 1 ? 0 : 1 } }
      ]
      [[], [1], 0...33, 0...1000].product(chains, more).each do |list, stages, last|
        expect(outcome { last.call(stages.call(list.plazy(backend: backend))) }).to eql(outcome { last.call(stages.call(list.lazy)) })
      end
      expect(Ikra.explain { (0...100).plazy(backend: backend).map { |x| x % 5 }.uniq { |x| x % 2 } }.sections.size).to eq 1
    end

    it "raise what Ruby raises, and not what Ruby would not come to" do
      chains = [
        ->(chain) { chain.map { |x| 60 / (x - 4) } }, ->(chain) { chain.select { |x| 60 / (x - 4) > 0 } }, ->(chain) { chain.take(3).map { |x| 60 / (x - 4) } },
        ->(chain) { chain.map { |x| 60 / (x - 4) }.take(3).map { |x| x + 1 } }, ->(chain) { chain.map { |x| 60 / (x - 4) }.flat_map { |x| [x, x] }.take(5).map { |x| x + 1 } },
        ->(chain) { chain.map { |x| 60 / (x - 4) }.flat_map { |x| [x, x] }.map { |x| x + 1 } }, ->(chain) { chain.take_while { |x| x < 3 }.map { |x| 60 / (x - 4) } }
      ]
      chains.product(ends).each { |stages, last| expect_as_ruby((1..9)) { |chain| last.call(stages.call(chain)) } }
      expect_as_ruby((1..9)) { |chain| chain.count { |x| 60 / (x - 4) > 2 } }
      expect_as_ruby((1..9)) { |chain| chain.min_by { |x| 60 / (x - 4) } }
    end

    it "are Ruby's where a chain ends early, or leaves out the first of what is left" do
      chains = [
        ->(chain) { chain.take_while { |x| x < 300 } }, ->(chain) { chain.map { |x| x * 2 }.take_while { |x| x < 500 }.select { |x| x % 3 == 0 }.map { |x| x - 7 } },
        ->(chain) { chain.select(&:odd?).take_while { |x| x > -9 }.reject { |x| x == 5 } }, ->(chain) { chain.take_while { |x| x < 9 }.take(4).take_while { |x| x != 2 } },
        ->(chain) { chain.with_index.take_while { |x, i| x + i < 1000 }.map { |x, i| x * i } }, ->(chain) { chain.each_slice(3).take_while { |slice| slice.size == 3 }.map(&:sum) },
        ->(chain) { chain.select(&:even?).take(5) }, ->(chain) { chain.reject { |x| x % 7 == 3 }.map { |x| x * 0.25 }.take(600) },
        ->(chain) { chain.map { |x| x * 3 }.drop(4) }, ->(chain) { chain.select { |x| x > 2 }.drop(3) }, ->(chain) { chain.select(&:even?).take_while { |x| x < 600 }.drop(2) },
        ->(chain) { chain.take_while { |x| x < 200 }.select(&:odd?).take(3) }, ->(chain) { chain.select { |x| x > 10_000 }.take(2) }, ->(chain) { chain.select { |x| x > 3 }.take(0) },
        ->(chain) { chain.drop(2).take_while { |x| x < 50 } }, ->(chain) { chain.map { |x| x.odd? ? x : x / 2.0 }.take_while { |x| x < 90 } }
      ]
      more = [*ends, ->(chain) { chain.reduce { |a, b| a > b ? a : b } }, ->(chain) { chain.reduce(3) { |a, b| a + b } }, ->(chain) { chain.min_by { |x| x % 11 } }, ->(chain) { chain.count(&:zero?) }]
      [[], [1], [7, 2, 400, 3], (0...700), Array.new(1500) { |i| (i * 7919 % 1013) - 400 }].product(some(chains, more)).each do |list, (stages, last)|
        expect_as_ruby(list) { |chain| last.call(stages.call(chain)) }
      end
    end

    it "raise what is raised before a chain ends, and nothing behind that" do
      chains = [
        ->(chain) { chain.take_while { |x| 60 / (x - 4) < 0 } }, ->(chain) { chain.take_while { |x| x < 5 }.map { |x| 60 / (x - 4) } }, ->(chain) { chain.take_while { |x|
 x < 4 }.map { |x| 60 / (x - 4) } },
        ->(chain) { chain.map { |x| 60 / (x - 4) }.take_while { |x| x != -30 } }, ->(chain) { chain.take_while { |x| 60 / (x - 6) != 0 }.map { |x| 60 / (x - 4) } },
        ->(chain) { chain.select { |x| 60 / (x - 4) < 0 }.take(2) }, ->(chain) { chain.select { |x| 60 / (x - 4) < 0 }.take(4) }, ->(chain) { chain.map { |x| 60 / (x - 4) }.drop(6) },
        ->(chain) { chain.map { |x| 60 / (x - 9) }.drop(2) }, ->(chain) { chain.map { |x| 60 / (x - 4) }.flat_map { |x| [x, x] }.take_while { |x| x > -30 } },
        ->(chain) { chain.map { |x| 60 / (x - 4) }.flat_map { |x| [x, x] }.take_while { |x| x < 99 } }, ->(chain) { chain.map { |x| 60 / (x - 4) }.flat_map { |x| [x] }.select { |x| x }.take(2) },
        ->(chain) { chain.map { |x| 60 / (x - 4) }.flat_map { |x| [x] }.take_while { |_| true }.take(3) }, ->(chain) { chain.map { |x| 60 / (x - 4) }.flat_map { |x| [x] }.map { |x| x }.drop(1) }
      ]
      more = [*ends, ->(chain) { chain.reduce { |a, b| a + b } }, ->(chain) { chain.max_by { |x| -x } }]
      some(chains, more).each { |stages, last| expect_as_ruby((1..9)) { |chain| last.call(stages.call(chain)) } }
    end

    it "look for the end of a chain near its beginning first" do
      near = Ikra.explain { (1..100_000).plazy(backend: backend).map { |x| x * 2 }.take_while { |x| x < 20 }.sum }
      expect([near.value, near.sections.map(&:elements)]).to eq [90, [256, 9]]
      far = (0..9999).plazy(backend: backend).with_index.take_while { |x, i| 60 / (x + i - 6000) < 60 }
      expect { far.count }.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq 3000 }
      expect((0..9999).plazy(backend: backend).with_index.take_while { |x, i| x + i < 6000 }.count).to eq 3000
    end

    it "combine what take and drop leave where the kernel left it, by a block" do
      chains = [
        ->(chain) { chain.select(&:even?).take(300) }, ->(chain) { chain.map { |x| x * 3 }.drop(4) }, ->(chain) { chain.reject { |x| x % 7 == 3 }.map { |x| x * 0.25 }.take(600) },
        ->(chain) { chain.map { |x| x > 5 ? nil : x }.compact.drop(2) }, ->(chain) { chain.map { |x| x > 5 ? x : x / 2.0 }.drop(2) }, ->(chain) { chain.map { |x| x > 5 }.drop(1) },
        ->(chain) { chain.map { |x| 60 / (x - 4) }.select { |x| x != 1 }.take(3) }, ->(chain) { chain.map { |x| 60 / (x - 4) }.drop(2) }
      ]
      # These are not commutative.
      more = [
        ->(chain) { chain.reduce { |a, _| a } }, ->(chain) { chain.inject { |_, b| b } }, ->(chain) { chain.reduce(nil) { |a, _| a } }, ->(chain) { chain.reduce(5) { |_, b| b } },
        ->(chain) { chain.reduce { |a, b| a && b && a > b ? a : b } }
      ]
      [[], [4], [1, 2], (0...1), (0...32), (0...33), (0...1000)].product(some(chains, more)).each { |list, (stages, last)| expect_as_ruby(list) { |chain| last.call(stages.call(chain)) } }
      chain = (0...100_000).plazy(backend: backend).select(&:even?).drop(3)
      told = Ikra.explain { chain.reduce { |a, b| a + b } }
      # Chunks of 49 997 values, then their results.
      expect([told.value, told.sections.map { |section| [section.operation, section.elements] }]).to eq [2_499_949_994, [[:plazy, 100_000], [:plazy, 196], [:preduce, 1]]]
    end

    it "are sums where a block adds numbers of one kind, and what it gives where it does not" do
      floats = Array.new(1000) { |i| ((i % 89) - 40) / 7.0 }
      chain = floats.plazy(backend: backend).map { |x| x * 3 }
      expect([[], [4], [0.25]].map { |start| chain.reduce(*start) { |a, b| a + b } }).to eql([[], [4], [0.25]].map { |start| floats.map { |x| x * 3 }.preduce(*start) { |a, b| a + b } })
      chains = [
        ->(one) { one.map { |x| x * (2**46) } }, ->(one) { one.select { |x| x > 5000 } }, ->(one) { one.map { |x| x.odd? ? x : x / 2.0 } }, ->(one) { one.map { |x| [x] }.select { |x| x } },
        ->(one) { one.map { |x| x > 9 ? nil : x } }, ->(one) { one.map { |x| x - 350 } }, ->(one) { one.flat_map { |x| [x, 2**54] } }, ->(one) { one.map { |x| 60 / (x - 4) } }
      ]
      more = [->(one) { one.reduce { |a, b| a + b } }, ->(one) { one.inject(7) { |a, b| b + a } }]
      [0...200, 0...701].product(some(chains, more)).each { |list, (stages, last)| expect_as_ruby(list) { |one| last.call(stages.call(one)) } }
    end

    it "run blocks once that change objects or draw, where a chain ends early" do
      make = -> { Array.new(9) { |i| DoAsRuby::Person.new("x", i) } }
      chains = [
        ->(chain) { chain.take_while { |person| (person.age += 1) < 5 }.map(&:age) }, ->(chain) { chain.map { |person| person.age += 2 }.take_while { |x| x < 7 } },
        ->(chain) { chain.map { |person| person.age += 2 }.select(&:odd?).take(20) }, ->(chain) { chain.map { |person| person.age += 2 }.drop(3) },
        ->(chain) { chain.take_while { |person| person.age < 5 }.map { |person| person.age += 1 } }
      ]
      some(chains, ends).each do |stages, last|
        ruby, ikra = make.call, make.call
        expect(last.call(stages.call(ikra.plazy(backend: backend)))).to eq(last.call(stages.call(ruby.lazy)))
        # The people that Ruby reaches.
        came = ruby.zip(make.call).count { |person, before| person.age != before.age }
        expect(ikra.first(came).map(&:age)).to eq ruby.first(came).map(&:age)
        expect(ikra.zip(make.call).map { |person, before| person.age - before.age }.max).to be <= 2
      end
      expect((0..999).plazy(backend: backend).map { |_| rand }.take_while { |x| x < 0.99 }.max).to(satisfy { |x| x.nil? || x < 0.99 })
    end

    it "run blocks once that change objects" do
      make = -> { [3, 8, 5].map { |age| DoAsRuby::Person.new("x", age) } }
      chains = [
        ->(chain) { chain.map { |person| person.age += 1 } }, ->(chain) { chain.map { |person| (person.age += 1) * 0.5 } }, ->(chain) { chain.select { |person| (person.age += 1) > 5 }.map(&:age) },
        ->(chain) { chain.select { |person| (person.age += 1) > 50 }.map { |person| person.age * 1.0 } }, ->(chain) { chain.map { |person| (person.age += 1) > 4 ? Float::NAN : 1.0 } }
      ]
      chains.product(ends).each do |stages, last|
        ruby, ikra = make.call, make.call
        expected = outcome { last.call(stages.call(ruby.lazy)) }
        got = outcome { last.call(stages.call(ikra.plazy(backend: backend))) }
        expect(same?(expected, got)).to be(true), "Ruby #{expected.inspect}, Ikra #{got.inspect}, at #{stages.source_location} #{last.source_location}, of #{stages.inspect}"
        expect(ikra.map(&:age)).to eq ruby.map(&:age) unless expected.is_a?(Array) && expected.first == ArgumentError
      end
      ruby, ikra = make.call, make.call
      expect(ikra.plazy(backend: backend).map { |person| person.age += 1 }.max_by { |x| -x }).to eq(ruby.lazy.map { |person| person.age += 1 }.max_by { |x| -x })
      expect(ikra.map(&:age)).to eq ruby.map(&:age)
      # The kernel before, too, where the block that compares runs only in a section of its own.
      ruby, ikra = make.call, make.call
      seen = [0, 0]
      oldest = ikra.plazy(backend: backend).flat_map { |person| person.age += 1; [person.age] }.min_by { |x| seen[0] += 1; -x }
      expect(oldest).to eq(ruby.lazy.flat_map { |person| person.age += 1; [person.age] }.min_by { |x| seen[1] += 1; -x })
      expect([ikra.map(&:age), seen[0]]).to eq([ruby.map(&:age), seen[1]])
    end

    it "are a part of the kernel that computes the values" do
      at_once = backend == :reference ? 2 : 1
      list = Array.new(5000) { |i| i }
      chain = list.plazy(backend: backend).map { |x| x * 2 }.select { |x| x % 3 == 0 }.zip(list).map { |x, y| x + y }
      told = lambda do |&work|
        explanation = Ikra.explain(&work)
        [explanation.chains.last.kernels.map(&:stages), explanation.chains.last.to_s[/# kernels: \d+/], explanation.sections.map { |section| [section.reduction, section.kernels] }]
      end
      one = list.plazy(backend: backend).zip(list).map { |x, y| x * y }.select(&:even?)
      expect(told.call { one.sum }).to eq [[%i[zip map select sum]], "# kernels: 1", [[:sum, at_once]]]
      expect(told.call { one.count }).to eq [[%i[zip map select count]], "# kernels: 1", [[:count, at_once]]]
      expect(told.call { one.max }).to eq [[%i[zip map select max]], "# kernels: 1", [[:max, at_once]]]
      expect(told.call { one.reduce(:+) }).to eq [[%i[zip map select] + [:"reduce(:+)"]], "# kernels: 1", [[:sum, at_once]]]
      expect(told.call { one.sum { |x| x * 0.5 } }).to eq [[%i[zip map select sum]], "# kernels: 1", [[:sum, at_once]]]
      expect(told.call { chain.sum }).to eq [[%i[map select], %i[zip map sum]], "# kernels: 2", [[nil, 1], [:sum, at_once]]]
      expect(told.call { list.plazy(backend: backend).zip(list).map { |x, y| x * y }.minmax }).to eq [[%i[zip map minmax]], "# kernels: 1", [[:minmax, at_once]]]
      # The host marks elements that are left out in a column.
      expect(told.call { one.minmax }).to eq [[%i[zip map select minmax]], "# kernels: 1", [[:minmax, backend == :cpu ? 2 : at_once]]]
      expect(told.call { one.map { |x| x * 0.5 }.minmax }).to eq [[%i[zip map select map minmax]], "# kernels: 1", [[:minmax, backend == :cpu ? 2 : at_once]]]
      sections = ->(&work) { Ikra.explain(&work).sections.map { |section| [section.reduction, section.kernels] } }
      expect(sections.call { list.pminmax_by(backend: backend) { |x| -x } }).to eq [[:minmax, at_once]]
      expect(sections.call { (Ikra::MDArray.new(list) * 2.0 + 1).minmax(backend: backend) }).to eq [[:minmax, at_once]]
      # And one kernel for the element that was found.
      expect(told.call { one.min_by { |x| -x } }).to eq [[%i[zip map select min_by]], "# kernels: 1", [[:min, at_once], [nil, 1]]]
    end
  end

  it "say why they are not" do
    told = ->(&work) { Ikra.explain(&work).chains.last.to_s }
    expect(told.call { (1..9).plazy.map { |x| x > 3 ? x : 1.5 }.sum }).to eq <<~TEXT.chomp
      plazy.map.sum
        kernel 1: map
          sum is not in it: its values are not all Integers or all Floats, or blocks change what they would run for again
        # kernels: 1
    TEXT
    expect(told.call { (1..9).plazy.map { |x| x }.take_while { |x| x < 5 }.count }).to eq <<~TEXT.chomp
      plazy.map.take_while.count
        kernel 1: map, take_while
          finds where take_while ends
        kernel 2: map, count
        # kernels: 2
    TEXT
    expect(told.call { (1..9).plazy.take_while { |x| x < 5 }.map { |x| x + 1 }.take_while { |x| x < 9 }.reduce { |a, b| a + b } }).to eq <<~TEXT.chomp
      plazy.take_while.map.take_while.reduce
        kernel 1: take_while, map, take_while
          finds where take_while ends
        kernel 2: map, reduce
        # kernels: 2
    TEXT
    people = [DoAsRuby::Person.new("x", 3)]
    expect(told.call { people.plazy.map { |person| person.age += 1 }.take_while { |x| x < 9 }.sum }).to eq <<~TEXT.chomp
      plazy.map.take_while.sum
        kernel 1: map, take_while
          sum is not in it: blocks change what they would run for again to find where take_while ends
        # kernels: 1
    TEXT
    expect(told.call { people.plazy.map { |person| person.age += 1 }.take_while { |x| x < 9 }.reduce { |a, b| a + b } }).to eq <<~TEXT.chomp
      plazy.map.take_while.reduce
        kernel 1: map, take_while
          reduce is not in it: blocks change what they would run for again to find where take_while ends
        kernel 2: reduce
          by itself
        # kernels: 2
    TEXT
    expect(told.call { (1..9).plazy.map { |x| x * 0.5 }.reduce(:+) }).to include("reduce(:+) is not in it: ")
  end

  it "take less from blocks of min_by than a section of their own does, which then runs them" do
    seen = 0
    expect((1..9).plazy.map { |x| x + 1 }.min_by { |x| seen += 1; -x }).to eq 10
    expect(seen).to eq 9
  end
end
