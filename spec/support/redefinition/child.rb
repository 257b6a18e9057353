# frozen_string_literal: true

# Redefines or removes public methods of Ruby's core classes one after the other, and runs small programs with each, in
# plain Ruby and in Ikra. It prints a line for each answer of Ikra's that is neither Ruby's nor a refusal.
#
#   ruby child.rb BACKEND VARIANT
#
# A redefined method is in force only while the programs run. The comparison uses Ruby's own methods.

require "ikra"

# The elements of the programs, and the counters of counting methods.
module Redefinition
  Counter = Struct.new(:count)
  COUNTER = Counter.new(0)

  # An object of the program's own, with an order.
  class Weight
    include Comparable

    attr_reader :grams

    def initialize(grams) = @grams = grams
    def <=>(other) = grams <=> other.grams
  end

  # An object that is enumerable.
  class Triple
    include Enumerable

    def initialize(a, b, c) = (@a, @b, @c = a, b, c)

    def each
      yield @a
      yield @b
      yield @c
      self
    end
  end

  Point = Struct.new(:x, :y)

  TABLE = { 1 => 10, 2 => 20, 3 => 30 }.freeze
  NAMES = { "one" => 1, "two" => 2, "three" => 3 }.freeze
  WORDS = %w[one two three].freeze

  # Three elements, the parameter of a block, and texts of blocks. Each is a program of its own.
  TEXTS = [
    ["[1, -2, 3]", "x", <<~RUBY],
      x + 1 - 2 * x
      [x / 2, x % 2, x.fdiv(2), x ** 2]
      [x == 2, x != 2, x === 2, x.eql?(2), x.equal?(2)]
      [x < 2, x >= 2, x <=> 2]
      [x.clamp(2, 3), x.between?(1, 2)]
      [x.zero?, x.nonzero?, x.positive?, x.even?, x.pred]
      [x.abs, -x, ~x, x.succ, x & 3, x | 4, x ^ 1, x << 2, x >> 1, x[0]]
      [x.gcd(6), x.lcm(4), x.to_f, x.to_i, x.floor, x.round, x.bit_length, x.pow(2, 5)]
      (q, r = x.divmod(2); [q, r, x.divmod(3), x.remainder(2)])
      x.abs.digits
      [x.nil?, x.is_a?(Integer), x.then { |y| y }, x.itself, x.tap { |y| y + 1 }, !x, x.class == Integer, x.frozen?]
      [x.send(:+, 1), x.public_send(:abs), x.respond_to?(:abs), x.instance_of?(Integer)]
      [[3, x].min, [3, x].max, [x, 3].sum, [x, 2].include?(1)]
      (n = 0; loop { n = x; break }; n)
      [x.to_r + 1, Rational(x, 2) < 1, Complex(x, 1) * 2]
      (begin; raise ArgumentError, "two" if x == -2; Integer(x) + Float(x); rescue ArgumentError; -1; end)
      (case x when 1 then :one when 2..5 then :some else :many end)
      (case [x, 7]; in [1, y] then y; in [Integer => z, *] if z > 2 then z; else 0; end)
      (case {a: x}; in {a: 1} then 1; else 0; end)
      (a = [1, *[x]]; a += [2]; a)
      (a, (b, *c) = x, [1, 2, 3]; [a, b, c])
      [*x]
    RUBY
    ["[1, 2, 3]", "n", <<~RUBY],
      [(1..n).sum, (1..n).size, (1..n).count]
      [(1..n).map { |i| i * i }, (1...n).to_a, [*1..n]]
      [(0..n).include?(2), (0..n) === 1, (0..n).cover?(9)]
      [(1..n).inject(:*), (1..n).inject { |m, i| m + i }]
      (s = 0; (1..n).each { |i| s += i }; s)
      (s = 0; n.times { |i| s += i }; n.upto(4) { |i| s += i }; 3.downto(n) { |i| s += i }; s)
      (s = 0; 1.step(5, n) { |i| s += i }; (0..6).step(n) { |i| s += i }; s)
      (s = 0; for i in 1..n do s += i end; s)
      [(1..n).first, (1..n).first(2), (1..n).last, (1..n).min, (1..n).max]
      [(1..n).each_slice(2).to_a, (1..n).select(&:even?), (1..n).each_with_index.map { |x, i| x * i }]
      [(1..n) == (1..2), (1..n).reverse_each.to_a, (1..n).each_cons(2).to_a]
      [(1..9).bsearch { |i| i >= n }, (1..n).sort_by { |i| -i }, (1..n).minmax]
      [TABLE[n], TABLE[n + 2], TABLE.fetch(n + 2, 0), TABLE.dig(n)]
      [TABLE.size, TABLE.key?(n), TABLE.keys, TABLE.values, TABLE.count, TABLE.to_a]
      [TABLE.any? { |k, v| k == n && v > 10 }, TABLE.all? { |k, v| v > 10 }]
      [TABLE.map { |k, v| k + v + n }, TABLE.sum { |k, v| v }, TABLE.find { |k, v| k >= n }]
      [TABLE.key(20), TABLE.value?(30), TABLE.min_by { |k, v| -v }, TABLE.sort_by { |k, v| -v }]
      (s = 0; TABLE.each { |k, v| s += k * v }; TABLE.each_value { |v| s += v }; s)
    RUBY
    ["[1.5, -2.5, 3.0]", "x", <<~RUBY],
      [x + 1, x * 2, x / 2, x - 0.5, x % 2]
      [x.abs, -x, x.floor, x.ceil, x.round, x.to_i, x.truncate]
      [x <=> 0.5, x == 3, x != 3.0, x < 1, x > 1, x.eql?(3.0)]
      [x.nan?, x.infinite?, x.finite?, x.zero?, x.nonzero?, x.positive?]
      (q, r = x.divmod(2); [q, r, x.div(2), x.remainder(2), x.fdiv(2)])
      [x.clamp(0.0, 2.0), x.between?(0, 2), (0.0..2.0).include?(x)]
      [[x, 1.0].sum, [x, 2.5].max, [x, 0.0, 2.0].sort, Math.sqrt(x.abs)]
    RUBY
    ["[[1, 2, 3], [3, 1], [2]]", "a", <<~RUBY],
      a.map { |x| x + 1 }
      [a.reverse, a.rotate, a.dup, a.take(2), a.drop(1)]
      [a.sort, a.sort { |p, q| q <=> p }, a.sort { |p, q| (q - p) * 1.0 }]
      [a.min, a.max, a.minmax, a.min { |p, q| q <=> p }]
      [a.sum, a.sum { |x| x * 2 }, a.size, a.length, a.empty?]
      [a.include?(2), a.index(2), a.count(2), a.rindex { |x| x > 1 }]
      [a.first, a.last, a[0], a[-1], a[1..], a[0, 2], a.at(1), a.fetch(0), a.values_at(0, -1)]
      [a.select { |x| x > 1 }, a.reject(&:odd?), a.filter_map { |x| x * 2 if x > 1 }]
      [a.partition { |x| x > 1 }, a.find { |x| x > 1 }, a.flat_map { |x| [x, x] }]
      [a.uniq, a - [2], a & [1, 2], a | [7], [a, [2]].uniq]
      [a.inject(:+), a.inject { |m, x| m * x }, a.reduce(1) { |m, x| m * x }]
      [a.each_slice(2).to_a, a.each_cons(2).map(&:sum), a.zip(a), a.zip(1..3)]
      [a + [4], a * 2, a == [2], a != [2], a <=> [2], a.eql?([2]), [0, *a]]
      (out = []; a.each { |x| out << (x * 2) }; out)
      (out = []; a.each_with_index { |x, i| out.push(x + i) }; a.reverse_each { |x| out << x }; out)
      (out = [1]; out.concat(a); out.pop; out.shift; out)
      [a.sort_by { |x| -x }, a.min_by { |x| -x }, a.max_by { |x| -x }]
      [a.all?(Integer), a.any? { |x| x > 2 }, a.none?, a.one? { |x| x > 2 }]
      [a.each_with_index.map { |x, i| x * i }, a.map.with_index { |x, i| x + i }, a.each_with_index.to_a]
      (s = 0; for x in a do s += x end; s)
      (b = a.dup; b[0] = 7; b[-1] += 1; b.map! { |x| x + 1 }; b.sort!; b.size; b)
      (b = a.dup; b.sort_by! { |x| -x }; b.reverse!; b.fill(1); b)
      [a.each_with_object([]) { |x, l| l << x }, a.take_while { |x| x < 3 }, a.cycle(2) { |x| x }]
      [a.product([1]), a.combination(1).to_a, [1, 2, 3].bsearch { |x| x >= a.size }, [a, a].transpose]
      a.sum { |x| x * 1.5 }
      [[a, [1]].flatten, [[a], a].dig(0, 0), [a, nil].compact]
      (case a; in [x] then x; in [x, *rest] then rest; end)
      a.map { |x| [x].first }.map(&:succ).sum
    RUBY
    ["[1, nil, :a]", "x", <<~RUBY],
      [x.nil?, x == 1, x != :a, x === nil, !x, [*x]]
      [[x, :a].include?(:a), [x, x].uniq, [x, nil].compact, [x, 1].index(nil)]
      (case x when nil then 0 when Symbol then 1 else 2 end)
      [x.class == Symbol, x.is_a?(Comparable), x.itself == x]
    RUBY
    ["WORDS", "s", <<~RUBY],
      [s.size, s.bytesize, s.empty?, s.bytes.sum]
      [s == "two", s != "two", s <=> "p", s < "p", s.eql?("one"), s === "one"]
      [s.index("o"), s.rindex("e"), s.start_with?("t"), s.end_with?("e"), s.include?("e")]
      [s[0], s[1..], s[0, 2], s.byteslice(1, 2), s.chr, s.delete_prefix("t")]
      [s.each_char.to_a, s.chars, s.each_char.map { |c| c.ord }]
      [NAMES[s], NAMES.key?(s), NAMES.fetch(s, 0)]
      [[s, "one"].uniq, ["one", s].include?("two"), [s, "p"].min, [s, "p", "a"].sort]
      (case s when "one" then 1 when "two" then 2 else 3 end)
      "12".to_i + s.size
    RUBY
    ["[Weight.new(3), Weight.new(1), Weight.new(2)]", "w", <<~RUBY],
      [w < Weight.new(2), w == Weight.new(2), w.between?(w, w), w.clamp(w, w).grams]
      [[w, Weight.new(2)].max.grams, [w, Weight.new(2)].sort.map(&:grams), [w].include?(Weight.new(1))]
    RUBY
    ["[Triple.new(1, 2, 3), Triple.new(3, 1, 2), Triple.new(2, 2, 2)]", "t", <<~RUBY],
      [t.map { |x| x + 1 }, t.to_a, t.sum, t.first, t.first(2)]
      [t.sort, t.min, t.minmax, t.sort_by { |x| -x }, t.max_by { |x| x }]
      [t.include?(3), t.count(2), t.reject(&:odd?), t.uniq, t.inject(:+), t.inject { |m, x| m - x }]
      (out = []; t.each_slice(2) { |x| out << x }; t.each_with_index { |x, i| out << [x, i] }; out)
      [t.each_entry { |x| x }.class == Triple, t.zip([1, 2, 3]), t.partition { |x| x > 1 }, t.reverse_each { |x| x }.class == Triple]
    RUBY
    ["[Point.new(1, 2), Point.new(3, 4), Point.new(5, 6)]", "q", <<~RUBY],
      [q.x, q.to_a, q[0], q[:y], q.size]
      [q == Point.new(3, 4), q.eql?(q), q != q, [q, Point.new(1, 2)].uniq.size]
      [q.sum, q.map { |x| x + 1 }, q.max, q.select(&:even?)]
      (case q; in [1, y] then y; in {x:} then x; end)
    RUBY
    ["%i[a b c]", "s", <<~RUBY],
      [s == :b, s != :b, s === :a, s.to_sym, s.eql?(:c)]
      [[s, :b].include?(:b), [:b, s].uniq.size, [s, :a].index(:a)]
      (case s when :a then 1 else 2 end)
    RUBY
  ].freeze

  PROGRAMS = TEXTS.flat_map do |inputs, parameter, bodies|
    bodies.lines(chomp: true).map { |body| [inputs, "proc { |#{parameter}| #{body} }"] }
  end.freeze

  BLOCKS = PROGRAMS.map { |_, block| class_eval(block, "program.rb", 1) }.freeze
  INPUTS = Marshal.dump(PROGRAMS.map { |inputs, _| class_eval(inputs, __FILE__, __LINE__) }).freeze

  # Code that runs while a method is redefined must call no method that may be redefined. So it is written out.
  def self.every(call)
    runs = Array.new(BLOCKS.size) do |i|
      "f#{i} = BLOCKS[#{i}]; l#{i} = inputs[#{i}]; a#{i}, b#{i}, c#{i} = l#{i}"
    end
    answers = Array.new(BLOCKS.size) { |i| "(begin; #{call.gsub("$", i.to_s)}; rescue ::Exception => error; error; end)" }
    eval("lambda { |inputs, change| #{runs.join("\n")}\nchange.call\n[#{answers.join(",\n")}] }") # rubocop:disable Security/Eval, Style
  end

  PLAINLY = every("[f$.call(a$), f$.call(b$), f$.call(c$)]")
  BY_IKRA = every("l$.pmap(&f$)")

  # A method, and its replacement.
  class Change
    def initialize(owner, name, variant)
      @owner = owner
      @name = name
      @original = owner.instance_method(name)
      @private = owner.private_method_defined?(name)
      @text = text(variant)
    end

    def text(variant)
      return "undef_method :#{@name}" if variant == "removed"
      return "def #{@name}(*) = 42" if variant == "constant" && !@name.end_with?("=")
      return "def #{@name}(*); #{variant == "constant" ? 42 : nil.inspect}; end" unless variant == "counting"

      params = @original.arity.negative? ? ["*rest"] : Array.new(@original.arity) { |i| "a#{i}" }
      params = [*params, "&block"].join(", ")
      "alias original_method #{@name}\ndef #{@name}(#{params})\nRedefinition::COUNTER.count += 1\noriginal_method(#{params})\nend"
    end

    def make = @owner.class_eval(@text, "redefined.rb", 1)

    def undo
      @owner.define_method(@name, @original)
      @owner.send(:private, @name) if @private
    end
  end

  def self.outcomes(all, change)
    COUNTER.count = 0
    inputs = Marshal.load(INPUTS) # rubocop:disable Security/MarshalLoad
    begin
      values = all.call(inputs, -> { change.make })
    ensure
      change.undo
    end
    [values, inputs, COUNTER.count]
  end

  def self.shown(value) = value.is_a?(Exception) ? "#{value.class}: #{value.message.lines.first}" : value.inspect

  def self.compare(owner, name, variant)
    change = Change.new(owner, name, variant)
    ruby, ruby_inputs, = outcomes(PLAINLY, change)
    ikra, ikra_inputs, = outcomes(BY_IKRA, change)
    ruby.each_index do |i|
      next @refused += 1 if ikra[i].is_a?(Ikra::CompileError)
      next @equal += 1 if same?(ruby[i], ikra[i]) && same?(ruby_inputs[i], ikra_inputs[i])

      @wrong += 1
      puts "#{owner}##{name} #{variant} program #{PROGRAMS[i].last}: Ruby #{shown(ruby[i])}, Ikra #{shown(ikra[i])}"
    end
  end

  def self.same?(a, b)
    return a.instance_of?(b.class) if a.is_a?(Exception) || b.is_a?(Exception)

    Marshal.dump(a) == Marshal.dump(b)
  rescue TypeError
    a.inspect == b.inspect
  end

  @equal = @refused = @wrong = 0

  OWNERS = [Integer, Float, String, Array, Hash, Range, Symbol, Kernel, Comparable, Enumerable].freeze
  # Kernel's functions, where the programs call them.
  FUNCTIONS = %i[raise loop rand Integer Float Rational Complex proc lambda block_given?].freeze

  VARIANTS = %w[constant nil counting removed].freeze

  # From 3.3 on, Ruby's own `Integer#times` is a loop over `<`. In plain Ruby one that is always true never ends.
  def self.endless?(owner, name, variant) = [owner, name, variant] == [Integer, :<, "constant"] && RUBY_VERSION >= "3.3"

  # `variant`: one of these, or `each` for all in turn. Gives whether no answer was wrong.
  def self.run(backend, variant)
    Ikra.configure { |config| config.backend = backend.to_sym }
    $stdout.sync = true
    OWNERS.each do |owner|
      names = owner.public_instance_methods(false)
      names |= FUNCTIONS if owner == Kernel
      names.each_with_index do |name, i|
        chosen = variant == "each" ? VARIANTS[i % VARIANTS.size] : variant
        compare(owner, name, chosen) unless endless?(owner, name, chosen)
      end
    end
    puts "equal #{@equal}, refused #{@refused}"
    @wrong == 0
  end
end

exit(Redefinition.run(*ARGV)) if $PROGRAM_NAME == __FILE__
