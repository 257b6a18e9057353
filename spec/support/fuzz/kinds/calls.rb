# frozen_string_literal: true

module Fuzz
  # Calls: which method `super` and aliases find, which block `yield` calls, and how Procs behave at different places.
  module CallKinds
    def aliases
      owners = Array.new(between(2, 4)) { |i| i }
      modules = Array.new(between(0, 2)) { |i| "M#{i}" }
      texts = modules.map { |name| "module #{name}\n#{alias_body(name, true)}\nend" }
      texts += owners.map do |i|
        head = i.zero? ? "class C0\n  attr_reader :ran\n  def initialize = @ran = 0" : "class C#{i} < C#{i - 1}"
        mixed = modules.select { chance(0.4) }.map { |name| "  #{among(%w[include prepend])} #{name}\n" }.join
        "#{head}\n#{mixed}#{alias_body("C#{i}", i.positive?)}\nend"
      end
      calls = %w[a b c].map { |name| "(begin; o.#{name}(x); rescue NoMethodError; :none; end)" }
      program(texts.join("\n"), "[1, 2].~map { |x| o = C#{among(owners)}.new; [#{calls.join(", ")}, o.ran] }")
    end

    YIELDS = ["yield(x)", "yield(x, 1)", "yield(*[x, 2])", "(block_given? ? yield(x) : 0)", "[1, 2].map { |y| yield(y + x) }", "block_given?",
              "helper(x) { |y| yield(y) }", "helper(x) { block_given? }", "(yield x rescue 7)", "pr.call(x)", "x.times.map { |i| yield(i) }", "[x].each { |y| return yield(y) }",
              "(begin; yield(x); rescue ArgumentError => e; e.message; ensure; x; end)", "helper(x, &BLOCK)", "[yield(x), yield(x + 1)]", "lambda { |y| yield(y) }.call(x)",
              "(block_given? && yield(x))", "[x, 2].inject { |a, b| yield(a + b).to_i }", "[3, x].sort_by { |y| yield(y).to_i }", "defined?(yield)"].freeze
    GIVEN = [
      "{ |v| v + 1 }", "{ |v, w = 3| [v, w] }", "{ |v, w| [w, v] }", "{ |v| next 7 if v == 1; v }", "{ |v| v > 1 ? raise(ArgumentError, \"q\") : v }",
      "{ |*v| v }", "{ |*v, w| [v, w] }", "(&:succ)", "(&method(:plus))", "(&->(v) { v * 3 })", "", "(&nil)", "{ |v| v + k }", "{ |v| total += v; v }",
      "{ 5 }", "{ |v| [v].map { |q| q + k } }", "{ |v| break v }", "(&proc { |v| v })"
    ].freeze

    def yields
      named = chance(0.4)
      bodies = some(YIELDS, 1, 2).map { |text| text.include?("BLOCK") && !named ? "x" : text.sub("BLOCK", "block") }
      made = "pr = proc { |v| #{among(["yield(v)", "block_given?", "v"])} }\n" if bodies.any? { |text| text.include?("pr.") }
      place = among(["def self.over(list#{", &block" if named})", "def over(list#{", &block" if named})"])
      method = "#{place}\n  #{made}list.~map { |x| [#{bodies.join(", ")}] }\nend"
      method = "class Made\n#{method}\n  def helper(x) = block_given? ? yield(x) : -1\nend" unless place.include?("self.")
      through = among(["", "def self.pass(...) = TARGET.over(...)", "def self.pass(list, &b) = TARGET.over(list, &b)", "def self.pass(list) = TARGET.over(list) { |v| block_given? ? yield(v) : 8 }"])
      target = place.include?("self.") ? "self" : "Made.new"
      given = among(GIVEN)
      given = given.start_with?("(") ? "([1, 2, 3], #{given[1..]}" : "([1, 2, 3]) #{given}"
      call = through.empty? ? "#{target}.over#{given}" : "pass#{given}"
      definitions = [method, through.gsub("TARGET", target), "def self.plus(v) = v + 100", "def self.helper(x) = block_given? ? yield(x) : -1"].join("\n")
      program(definitions, "k = 40\ntotal = 0\nr = #{call}\n[r, total]")
    end

    CALLABLE = [
      "->(a) { a + 1 }", "->(a) { a * k }", "proc { |a| a.to_i - 1 }", "proc { |a, b| [a, b] }", "->(a) { return 5 if a > 1; a }",
      "proc { |a| next 6 if a == 1; a }", "method(:plus)", "->(a, b = 2) { a + b }", "->(*a) { a }", ":succ.to_proc",
      "(->(a) { a + 1 } >> ->(a) { a * 3 })", "(->(a) { a + 1 } << method(:plus))", "->(a, b) { a - b }.curry[9]", "->(a) { ->(b) { a + b } }.call(3)",
      "proc { |a| a > 1 ? 1.5 : a }", "lambda(&:pred)", "->(a) { a > 1 ? nil : a }", "->(a, b) { a }", "TABLE"
    ].freeze
    CALLS = [
      ".call(x)", ".(x)", "[x]", ".yield(x)", ".call(x, 2)", ".call([x, 2])", ".then { |f| [x].map(&f) }", ".curry.call(x)",
      ".then { |f| (f >> ->(v) { [v] }).call(x) }", ".arity", ".lambda?"
    ].freeze

    def procs
      held = some(CALLABLE, 1, 3).map { |text| text == "TABLE" ? "->(a) { a }" : text }
      call = among(CALLS)
      pick = among(["x % #{held.size}", "0", "-1", "x"])
      case between(0, 5)
      when 0 then procs_in("k = 4\nops = [#{held.join(", ")}]\n[1, 2, 3].~map { |x| ops[#{pick}]#{call} }")
      when 1 then procs_in("k = 4\nops = { #{held.each_with_index.map { |text, i| "#{i} => #{text}" }.join(", ")} }\n[0, 1].~map { |x| ops[#{pick}]#{call} }")
      when 2
        objects = held.map { |text| "Holder.new(#{text})" }.join(", ")
        procs_in("k = 4\n[#{objects}].~map { |o| x = 2; o.op#{call} }", "class Holder\n  attr_accessor :op\n  def initialize(op) = @op = op\nend")
      when 3
        objects = held.map { |text| "Holder.new(#{text})" }.join(", ")
        procs_in("k = 4\nl = [#{objects}]\nr = l.~each { |o| o.run(2) }\nl.map(&:last)", "class Holder\n  attr_reader :last\n  def initialize(op) = @op = op\n  def run(x) = @last = @op#{call}\nend")
      when 4 then procs_in("k = 4\nops = [#{held.join(", ")}]\n[1, 2].~map { |x| ops.map { |f| f#{call} } }")
      else procs_in("k = 4\n[1, 2].~map { |x| ops = [#{held.join(", ")}]; #{among(["ops[#{pick}]#{call}", "f = ops[#{pick}]; f#{call}", "(x > 1 ? ops.first : ops.last)#{call}"])} }")
      end
    end

    private

    def procs_in(run, definitions = "") = program("#{definitions}\ndef self.plus(v) = v + 100\n", run)

    def alias_body(name, above)
      lines = %w[a b c].select { chance(0.5) }.map do |method|
        behind = %w[a b c].select { |other| other > method }
        parts = ["[:#{name}#{method}, x]"]
        parts << among(["super", "super(x + 1)", "super(*[x])"]) if above && chance(0.6)
        parts << "#{among(behind)}(x + 10)" if behind.any? && chance(0.4)
        head = chance(0.15) ? "define_method(:#{method}) do |x|" : "def #{method}(x)"
        parts.map! { |part| part == "super" ? "super(x)" : part } if head.start_with?("define")
        "  #{head}\n    @ran += 1\n    #{parts.join(" + ")}\n  end"
      end
      between(0, 2).times do
        to, from = %w[a b c].sample(2, random: @random)
        line = among(["  alias #{to} #{from}", "  alias_method :#{to}, :#{from}", "  alias old_#{from} #{from}\n  def #{to}(x) = [:#{name}, #{from == to ? 0 : 1}] + old_#{from}(x)"])
        lines.insert(between(0, lines.size), "  (\n#{line}\n) if method_defined?(:#{from})".then { |text| text.include?("def ") ? "  if method_defined?(:#{from})\n#{line}\n  end" : text })
      end
      lines << "  #{among(%w[private protected])} :#{among(%w[a b c])}" if chance(0.1)
      lines.join("\n").sub(/^  (private|protected) :(\w)$/) { "  #{$1} :#{$2} if method_defined?(:#{$2})" }
    end
  end

  Kinds.add CallKinds
end
