# frozen_string_literal: true

# Stencils in chains that read values of other stages. These are computed anew for each neighbour, shared by a block of
# threads, or computed by an earlier kernel.
RSpec.describe "stencils over other stages" do
  ways = [nil, :anew, :shared, :apart]
  # Near the size of the groups in which a block runs, and far from it.
  sizes = [0, 1, 2, 31, 32, 33, 1000, 2047, 2049, 5000]

  # The values of pstencil, by the interpreter.
  def around(list, offsets, fill, &block) = list.pstencil(offsets, fill, backend: :reference, &block)

  def chain(list, backend, way) = list.plazy(backend: backend, **(way ? { __stencils: way } : {}))

  it "gives what pstencil gives of the values before, at every size" do
    sizes.each do |size|
      list = Array.new(size) { |i| (i * 7919 % 101) / 8.0 }
      before = around(list.map { |x| x * 2 }, [-1, 0, 1], 0.5) { |x, y, z| x + 2 * y - z }
      expected = around(before, [-2, 0, 3], 1.5) { |x, y, z| x * y - z }
      backends.product(ways) do |backend, way|
        twice = chain(list, backend, way).map { |x| x * 2 }.stencil([-1, 0, 1], 0.5) { |x, y, z| x + 2 * y - z }.stencil([-2, 0, 3], 1.5) { |x, y, z| x * y - z }
        expect(twice.to_a).to eq(expected), "#{size} elements, #{backend}, #{way.inspect}"
      end
    end
  end

  it "goes through three stencils, whatever form their blocks have, and to every end" do
    sizes.each do |size|
      list = Array.new(size) { |i| (i * 7919 % 101) - 50 }
      expected = around(list, [-1, 1], 0) { |x, y| x * y }
      expected = around(expected, [-1, 0, 1], 7) { |v| v[-1] + v[0] * v[1] }
      expected = around(expected, [0, 5], -3) { |(x, y)| x - y }
      backends.product(ways) do |backend, way|
        values = chain(list, backend, way).stencil([-1, 1], 0) { |x, y| x * y }.stencil([-1, 0, 1], 7) { |v| v[-1] + v[0] * v[1] }.stencil([0, 5], -3) { |(x, y)| x - y }
        given = [values.to_a, values.first(3), values.sum, values.minmax, values.max_by { |x| -x }, values.reduce { |x, y| x > y ? x : y }, values.each_slice(3).map(&:sum).to_a]
        wanted = [
          expected, expected.first(3), expected.sum, expected.minmax, expected.max_by { |x| -x }, expected.reduce { |x, y| x > y ? x : y }, expected.each_slice(3).map(&:sum)
        ]
        expect(given).to eq(wanted), "#{size} elements, #{backend}, #{way.inspect}"
      end
    end
  end

  it "fuses stencils of two and three dimensions" do
    cross = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]]
    [[0, 0], [1, 1], [2, 3], [5, 70], [33, 31], [40, 65]].each do |height, width|
      grid = Array.new(height) { |y| Array.new(width) { |x| ((y * 31 + x * 17) % 53) / 4.0 } }
      next if grid.empty?

      expected = around(grid, cross, 0.0) { |n, w, c, e, s| c + 0.25 * (n + w + e + s - 4 * c) }
      expected = around(expected, [[0, -1], [1, 2]], 9.0) { |v| v[0, -1] - v[1, 2] }
      backends.product(ways) do |backend, way|
        values = chain(grid, backend, way).stencil(cross, 0.0) { |n, w, c, e, s| c + 0.25 * (n + w + e + s - 4 * c) }.stencil([[0, -1], [1, 2]], 9.0) { |v| v[0, -1] - v[1, 2] }
        expect([values.to_a, values.map(&:sum).to_a, values.first(1)]).to eq([expected, expected.map(&:sum), expected.first(1)]), "#{height} x #{width}, #{backend}, #{way.inspect}"
      end
    end
    star = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    [[1, 1, 1], [3, 4, 5], [9, 9, 33]].each do |sides|
      depth, height, width = sides
      cube = Array.new(depth) { |z| Array.new(height) { |y| Array.new(width) { |x| z * 100 + y * 10 - x } } }
      expected = around(around(cube, star, 1) { |a, b, c, d, e, f, g| a + b + c + e + f + g - 6 * d }, star, 2) { |a, b, c, d, e, f, g| a + b + c + e + f + g - 6 * d }
      backends.product(ways) do |backend, way|
        values = chain(cube, backend, way).stencil(star, 1) { |a, b, c, d, e, f, g| a + b + c + e + f + g - 6 * d }.stencil(star, 2) { |a, b, c, d, e, f, g| a + b + c + e + f + g - 6 * d }
        expect(values.to_a).to eq(expected), "#{sides}, #{backend}, #{way.inspect}"
      end
    end
  end

  it "raises what a neighbour raises, for the first element that asks for it, and nothing for what nobody asks for" do
    backends.product([:anew, :shared]) do |backend, way|
      tell = lambda do |bad, offsets|
        list = Array.new(3000) { |i| i == bad ? 0 : i + 1 }
        chain(list, backend, way).map { |x| 1000 / x }.stencil(offsets, 0) { |(x, *)| x }.to_a.size
      rescue ZeroDivisionError => error
        error.ikra.index
      end
      expect([0, 1, 2, 40, 2500, 2999].map { |bad| tell.call(bad, [-1, 2]) }).to eq [1, 2, 3, 38, 2498, 2997]
      # The first two, and the last, are not read.
      expect([0, 1, 2, 2999].map { |bad| tell.call(bad, [2]) }).to eq [3000, 3000, 0, 2997]
      expect([2997, 2999].map { |bad| tell.call(bad, [-2]) }).to eq [2999, 3000]
    end
  end

  it "tells of nothing but the error where another kernel has computed the values" do
    backends.each do |backend|
      chain = chain([1, 2, 1, 4], backend, :apart).map { |x| x + 1 }.stencil([-1, 1], 0) { |a, b| 10 / (a - b) }
      expect { chain.to_a }.to raise_error(ZeroDivisionError) { |error| expect(error.cause).to be_nil }
    end
  end

  it "shares values of every kind of number, and truth" do
    list = (0..99).to_a
    backends.each do |backend|
      kinds = { even?: ->(x) { x.even? }, fdiv: ->(x) { x.fdiv(7) }, square: ->(x) { x * x } }
      kinds.each_value do |kind|
        values = chain(list, backend, :shared).map { |x| kind.call(x) }.stencil([-1, 1], nil) { |a, b| [a, b] }.to_a
        expect(values).to eq [nil, *list.map(&kind).each_cons(3).map { |a, _, b| [a, b] }, nil]
      end
    end
  end

  it "shares nothing that depends on who asks, or that changes something" do
    backends.each do |backend|
      Ikra.srand(7)
      draws = chain((0..9).to_a, backend, :anew).map { |x| x + rand }.stencil([-1, 1], 0.0) { |a, b| a + b }.to_a
      Ikra.srand(7)
      expect(chain((0..9).to_a, backend, :shared).map { |x| x + rand }.stencil([-1, 1], 0.0) { |a, b| a + b }.to_a).to eq draws
      mixed = chain([1, 2.5, nil, 3], backend, :shared).map { |x| x }.stencil([-1, 0], :none) { |a, b| [a, b] }.to_a
      expect(mixed).to eq [:none, [1, 2.5], [2.5, nil], [nil, 3]]
    end
  end

  it "runs what changes or draws something once for each element" do
    backends.product(ways) do |backend, way|
      expect(chain((0..9).to_a, backend, way).map { |x| x + rand }.stencil([0, 0], 0.0) { |a, b| a - b }.to_a).to eq [0.0] * 10
      people = Array.new(40) { |i| DoAsRuby::Person.new(:a, i) }
      sums = chain(people, backend, way).map { |person| person.age += 1 }.stencil([-1, 1], 0) { |a, b| a + b }.to_a
      expect([people.map(&:age), sums]).to eq([(1..40).to_a, [0, *(2..39).map { |age| 2 * age }, 0]]), "#{backend}, #{way.inspect}"
    end
    slices = (0..59).to_a.plazy.each_slice(3).stencil([-1, 1], 0) { |a, b| a.sum + b.last }
    kernels = Ikra.explain { expect(slices.first(2)).to eq [0, 3 + 8] }
    expect(kernels.to_s).not_to include "they change"
  end

  it "says what was chosen, and why: one kernel with shared memory where threads have that" do
    skip "not this backend" unless backends.include?(:cuda_shim)
    roots = ->(backend) { Ikra.explain { [4.0, 9.0, 16.0, 25.0].plazy(backend: backend).map { |x| Math.sqrt(x) / 2 }.stencil([-1, 0, 1], 0.0) { |a, b, c| a + b + c }.to_a } }
    shared = roots.call(:cuda_shim)
    expect(shared.value).to eq [0.0, 4.5, 6.0, 0.0]
    expect(shared.chains.first.to_s).to match(/kernel 1: map, stencil\n    stencil shares what the blocks before it give among 2048 elements, in 16400 bytes/)
    expect(shared.chains.first.to_s).to end_with "\n  # kernels: 1"
    text = shared.sections.first.code(:cuda)
    expect(text).to match(/__shared__ f64 \w+_cells\[2050\];/).and match(/= \w+_cells\[c0 \+ 0\];/).and include("__syncthreads();")
    expect(shared.sections.size).to eq 1
    expect(roots.call(:cpu).chains.first.to_s).to match(/stencil (runs the blocks before it 3 times|looks at).*they cannot be shared/)
  end

  it "reduces what elements that share values give, in the same order as ever, by the same kernel" do
    # Near the sizes of the groups in which a block runs, and in which values are reduced.
    [1, 255, 2047, 2049, 8191, 8193, 20_000].each do |size|
      list = Array.new(size) { |i| (i * 7919 % 101) / 8.0 }
      before = list.map { |x| Math.sqrt(x) + x / 3 }
      expected = before.each_index.map { |i| i.zero? || i + 2 >= size ? 0.5 : before[i - 1] - before[i] * before[i + 2] }
      given = backends.product([:anew, :shared]).map do |backend, way|
        values = chain(list, backend, way).map { |x| Math.sqrt(x) + x / 3 }.stencil([-1, 0, 2], 0.5) { |x, y, z| x - y * z }
        chosen = values.select { |x| x < 0 }
        [values.sum, values.min, values.max, values.minmax, values.count { |x| x > -9 }, values.min_by { |x| (x + 7).abs }, chosen.sum, chosen.minmax, chosen.count]
      end
      expect(given.uniq.size).to eq 1
      wanted = [expected.min, expected.max, expected.minmax, expected.count { |x| x > -9 }, expected.min_by { |x| (x + 7).abs }]
      expect(given[0][1, 5]).to eq wanted
      expect(given[0][0]).to be_within(1e-6).of(expected.sum)
      expect(given[0][8]).to eq(expected.count(&:negative?))
    end
  end

  it "raises what a neighbour raises where elements are reduced, too" do
    backends.product([:anew, :shared]) do |backend, way|
      told = [0, 40, 2047, 2048, 9000, 9999].map do |bad|
        chain(Array.new(10_000) { |i| i == bad ? 0 : i + 1 }, backend, way).map { |x| 1000 / x }.stencil([-1, 2], 0) { |x, y| x + y }.sum
      rescue ZeroDivisionError => error
        error.ikra.index
      end
      expect(told).to eq [1, 38, 2045, 2046, 8998, 9997]
    end
  end

  it "is one kernel that shares values and reduces what elements give" do
    skip "not this backend" unless backends.include?(:cuda_shim)
    list = (1..20_000).to_a
    told = Ikra.explain { chain(list, :cuda_shim, :shared).map { |x| x * x % 1000 }.stencil([-1, 0, 1], 0) { |a, b, c| a + b - c }.select(&:even?).sum }
    squares = list.map { |x| x * x % 1000 }
    expect(told.value).to eq([0, *squares.each_cons(3).map { |a, b, c| a + b - c }].select(&:even?).sum)
    expect([told.sections.size, told.sections[0].kernels, told.sections[0].reduction]).to eq [1, 1, :sum]
    expect(told.chains[0].to_s).to match(/kernel 1: map, stencil, select, sum$/).and match(/# kernels: 1/)
    expect(told.sections[0].code(:cuda)).to include("reduce_parts<i64, IntSum<i64>, 2048>", "__shared__ i64")
  end

  it "computes values anew, or in a kernel before, where a thread goes over many elements, whichever takes less, and says so" do
    cheap = ->(chain) { chain.map { |x| x + 1 }.stencil([-1, 0, 1], 0) { |a, b, c| a + b - c } }
    dear = ->(chain) { chain.map { |x| Math.sqrt(x) / 3 / (x + 1) / 7 / 9 }.stencil([-1, 0, 1], 0.0) { |a, b, c| a + b - c } }
    ends = { reduce: ->(chain) { chain.reduce { |a, b| a > b ? a : b } }, each_slice: ->(chain) { chain.each_slice(3).map(&:sum).to_a } }
    (backends - [:reference]).product(ends.to_a) do |backend, (name, last)|
      told = [cheap, dear].map { |stages| Ikra.explain { last.call(stages.call((1..600).to_a.plazy(backend: backend))) }.chains[0] }
      expect(told.map { |chain| chain.kernels.map { |kernel| kernel.stages.first(3) } }).to eq [[[:map, :stencil, name]], [[:map], [:stencil, name, *(:map if name == :each_slice)]]]
      expect(told[0].to_s).to match(/stencil runs the blocks before it 3 times for each element \(.*they cannot be shared, \d+ in a kernel before\)/)
      expect(told[1].to_s).to match(/stencil looks at what another kernel has computed \(.*they cannot be shared, \d+ in a kernel before\)/)
    end
  end

  it "takes any Integer for an offset: what is far enough away is outside" do
    far = 2**70
    backends.each do |backend|
      list = [1, 2, 3].plazy(backend: backend)
      given = [
        list.stencil([0, far], 9) { |x, y| x + y }.to_a, list.stencil([-far, 0], 9) { |v| v[0] }.to_a, list.map { |x| x + 1 }.stencil([0, far], 9) { |x, y| x + y }.to_a,
        [1, 2, 3].pstencil([-far, 0], 9, backend: backend) { |x, y| x + y }, [1, 2, 3].pstencil([0, far], 9, backend: backend) { |v| v[0] }
      ]
      expect(given.uniq).to eq [[9, 9, 9]]
      expect([[1, 2], [3, 4]].pstencil([[0, 0], [far, -far]], 9, backend: backend) { |x, y| x + y }).to eq [[9, 9], [9, 9]]
      expect([[1, 2], [3, 4]].plazy(backend: backend).stencil([[0, 1], [0, 0]], 5) { |x, y| x + y }.stencil([[0, 0], [-far, 0]], 9) { |x, y| x + y }.to_a).to eq [[9, 9], [9, 9]]
    end
  end

  it "keeps what another kernel has computed where that left it" do
    backends.each do |backend|
      Garbage.uncollected do
        before = Ikra.memory[:arrays]
        chain((1..2000).to_a, backend, :apart).map { |x| x * 0.5 }.stencil([-1, 1], 0.0) { |a, b| a * b }.sum
        expect(Ikra.memory[:arrays]).to eq before
      end
    end
  end
end
