# frozen_string_literal: true

module Procs
  DOUBLE = ->(x, by = 2, plus: 0) { (x * by) + plus }

  def self.adder(n) = ->(x) { x + n }

  def self.leaving = proc { |_| return 3 }

  # A tree whose methods make such lambdas.
  Leaf = Struct.new(:left, :right, :value) do
    def depth = (deep = ->(leaf) { leaf ? 1 + [deep.(leaf.left), deep.(leaf.right)].max : 0 }; deep.(self))

    def total(factor)
      sum = ->(leaf) { leaf.nil? ? 0 : leaf.value * factor + value + sum.(leaf.left) + sum.(leaf.right) }
      sum.(self)
    end
  end

  class Scale
    def initialize(k) = @k = k

    def go(x) = x * @k
    def factorial(n) = n <= 1 ? @k : n * factorial(n - 1)
    def block = ->(x) { go(x) + @k }
  end

  class Rule
    attr_accessor :code

    def initialize(value, code)
      @value = value
      @code = code
    end

    def step = @value = @code.(@value)
  end
end

RSpec.describe "Captured Procs and Method objects" do
  def refused(pattern, &block)
    expect { [1, 2].pmap(backend: :cpu, &block) }.to raise_error(Ikra::CompileError, pattern)
  end

  it "calls a captured lambda in each of Ruby's ways, with the variables around it" do
    k = 10
    f = ->(x) { x * k }
    expect([1, -2, 2.5]).to map_same_as_ruby { |x| f.call(x) + f.(x) + f[x] + [x, 5].map(&f).last }
  end

  it "tells closures of one code apart, also inside one another" do
    one = Procs.adder(1)
    two = Procs.adder(2.5)
    both = ->(x) { one.(two.(x)) }
    expect([1, 2]).to map_same_as_ruby { |x| [one.(x), two.(x), both.(x), one.(one.(x))] }
  end

  it "leaves lambdas with next, return and break, and procs with next" do
    a = ->(x) { return 7 if x == 2; [1, 2, 3].each { |y| return y * 10 if y > x }; x }
    b = ->(x) { [1, 2, 3].each { |y| next if y < x; break y * 100 } }
    c = proc { |x| next 5 if x == 2; x + 1 }
    d = ->(x) { break 4 if x == 1; x }
    expect([1, 2, 3]).to map_same_as_ruby { |x| [a.(x), b.(x), c.(x), d.(x)] }
  end

  it "calls lambdas that constants hold, with optional and keyword arguments" do
    expect([1, 2]).to map_same_as_ruby { |x| Procs::DOUBLE.(x) + Procs::DOUBLE.(x, 5) + Procs::DOUBLE.(x, plus: 9) }
  end

  it "calls captured procs that are no lambdas, which drop arguments and fill up with nil" do
    one = proc { |x| x + 1 }
    some = proc { |x, y = 2, *more, last| [x, y, more, last] }
    all = proc { |*list| list }
    inner = proc { |(x, y), z| x + y + z }
    expect([3, -4, 1.5]).to map_same_as_ruby { |x| [one.(x), some.(x, 1), some.(x, 1, 5, 6), all.(x), all.(x, 2), all.call([x]).size, inner.([x, 2], 3)] }
    pair = proc { |x, y| [x, y] }
    ends = proc { |x, y = 5, z| [x, y, z] }
    expect([3, nil]).to map_same_as_ruby { |x| [pair.(x), pair.(x, 1, 2), ends.(x), ends.(x, 1), ends.(x, 1, 2, 3), one.(x || 0, 2)] }
    optional = proc { |x, y = 2| x * y }
    expect([3, nil]).to map_same_as_ruby { |x| x ? optional.(x) + optional.(x, 5) : 0 }
  end

  it "calls Method objects and lambdas of other objects, with their self" do
    scale = Procs::Scale.new(7)
    go = scale.method(:go)
    factorial = scale.method(:factorial)
    block = Procs::Scale.new(3).block
    expect([1, 4]).to map_same_as_ruby { |x| go.(x) + factorial.(x) + block.(x) }
  end

  it "chooses between captured and written lambdas" do
    up = Procs.adder(1)
    expect([1, 2]).to map_same_as_ruby { |x|
      down = ->(y) { y - 1 }
      f = x.odd? ? up : down
      f.(x)
    }
  end

  on_every_backend do
    it "raises what they raise, at their own line" do
      f = ->(x) { 10 / x }
      expect { |x| f.(x) }.to be_same_as_ruby.over(1, 0)
      expect { |x| f.(x, 2) }.to be_same_as_ruby.over(1)
    end
  end

  on_every_backend do
    it "calls captured lambdas and procs that call themselves, directly or through others" do
      k = 3
      fib = ->(n) { n < 2 ? n : fib.(n - 1) + fib.(n - 2) }
      power = ->(x, n = 2) { return 1 if n.zero?; x * power.(x, n - 1) + k }
      odd = nil
      even = ->(n) { n.zero? ? true : odd.(n - 1) }
      odd = ->(n) { n.zero? ? false : even.(n - 1) }
      sum = proc { |n| n <= 0 ? 0 : n + sum.call(n - 1) }
      total = ->(list, i: 0) { i >= list.size ? 0 : list[i] + total.(list, i: i + 1) }
      expect([1, 4, 9]).to map_same_as_ruby { |x| [fib.(x), power.(x, 3), power.(x * 0.5), even.(x), odd[x], sum[x], total.([x, 1.5])] }
    end

    it "raises what a lambda that calls itself raises, at its line" do
      down = ->(n) { n.zero? ? 1 / n : down.(n - 1) }
      endless = ->(n) { endless.(n + 1) }
      expect { |x| down.(x) }.to be_same_as_ruby.over(3, 0)
      expect { [1].pmap(backend: backend) { |x| endless.(x) } }.to raise_error(SystemStackError)
    end
  end

  on_every_backend do
    it "chooses among the Procs that arrays and Hashes hold" do
      k = 7
      operators = [->(a, b) { a + b }, ->(a, b) { a * b + k }, proc { |a, b| a - b }]
      names = { add: operators[0], scale: operators[1] }
      expect([0, 1, 2, 5.5]).to map_same_as_ruby { |x| [operators[x % 3].(x, 10), operators.map { |f| f.call(x, 2) }, operators.inject(x) { |a, f| f[a, 2] }] }
      expect(%i[add scale]).to map_same_as_ruby { |name| [names[name].(3, 4), names.fetch(name).call(1.5, 2), [1, 2, 3].inject(&names[name])] }
      expect { |name| names[name].(1, 2) }.to be_same_as_ruby.over(:add, :none)
    end

    it "calls the Proc or Method object that each object holds" do
      factor = 3
      expect {
        [Procs::Rule.new(1, ->(x) { x + 1 }), Procs::Rule.new(2, ->(x) { x * factor }), Procs::Rule.new(5, Procs::Scale.new(4).method(:go))]
      }.to each_same_as_ruby(ticks: 3) { |rule| rule.step }
    end

    it "chooses among captured Procs in an array that the block makes" do
      up = ->(x) { x + 1 }
      twice = proc { |x| x * 2 }
      go = Procs::Scale.new(7).method(:go)
      expect { |x| [[up, twice, go][x % 3].(x), [up, twice].map { |f| f.(x) }, [[up, twice], [twice, go]][x % 2].sum { |f| f.(x) }] }.to be_same_as_ruby.over(1, 2, 3)
      expect { |x| [up, twice, up].inject(x) { |y, f| f.(y) } }.to be_same_as_ruby.over(1, 2, 3)
      expect { |x| f, g = x > 1 ? [up, twice] : [twice, up]; list = [f.(x), g.(x)]; h = (up if x > 1); h ? list + [h].map { |one| one.(x) } : list }.to be_same_as_ruby.over(1, 2)
      expect { |x| [1, 2, x].map { |y| [up, twice].each { |f| y = f.(y) }; y } }.to be_same_as_ruby.over(1, 2)
      expect([0].pmap(backend: backend) { |i| [up, go, i] }).to eq([[up, go, 0]])
    end

    it "sees other captured Procs in such an array at the next call" do
      run = ->(f, g) { [0, 1].pmap(backend: backend) { |i| [f, g][i].(10) } }
      one = Procs.adder(1)
      pairs = [[one, Procs.adder(2.5)], [Procs.adder(2.5), one], [one, one], [->(x) { -x }, one], [Procs::Scale.new(3).method(:go), one]]
      expect(pairs.map { |f, g| run.(f, g) }).to eql(pairs.map { |pair| pair.map { |f| f.(10) } })
      70.times { |i| expect(run.(Procs.adder(i), one)).to eq([10 + i, 11]) } if backend == :reference
    end

    it "stores Procs that are held already, and gives them back" do
      rules = [->(x) { -x }, ->(x) { x + 9 }]
      expect { |run| run.peach(list = [Procs::Rule.new(1, rules[0]), Procs::Rule.new(2, rules[1])]) { |rule| rule.code = rules[1] }; list.map { |rule| rules.index(rule.code) } }
        .to be_same_as_ruby
      expect([0, 1].pmap(backend: backend) { |i| rules[i] }).to eq(rules)
      expect([1, 4]).to map_same_as_ruby { |x| rules.zip([x, 2]).map { |rule, y| rule.(y) } }
    end
  end

  it "calls Procs that are made anew for each call, with the variables around each" do
    run = lambda do |i|
      rules = [->(x) { x + i }, ->(x) { x * i }]
      expect([1, 2].pmap(backend: :cpu) { |x| rules[x % 2].(x) }).to eq([1 * i, 2 + i])
    end
    100.times { |i| run.(i) }
  end

  it "sees another Proc in an array, a Hash and an ivar at the next call" do
    list = [->(x) { x + 1 }]
    rule = Procs::Rule.new(2, list[0])
    run = -> { [5].pmap(backend: :cpu) { |x| list[0].(x) + rule.code.(x) } }
    expect(run.call).to eq([12])
    list[0] = ->(x) { x * 100 }
    expect(run.call).to eq([506])
    rule.code = list[0]
    expect(run.call).to eq([1000])
    rule.code = nil
    expect(&run).to raise_error(NoMethodError, /undefined method [`']call' for nil/)
  end

  on_every_backend do
    it "gives blocks, also by &, to methods of array literals" do
      up = ->(x) { x + 10 }
      least = ->(x, y) { y <=> x }
      expect([1, -2, 5]).to map_same_as_ruby { |x| [[x, 3].sum(&up), [x, 3].sum(&:succ), [x, 3].min(&least), [x, 3].max(&least), [x, 3].sum { |y| y * 2 }, [x, 3].include?(3)] }
    end

    it "composes captured and written Procs" do
      up = ->(x) { x + 1 }
      twice = proc { |x| x * 2 }
      half = Procs::Scale.new(0.5).method(:go)
      expect([1, -2.5]).to map_same_as_ruby { |x|
        k = x
        one = x.positive? ? up : twice
        [(up >> twice).(x), (up << twice).(x), (up >> twice >> half)[x], (one >> up).call(x), (->(y) { y + k } << up).(x), [x, 3].map(&(twice >> up)), (up >> twice).lambda?, (twice >> up).lambda?]
      }
      expect([1, -2]).to map_same_as_ruby { |x| (:abs.to_proc >> up).(x) + 3.times.sum(&(up >> ->(y) { y * x })) }
      expect { |x| (up >> ->(y) { 10 / y }).(x) }.to be_same_as_ruby.over(1, -1)
      expect { |x| (up >> twice).(x, 2) }.to be_same_as_ruby.over(1)
    end
  end

  it "refuses to compose what is not known when compiling" do
    up = ->(x) { x + 1 }
    refused(/kernels compose Procs that are known when compiling only/) { |x| (up >> x).(1) }
    refused(/kernels compose at most 16 Procs into one/) { |x| f = up; 3.times { f = f >> up }; f.(x) }
    refused(/this closure outlives the run of the block/) { |x| f = nil; 2.times { |i| f ||= up >> ->(y) { y * i } }; f.(x) }
  end

  it "refuses closures that outlive the run of the block whose variables they read" do
    refused(/this closure outlives the run of the block/) { |x| f = nil; 3.times { |i| g = ->(y) { y + i }; f = g if i == 0 }; f.(x) }
    refused(/this closure outlives the run of the block/) { |x| make = ->(n) { ->(y) { y + n } }; one = make.(1); make.(2); one.(x) }
    refused(/this closure outlives the run of the block/) { |x|
      last = nil
      [1, 2].sum { |i| before = last; last = proc { |y| y * i }; before ? before.(x) : 0 }
    }
    expect([10]).to map_same_as_ruby { |x| f = nil; [1, 2].each { |i| f = ->(y) { y + x } }; [f.(2), [1, 2].sum { |i| g = ->(y) { y + i }; [3, 4].sum { |z| g.(z) } }] }
  end

  it "refuses Procs that have no Ruby source, and too many at one place" do
    many = Array.new(17) { |i| ->(x) { x + i } }
    refused(/cannot hold one of more than 16 different Procs/) { |x| many[x].(x) }
    symbols = [:abs.to_proc]
    refused(/kernels cannot hold a Proc/) { |x| symbols[0].(x) }
  end

  it "calls what the variable of a lambda that called itself holds by then" do
    fact = ->(n) { n < 2 ? 1 : n * fact.(n - 1) }
    first = fact
    run = -> { [4].pmap(backend: :cpu) { |x| first.(x) } }
    expect(run.call).to eq([24])
    fact = ->(n) { n + 100 }
    expect(run.call).to eq([4 * 103])
    fact = first
    expect(run.call).to eq([24])
  end

  it "sees another Proc in the variable, other variables around it, and nil, at the next call" do
    k = 3
    f = ->(x) { x + 1 }
    run = -> { [1, 2].pmap(backend: :cpu) { |x| f.call(x) } }
    expect(run.call).to eq([2, 3])
    f = ->(x) { x * k }
    expect(run.call).to eq([3, 6])
    k = 1.5
    expect(run.call).to eq([1.5, 3.0])
    f = Procs.adder(5)
    expect(run.call).to eq([6, 7])
    f = nil
    expect(&run).to raise_error(NoMethodError, /undefined method [`']call' for nil/)
  end

  it "refuses what is known only when it runs" do
    sum = 0
    total = ->(x) { sum += x }
    refused(/a captured Proc assigns sum, a variable from around it/) { |x| total.(x) }
    apply = ->(g, n) { n == 0 ? 0 : g.(n) + apply.(g, n - 1) }
    refused(/its code is called within itself too often/) { |x| apply.(->(y) { y * 2 }, x) }
    first = proc { |x, *| x }
    refused(/this captured proc would take the array apart that it is called with/) { |x| first.([x, 1]) }
    keyed = proc { |x, k: 1| x + k }
    refused(/kernels know captured procs without keywords and block parameters only/) { |x| keyed.(x) }
    kept = nil
    code = ->(x) { x }
    refused(/kernels keep no blocks or lambdas in objects and arrays/) { |x| (kept = code; [x]).map(&kept) }
    leaving = Procs.leaving
    refused(/this would leave the method that made the captured proc/) { |x| leaving.(x) }
    up = Procs.adder(1)
    refused(/kernels do not know Proc#==/) { |x| x == 1 && up == up }
    taking = ->(x, &b) { b.(x) }
    refused(/kernels pass no blocks to Procs/) { |x| taking.(x) { |y| y } }
  end

  it "asks Method objects nothing but what they call" do
    go = Procs::Scale.new(2).method(:go)
    refused(/kernels do not know the class of a Method object/) { |x| Proc === go ? x : go.(x) }
    refused(/kernels do not know is_a\? of a Method object/) { |x| go.is_a?(Proc) ? x : go.(x) }
    refused(/kernels do not know lambda\? of a Method object/) { |x| go.lambda? ? x : go.(x) }
    refused(/kernels do not know unbind of a Method object/) { |x| go.unbind; x }
    refused(/kernels do not know name of a Method object/) { |x| go.name; x }
  end

  it "compiles anew for a Method object in place of the Proc that it was made of" do
    code = ->(x) { x + 1 }
    object = Object.new
    object.define_singleton_method(:same, &code)
    kinds = [code, object.method(:same)].map { |f| [1].pmap(backend: :reference) { |x| f.lambda? && f.(x) } rescue :refused }
    expect(kinds).to eq([[2], :refused])
  end
end

RSpec.describe "Lambdas that call themselves where the block makes them" do
  def yielding(list) = list.pmap(backend: :reference) { |x| f = ->(n) { n < 1 ? yield(n) : f.(n - 1) }; f.(x) }

  on_every_backend do
    it "are functions of what they are given and of the variables around them" do
      list = [1, 2, 3]
      expect { |x| f = ->(n) { n < 2 ? 1 : n * f.(n - 1) }; g = lambda { |n| n < 2 ? n + x : g[n - 1] + g.call(n - 2) }; [f.(x), g.(x), f.(3)] }.to be_same_as_ruby.over(1, 5)
      expect { |x| f = ->(n) { n < 1 ? x : list[n % 3] + f.(n - 1) }; a = f.(4); x += 50; [a, f.(4), list.map(&f), (f >> ->(y) { y * 2 }).(2)] }.to be_same_as_ruby.over(1, 5)
      expect { |x| odd = nil; even = ->(n) { n == 0 ? true : odd.(n - 1) }; odd = ->(n) { n == 0 ? false : even.(n - 1) }; [odd.(x), even.(x)] }.to be_same_as_ruby.over(0, 5, 8)
      expect { |x| f = ->(n, kept = [], by: 1) { n <= 0 ? kept : f.(n - by, kept + [n], by: by) }; [f.(x), f.(x, [9], by: 2)] }.to be_same_as_ruby.over(1, 5)
      expect { |x| f = ->(n, *rest) { n == 0 ? rest : f.(n - 1, n, *rest) }; f.(x) }.to be_same_as_ruby.over(0, 3)
      expect { |x| f = ->(n) { return 1 if n < 2; next 2 if n == 2; break 7 if n > 9; n + f.(n - 1) }; f.(x) }.to be_same_as_ruby.over(1, 5, 11)
      expect { |x| f = ->(n) { n.is_a?(Array) ? n.sum { |y| f.(y) } : n }; f.(x) }.to be_same_as_ruby.over([[1, [2, [3, [4]]]], [1, 2]])
      expect { |x| f = ->(n) { n > 9 ? n : f.(n * 1.5) }; [f.(x), f.(20)] }.to be_same_as_ruby.over(1, 5)
      expect { |x| sum = 0; 3.times { |i| f = ->(n) { n < 1 ? i : n + f.(n - 1) }; sum += f.(x) }; sum }.to be_same_as_ruby.over(1, 3)
      expect { |a| s = ->(l) { l.size < 2 ? l : s.(l.drop(1).select { |e| e < l[0] }) + [l[0]] + s.(l.drop(1).reject { |e| e < l[0] }) }; s.(a) }
        .to be_same_as_ruby.over([[3, 1, 2, 9, 4], [1]])
      expect { |x| f = ->(n) { g = ->(m) { m < 1 ? 0 : m + g.(m - 1) }; n < 1 ? 0 : g.(n) + f.(n - 1) }; f.(x) }.to be_same_as_ruby.over(1, 5)
    end

    it "raise as they do in Ruby" do
      expect { |x| f = ->(n) { n < 1 ? 6 / n : 1 + f.(n - 1) }; f.(x) }.to be_same_as_ruby.over(2)
      expect { |x| f = ->(n) { n < 1 ? 6 / n : 1 + f.(n - 1) }; begin; f.(x); rescue ZeroDivisionError; -1; end }.to be_same_as_ruby.over(2)
      expect { |x| f = ->(n) { n < 1 ? 0 : 1 + f.(n - 1, 2) }; f.(x) }.to be_same_as_ruby.over(2)
      expect { [100_000].pmap(backend: backend) { |x| f = ->(n) { n < 1 ? 0 : 1 + f.(n - 1) }; f.(x) } }.to raise_error(SystemStackError)
    end
  end

  it "belong to methods, with their self" do
    tree = Procs::Leaf.new(Procs::Leaf.new(nil, Procs::Leaf.new(nil, nil, 4), 3), nil, 7)
    expect([tree, tree.left]).to map_same_as_ruby { |leaf| [leaf.depth, leaf.total(2)] }
  end

  it "are refused where they would not be functions" do
    assigns = -> { [1].pmap { |x| c = 0; f = ->(n) { c += 1; n < 2 ? c : f.(n - 1) }; f.(x) } }
    expect(&assigns).to raise_error(Ikra::CompileError, /calls itself.*assigns a variable from around it/m)
    expect { yielding([1]) { |n| n } }.to raise_error(Ikra::CompileError, /asks for the block/)
    code = -> { [1].pmap { |x| f = proc { |n| n < 1 ? 0 : f.(n - 1) }; f.(x) } }
    expect(&code).to raise_error(Ikra::CompileError, /procs that call themselves/)
    code = -> { [1].pmap { |x| f = ->(n, g) { n < 1 ? 1 : g.(n) + f.(n - 1, g) }; f.(x, ->(y) { y * x }) } }
    expect(&code).to raise_error(Ikra::CompileError, /variables from around it are not known/)
  end
end

module Procs
  # An object with Method objects, and methods that take them as blocks.
  class Tally
    attr_accessor :count

    def initialize(count) = @count = count

    def plus(x) = x + @count
    def scaled(x, by = 2, plus: 0) = (x * by) + @count + plus
    def add(x) = @count += x
    def method_missing(name, *) = name == :ghost ? 1 : super
    def respond_to_missing?(name, all = false) = name == :ghost || super

    def called(&block) = block_given? ? block.call(@count) : -1
    def yielding = block_given? ? yield(@count) : -1
    def passing(&) = yielding(&)
    def own(x) = called(&method(:plus)) + yielding(&method(:secret)) + passing(&method(:plus)) + x

    protected def kin(x) = x - @count
    private def secret(x) = x * 100
  end

  class Odd
    def method(x) = x * 2
  end

  def self.partial(code, x) = code.curry[x]
  def self.both(f, g) = (f.(1) * 100) + g.(1)
  def self.taken(&block) = [block.arity, block.lambda?, block.curry(2)[6][3]]
  def self.down(n) = n.zero? ? 0 : n.method(:+).(down(n - 1))
end

RSpec.describe "Curried Procs" do
  def refused(pattern, &block)
    expect { [1, 2].pmap(backend: :reference, &block) }.to raise_error(Ikra::CompileError, pattern)
  end

  add = ->(a, b) { a + b }
  triple = lambda { |a, b, c| [a, b, c] }
  minus = proc { |a, b| (a || 0) - (b || 0) }

  on_every_backend do
    it "keep their arguments until they have enough" do
      expect { |x| f = ->(a, b) { a * x + b }; [f.curry[x][2], f.curry.(x, 2), f.curry[][x][][2], f.curry(2)[x][3], [1, 2, 3].map(&f.curry[x])] }.to be_same_as_ruby.over(1, 2.5)
      expect { |x| f = triple.curry; g = f.(x, 2); h = f[1]; [g.(3), h[x, 9], h[x][8], f.(x, 5, 6), triple.curry[x][2].call(3)] }.to be_same_as_ruby.over(1, 2.5)
      expect { |x| inc = add.curry[1]; ten = add.curry[10]; [inc.(x), ten.(x), inc.(ten.(x)), [x, 5].sum(&inc), (inc >> ten).(x), (add.curry[x] << ten).(5)] }.to be_same_as_ruby.over(1, 2.5)
      expect { |x|
        [[3, 4].inject(x, &add.curry), [3, 4].each_with_index.map(&add.curry), add.curry[x].curry[2], Procs.partial(add, x).(1), Procs.both(Procs.partial(add, x), add.curry[7])]
      }.to be_same_as_ruby.over(1, 2.5)
      expect { |x| [1, 2].sum { |i| f = add.curry[i * x]; [5, 6].sum { |y| f[y] } } }.to be_same_as_ruby.over(1, 2.5)
      expect { |x| f = x == 1 ? add.curry[x] : ->(y) { y * 7 }; g = add.curry[x] if x == 1; [f.(3), g ? g.(1) : 0, [x].map(&f)] }.to be_same_as_ruby.over(1, 2)
    end

    it "take optional and splat parameters, and keywords, as Ruby counts them" do
      expect { |x|
        f = ->(a, b = 3) { a + b }; g = ->(a, *rest) { [a, rest.sum] }; h = ->(a, b, k: 1) { a + b + k }
        [f.curry[x], f.curry(2)[x][9], g.curry[x], g.curry(3)[x][2][3], h.curry[x][2]]
      }.to be_same_as_ruby.over(1, 4)
      expect { |x|
        [minus.curry[x][2], minus.curry[x][2, 3], minus.curry(3)[x][2][9], minus.curry(1)[x], minus.curry[x][nil], :+.to_proc.curry(2)[x][3], :succ.to_proc.curry[x]]
      }.to be_same_as_ruby.over(1, 4)
      expect { |x|
        [add.arity, minus.arity, add.curry.arity, (add >> minus).arity, :+.to_proc.arity, ->(a, b = 1) { a + b }.arity, proc { |a, *b| [a, b] }.arity, ->(a, k:) { a + k }.arity, x]
      }.to be_same_as_ruby.over(1)
      expect { |x| [add.curry.lambda?, minus.curry.lambda?, minus.curry[x].lambda?] }.to be_same_as_ruby.over(1)
    end

    it "raise as they do in Ruby" do
      expect { |x| add.curry(3)[x] }.to be_same_as_ruby.over(1)
      expect { |x| add.curry(1)[x] }.to be_same_as_ruby.over(1)
      expect { |x| add.curry(2, 2)[x] }.to be_same_as_ruby.over(1)
      expect { |x| add.curry[x][2, 3] }.to be_same_as_ruby.over(1)
      expect { |x| ->(a, b = 1) { a + b }.curry(3)[x] }.to be_same_as_ruby.over(1)
      expect { |x| ->(a, *b) { [a, b] }.curry(0)[x] }.to be_same_as_ruby.over(1)
      expect { |x| :+.to_proc.curry[x] }.to be_same_as_ruby.over(1)
      expect { |x| f = ->(a, b) { a / b }.curry[6]; begin; f[x]; rescue ZeroDivisionError; -1; end }.to be_same_as_ruby.over(0, 2)
      expect { |x| f = add.curry[x]; f.(1) }.to be_same_as_ruby.over(1, nil)
    end
  end

  it "are refused where two would need one place" do
    refused(/makes a Proc again while an earlier one is still held/) { |x| f = nil; [1, 2].each { |i| g = add.curry[i]; f ||= g }; f.(x) }
    refused(/makes a Proc again while an earlier one is still held/) { |x| f = nil; i = 0; while i < 2; g = add.curry[i]; f ||= g; i += 1; end; f.(x) }
    refused(/makes a Proc again while an earlier one is still held/) { |x| f = nil; [1, 2].each { |i| g = Procs.partial(add, i); f ||= g }; f.(x) }
    refused(/makes a Proc again while an earlier one is still held/) { |x| h = nil; g = ->(n) { h = add.curry[n]; 0 }; g.(x); Procs.both(h, (g.(9); h)) }
    refused(/outlives the run of the block that makes it/) { |x| g = ->(n) { add.curry[n] }; Procs.both(g.(x), g.(x + 1)) }
    refused(/changes the length of an array that others may hold/) { |x| a = [1]; f = ->(list, y) { list.include?(y) }.curry[a]; a << x; f.(x) }
  end

  it "are refused where the number of arguments is not known, with keywords, and as elements" do
    refused(/kernels know curry only with a literal Integer/) { |x| add.curry(x)[1][2] }
    refused(/kernels pass no keywords to curried Procs/) { |x| ->(a, k: 1) { a + k }.curry(2)[x, k: 2] }
    refused(/kernels do not know how many arguments this takes/) { |x| Math.method(:hypot).curry(2)[x][4] }
    refused(/kernels keep no blocks or lambdas in objects and arrays/) { |x| [1, 2].map(&add.curry).size + x }
  end
end

RSpec.describe "Method objects that a block makes" do
  def refused(pattern, &block)
    expect { [1, 2].pmap(backend: :reference, &block) }.to raise_error(Ikra::CompileError, pattern)
  end

  on_every_backend do
    it "call the method of their receiver" do
      expect { |x|
        f = x.method(:*); y = x; x = 100; [f.(2), 5.method(:+).call(y), [1, 2].map(&5.method(:-)), y.method(:succ).(), x, y.method(:between?)[0, 2], y.method(:==) === y]
      }.to be_same_as_ruby.over(1, 4)
      expect { |x|
        [Math.method(:sqrt).(x * x), [1.0, x].map(&Math.method(:sqrt)), Integer.method(:sqrt).(x), [1, x].map(&Procs::Tally.method(:new)).map(&:count), Procs.method(:down).(x), Procs.down(x)]
      }.to be_same_as_ruby.over(1, 4)
      expect { |x|
        list = [3, x]
        [[1, 2, 3].select(&[2, 3].method(:include?)), list.method(:[]).(1), "abc".method(:size).call, (1..3).method(:include?).(x), nil.method(:nil?).(), :a.method(:==).(:a)]
      }.to be_same_as_ruby.over(1, 4)
      expect { |x|
        o = Procs::Tally.new(x); f = o.method(:add); f.(1); f.(2); o.method(:count=).call(o.count * 2)
        [o.count, o.method(:scaled).(3), o.method(:scaled).(3, 5), o.method(:scaled).(3, plus: 1)]
      }.to be_same_as_ruby.over(1, 4)
      expect { |x| o = Procs::Tally.new(x); [o.method(:kin).(1), o.method(:secret).(1), o.own(x), o.called(&:succ), o.called] }.to be_same_as_ruby.over(1, 4)
      expect { |x| sum = 0; 3.times { |i| f = i.method(:+); sum += f.(x) }; [sum, [1, 2].zip([3, 4]).map { |a, b| a.method(:+).(b) }, Procs::Odd.new.method(x)] }.to be_same_as_ruby.over(1, 4)
    end

    it "become blocks and Procs, and are composed and curried" do
      expect { |x|
        o = Procs::Tally.new(x); f = o.method(:plus)
        [o.called(&f), o.yielding(&x.method(:+)), o.passing(&f), [1, 2].sum(&f), f.to_proc.(1), f.to_proc.lambda?, Procs.taken(&o.method(:scaled))]
      }.to be_same_as_ruby.over(1, 4)
      expect { |x|
        o = Procs::Tally.new(x); f = o.method(:plus) >> x.method(:*) >> Math.method(:sqrt) >> :floor.to_proc
        [f.(1), f.lambda?, [1, 2].map(&f), (x.method(:-) << :abs.to_proc << :-@.to_proc).(3)]
      }.to be_same_as_ruby.over(1, 4)
      expect { |x| o = Procs::Tally.new(x); [o.method(:scaled).curry(2)[x][3], o.method(:plus).curry[x], o.method(:scaled).to_proc.curry[2], x.method(:+).curry[1]] }.to be_same_as_ruby.over(1, 4)
      expect { |x|
        f = x > 1 ? x.method(:+) : x.method(:-); g = x > 1 ? 2.method(:*) : ->(y) { y - 1 }; h = (x > 1 ? x : 2.5).method(:+); [f.(1), g.(x), [1, 2].map(&g), h.(1)]
      }.to be_same_as_ruby.over(1, 4)
      expect { |x| [lambda(&x.method(:+)).(1), proc(&:succ).(x), x.method(:+).to_proc.method(:call).(2)] }.to be_same_as_ruby.over(1, 4)
    end

    it "say what they are" do
      expect { |x|
        o = Procs::Tally.new(x)
        [o.method(:plus).arity, o.method(:scaled).arity, o.method(:count).arity, o.method(:count=).arity, 5.method(:+).arity,
         o.method(:plus).name, 5.method(:+).name, o.method(:count).receiver.count, x.method(:+).receiver]
      }.to be_same_as_ruby.over(1, 4)
      expect { |x| [Procs::Tally.new(x).method(:plus).owner == Procs::Tally, 5.method(:+).owner == Integer, 2.5.method(:clamp).owner == Comparable] }.to be_same_as_ruby.over(1)
    end

    it "raise as they do in Ruby" do
      expect { |x| 6.method(:/).(x) }.to be_same_as_ruby.over(2, 0)
      expect { |x| x.method(:+).call }.to be_same_as_ruby.over(2)
      expect { |x| x.method(:+).call(1, 2) }.to be_same_as_ruby.over(2)
      expect { |x| Procs::Tally.new(1).method(:plus).call(1, x) }.to be_same_as_ruby.over(2)
    end
  end

  it "are refused where kernels do not know the method, or Ruby would raise" do
    refused(/Integer defines no method nope/) { |x| x.method(:nope).call }
    refused(/defines no method ghost/) { |x| Procs::Tally.new(x).method(:ghost).call }
    refused(/kernels do not know Array#push/) { |x| [1].method(:push).call(x) }
    refused(/kernels do not know Kernel#puts/) { |x| x.method(:puts).call }
    refused(/kernels do not know unbind of a Method object/) { |x| x.method(:+).unbind; x }
    refused(/kernels do not know == of a Method object/) { |x| x.method(:+) == x.method(:+) }
    refused(/kernels know method with a literal Symbol only/) { |x| x.method("succ").call }
    refused(/kernels do not know the Method object of block_given\?/) { |x| method(:block_given?).call || x }
    refused(/makes a Proc again while an earlier one is still held/) { |x| f = nil; 3.times { |i| g = i.method(:+); f ||= g }; f.(x) }
    refused(/outlives the run of the block that makes it/) { |x| make = ->(n) { n.method(:+) }; make.(x).(1) }
    refused(/changes the length of an array that others may hold/) { |x| a = [1]; f = a.method(:include?); a << x; f.(x) }
  end
end

RSpec.describe "Captured Procs and Method objects that Ruby's own code has made" do
  def refused(pattern, &block)
    expect { [1, 2].pmap(backend: :reference, &block) }.to raise_error(Ikra::CompileError, pattern)
  end

  up = ->(x) { x + 1 }
  twice = proc { |x| x * 2 }
  add = ->(a, b) { a + b }
  tally = Procs::Tally.new(7)

  on_every_backend do
    it "are curried Procs with their arguments so far" do
      inc = add.curry[1]
      all = add.curry
      triple = ->(a, b, c) { [a, b, c] }.curry[0.5, [1, 2]]
      some = proc { |a, b| (a || 0) - (b || 0) }.curry[5]
      given = ->(f, x) { f.(x) }.curry[up]
      expect { |x| [inc.(x), [x, 2].sum(&inc), all[x][2], all.(x, 5), triple.(x), some.(x), some.(x, 9), given.(x), (inc >> up).(x), inc.curry[x]] }.to be_same_as_ruby.over(1, 2.5)
      expect { |x| inc.(x, 2) }.to be_same_as_ruby.over(1)
    end

    it "are compositions" do
      both = up >> twice
      other = up << twice >> tally.method(:plus)
      signs = :abs.to_proc >> :succ.to_proc
      all = [up, twice, up].inject(:>>) >> add.curry[3] >> Math.method(:sqrt)
      expect { |x| [both.(x), other[x], signs.(-x), all.(x), [x, 2].map(&both), both.lambda?, other.lambda?, (twice >> up).lambda?, both.arity] }.to be_same_as_ruby.over(1, 2.5)
      expect { |x| both.(x, 2) }.to be_same_as_ruby.over(1)
      down = nil
      step = ->(x) { x <= 0 ? 0 : down.(x - 1) }
      down = step >> up
      expect { |x| down.(x) }.to be_same_as_ruby.over(3)
    end

    it "are Method objects of Ruby's own methods, and the Procs made of Method objects" do
      root = Math.method(:sqrt)
      five = 5.method(:+)
      within = [1, 3].method(:include?)
      lookup = { 1 => 5 }.method(:[])
      count = tally.method(:count)
      plus = tally.method(:plus).to_proc
      expect { |x| [root.(x), [1, x].map(&root), five.(x), five === x, [1, 2, 3].select(&within), lookup.(x), count.(), plus.(x), plus.lambda?, plus.arity] }.to be_same_as_ruby.over(1, 4)
      expect { |x| [five.name, five.receiver, five.arity, five.owner == Integer, root.to_proc.(x), (root >> :floor.to_proc).(x)] }.to be_same_as_ruby.over(1, 4)
      expect { |x| five.(x, 1) }.to be_same_as_ruby.over(1)
    end
  end

  on_every_backend do
    it "are blocks of sections" do
      codes = [add.curry[1], add.curry[2.5], up >> twice, twice >> up, 5.method(:+), Math.method(:sqrt), Math.method(:sqrt).to_proc, :abs.to_proc >> up]
      expect(codes.map { |f| [1, 4].pmap(backend: backend, &f) }).to eql(codes.map { |f| [1, 4].map(&f) })
      odd = ->(x) { x.odd? } >> ->(y) { !y }
      expect([1, 4].pselect(backend: backend, &odd)).to eq([4])
      expect([3, 1, 2].preduce(backend: backend, &add.curry)).to eq(6)
      expect([5, 6].pmap(backend: backend).with_index(&add.curry)).to eq([5, 7])
      list = [Procs::Tally.new(1), Procs::Tally.new(5)]
      list.peach(backend: backend, &(->(one) { one.add(1) && one } >> ->(one) { one.add(10) }))
      expect(list.map(&:count)).to eq([12, 16])
      expect { [1, 0].pmap(backend: backend, &6.method(:/)) }.to raise_error(ZeroDivisionError)
      expect { [[1, 2]].pmap(backend: backend, &(add >> up)) }.to raise_error(ArgumentError, "wrong number of arguments (given 1, expected 2)")
    end
  end

  it "are others at the next call, with other values" do
    run = ->(f) { [3].pmap(backend: :cpu) { |x| f.(x) }.first }
    codes = [add.curry[1], add.curry[2.5], up >> twice, twice >> up, 5.method(:+), 6.method(:+), 6.method(:*), add.curry[10], up, :succ.to_proc >> up]
    expect(codes.map(&run)).to eql(codes.map { |f| f.(3) })
    changing = 2.method(:pow)
    expect(run.(changing)).to eq(8)
  end

  it "are refused where kernels do not know what they consist of" do
    callable = up >> Struct.new(:by) { def call(x) = x * by }.new(3)
    refused(/kernels cannot hold a Proc, which callable is/) { |x| callable.(x) }
    long = Array.new(17) { up }.inject(:>>)
    refused(/kernels cannot hold a Proc, which long is/) { |x| long.(x) }
    output = $stdout.method(:puts)
    refused(/kernels cannot hold an IO, which self of a Proc is/) { |x| output.(x) }
    kept = [up >> twice]
    refused(/kernels cannot hold a Proc, which an element of an array is/) { |x| kept[0].(x) }
    ghost = tally.method(:ghost)
    expect([1].pmap(backend: :reference) { |x| ghost.() + x }).to eq([2])
  end
end
