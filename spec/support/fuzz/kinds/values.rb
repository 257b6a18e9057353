# frozen_string_literal: true

module Fuzz
  # Values: Ranges without elements and of Floats, Integers beyond 64 bits, slots that elements share, and objects of
  # the program's own that Ruby converts.
  module ValueKinds
    BASES = ["(7...7)", "(1..0)", "(0...0)", "(5..2)", "(-1...-1)", "[]", "(3..3)", "(1...1.5)", "(2..1.5)", "(0..4)", "[4, 1]", "(1...2)", "(1.step(0, 1))", "(0...-1)"].freeze
    PARALLEL = [
      "~map { |v| v * 2 }", "~select(&:even?)", "~reject { |v| v > 1 }", "~partition { |v| v > 1 }", "~filter_map { |v| v if v > 1 }",
      "~flat_map { |v| [v, v] }", "~count", "~count(3)", "~count { |v| v > 0 }", "~all? { |v| v > 1 }", "~any?", "~none?", "~one?", "~all?(Integer)",
      "~any?(2..3)", "~find { |v| v > 1 }", "~find_index(3)", "~find_index { |v| v > 1 }", "~reduce(:+)", "~reduce { |a, b| a + b }",
      "~reduce(5) { |a, b| a + b }", "~inject(5, :+)", "~inject(:*)", "~sum", "~sum { |v| v * 2 }", "~sum(0.0)", "~sum(1.5) { |v| v }", "~min", "~max",
      "~minmax", "~min { |a, b| b <=> a }", "~max { |a, b| b <=> a }", "~minmax { |a, b| b <=> a }", "~min(2)", "~max(2)", "~min(0)",
      "~min(2) { |a, b| b <=> a }", "~min_by { |v| -v }", "~max_by { |v| -v }", "~minmax_by { |v| -v }", "~min_by(2) { |v| -v }",
      "~max_by(1) { |v| -v }", "~sort", "~sort { |a, b| b <=> a }", "~sort_by { |v| -v }", "~group_by { |v| v % 2 }", "~tally", "~uniq",
      "~uniq { |v| v % 2 }", "~zip([1, 2])", "~zip(1..2)", "~each { |v| t += v }", "~map.with_index { |v, i| v + i }",
      "~each_with_index { |v, i| t += v * i }", "~lazy.map { |v| v + 1 }.first(2)", "~lazy.map { |v| v + 1 }.to_a", "~lazy.select(&:even?).sum",
      "~lazy.map { |v| v }.min", "~lazy.map { |v| v }.reduce { |a, b| a + b }", "~find(-> { 9 }) { |v| v > 9 }", "~map { raise 'q' }",
      "~select.with_index { |v, i| i > 0 }"
    ].freeze

    def empty_ranges
      base = among(BASES)
      base = "(#{between(-2, 3)}#{among(["..", "..."])}#{between(-3, 3)})" if chance(0.4)
      call = among(PARALLEL)
      call = call.sub("~each_with_index", "~each_with_index") if call
      program("", "t = 0\nr = #{base}.#{call}\n[r#{".to_a" if call.include?("~each")}, t]")
    end

    ENDS = ["x", "x.to_f", "x / 2.0", "0", "1.5", "3", "x + 2", "4.0", "-x", "-0.0", "Float::INFINITY", "2.5", "nil", "x - 1"].freeze
    RANGE_CALLS = [
      "include?(I)", "cover?(I)", "cover?(R)", "===(I)", "member?(I)", "min", "max", "minmax", "sum", "to_a", "first(2)", "last(2)", "first", "last",
      "begin", "end", "size", "count", "step(1).to_a", "step(2).to_a", "step(0.5).to_a", "% 2", "==(R)", "eql?(R)", "exclude_end?",
      "each { |v| t += v }", "map { |v| v * 2 }", "bsearch { |v| v >= I }", "bsearch { |v| I <=> v }", "min { |a, b| b <=> a }", "max(2)", "min(2)",
      "inject(:+)", "each_slice(2).to_a", "reverse_each.to_a", "step(I) { |v| t += v }", "select(&:even?)", "min_by { |v| -v }", "to_a.reverse",
      "entries", "any?", "none? { |v| v > 2 }", "each_with_index.to_a", "sum { |v| v * 0.5 }", "then { |r| I.clamp(r) }",
      "then { |r| [5, 6, 7, 8][r] }", "then { |r| (case I when r then 1 else 2 end) }", "then { |r| \"hello\"[r] }",
      "then { |r| [5, 6, 7].values_at(r, 1) }", "count(I)", "find { |v| v > 1 }", "take_while { |v| v < 3 }", "inspect.size", "hash == (R).hash",
      "lazy.map { |v| v + 1 }.first(2)", "zip(R)", "each_cons(2).to_a", "then { |r| [5, 6, 7].fill(0, r) }", "then { |r| [5, 6, 7].slice(r) }",
      "then { |(a, b)| [a, b] }", "then { |r| [1, *r] }", "tally", "step(2).map { |v| v }", "to_set.size", "partition { |v| v > 1 }"
    ].freeze

    def ranges
      range = -> { "(#{among(ENDS)}#{among(["..", "..."])}#{among(ENDS)})" }
      call = among(RANGE_CALLS).gsub("I") { among(["x", "1.5", "2", "x.to_f", "nil", "-1", "3.0"]) }.gsub("R") { range.call }
      call = "size" if call.match?(/\A(to_a|each|sum|count|step|map)/) && chance(0.0)
      bounded = range.call
      # Ruby makes Arrays of Ranges without end until the memory is gone
      open = call.match?(/\A(include|cover|===|member|begin|end|size|==|eql|exclude|first|then|bsearch|lazy|find|take)/) && !call.include?("*r")
      bounded = bounded.sub("nil)", "5)").sub(/Float::INFINITY\)/, "6.0)") unless open
      program("", "[1, 0, 4].~map { |x| t = 0; r = #{bounded}.#{call}; [r, t] }")
    end

    BIG = ["2**64", "-(2**64)", "2**63", "10**30", "-(2**63) - 1"].freeze
    BIG_USES = [
      "o.v", "o.v + 1", "o.v > 0", "o.w", "o.v = 1", "o.w = o.v", "o.v -= -1", "o.v == 5", "o.v.to_f", "o.v & 255", "o.list.size", "o.list[0]",
      "o.list.sum", "o.list.include?(3)", "o.v.nil?", "o.v.hash == 1", "o.v % 7", "[o.v].max", "o.v.is_a?(Integer)", "o.v <=> 0", "o.v.to_s.size",
      "(begin; o.v + 1; rescue => e; 0; end)", "o.w += 1", "o.v.even?", "o.v.fdiv(2)", "o.list.map { |q| q.to_f }", "o.list << 1", "(o.v rescue 3)",
      "o.inner.v", "o.inner.list.first", "o.v.zero?", "-o.v", "o.v.bit_length", "o.list.first == o.v", "o.v.equal?(o.v)", "o.v / 3", "o.v.coerce(1.5)",
      "o.v ** 2", "o.list.sort", "1.5 + o.v", "o.v.clamp(0, 5)"
    ].freeze

    LIST_USES = [
      "map { |x| x }", "map { |x| x && x > 1 }", "sum", "min_by { |x| x.to_f }", "sort_by { |x| x.to_f }", "count { |x| x == 1 }", "select { |x| x }",
      "reduce { |a, b| a.to_i + b.to_i }", "tally", "uniq", "group_by { |x| x }", "count(1)", "find_index(1)", "max_by { |x| x.to_f }", "zip([1])"
    ].freeze
    CAPTURED_USES = [
      "x == c", "[x, c].first", "h[x]", "h.size", "s.a", "s.b", "s.b + x", "(x..BIG).include?(x)", "BIG > x", "x < BIG", "x & BIG", "h.key?(x)",
      "s == s", "[BIG, x].min", "RANGE.include?(x)", "c.to_f", "x + BIG", "s.to_a.size", "BIG", "LIST[x]", "LIST[0]", "LIST.size"
    ].freeze
    STRUCT_USES = ["s.a", "s.b[0]", "s.b.size", "s.a.to_f", "s.b", "s", "(s.a = 1)", "s.a == s.b[0]"].freeze
    ARRAY_USES = ["a[0]", "a[1]", "a.size", "a.sum", "a.first", "(a[0] = 5)", "a.map { |q| q.to_f }", "a", "a.last"].freeze

    def large
      big = among(BIG)
      value = -> { among([big, big, "3", "1.5", "nil", "2"]) }
      maker = ->(inner) { "#{among(%w[A B])}.new(#{value.call}, #{value.call}, [#{some(["1", "2", big, "0.5"], 0, 2).join(", ")}], #{inner})" }
      objects = Array.new(between(1, 3)) { maker.call(chance(0.5) ? maker.call("nil") : "nil") }
      definitions = ["A", "B"].map { |name| "class #{name}\n  attr_accessor :v, :w, :list, :inner\n  def initialize(v, w, list, inner) = (@v, @w, @list, @inner = v, w, list, inner)\nend" }.join("\n")
      use = among(BIG_USES)
      run = case between(0, 7)
      when 0, 1 then "l = [#{objects.join(", ")}]\nr = l.~map { |o| #{use} }\n[r, l.map(&:v), l.map(&:w)]"
      when 2 then "l = [#{objects.join(", ")}]\nl.~each { |o| #{use} }\n[l.map(&:v), l.map(&:w), l.map(&:list)]"
      when 3 then "o = #{objects[0]}\n[1, 2].~map { |x| #{use.match?(/ [-+]?= |<</) ? "o.v" : use} }"
      when 4 then "l = [#{some([big, "1", "2.5", "nil", "3"], 1, 4).join(", ")}]\nl.~#{among(LIST_USES)}"
      when 5 then "c = #{value.call}\nh = { 1 => #{value.call}, #{big} => 2 }\ns = S.new(#{value.call}, 2)\n[1, 2].~map { |x| #{among(CAPTURED_USES)} }"
      when 6 then "l = [#{Array.new(2) { "S.new(#{value.call}, [#{value.call}])" }.join(", ")}]\nr = l.~map { |s| #{among(STRUCT_USES)} }\n[r, l]"
      else "l = [[#{value.call}, 1], [2, #{value.call}]]\nr = l.~map { |a| #{among(ARRAY_USES)} }\n[r, l]"
      end
      program("#{definitions}\nS = Struct.new(:a, :b)\nBIG = #{big}\nLIST = [1, 2, BIG].freeze\nRANGE = (0..BIG)", run)
    end

    INDICES = ["c.i", "N - 1 - c.i", "(c.i * 3 + 1) % N", "(c.i + 2) % N", "c.i / 2", "c.i % 2", "ORDER[c.i]", "0", "-1 - c.i", "(c.v * 5) % N", "c.v % N"].freeze

    WRITES = [
      "list[AT] = c.v", "others[AT].state = c.v", "others[AT].set(c.v)", "c.to[AT].state = c.i", "list[AT] += c.v", "others[AT].state += c.v",
      "list[AT], c.v = c.v, 7", "list[AT] = 1", "list[AT] ||= c.v", "list[AT] = [list[AT], c.v].max", "others[AT].state = :on",
      "t = AT; list[t] = c.i", "c.v = list[AT]"
    ].freeze

    def writers
      size = among([4, 5, 7, 8])
      order = (0...size).to_a.shuffle(random: @random)
      index = among(INDICES).gsub("N", size.to_s)
      values = Array.new(size) { between(0, 9) }
      guard = among(["", "", " if c.v > 4", " unless c.i == 1"])
      write = among(WRITES).sub("AT") { index }
      slots = order.each_index.map { |i| eval(index.gsub("c.i", i.to_s).gsub("c.v", values[i].to_s).gsub("ORDER", order.inspect)) % size } # rubocop:disable Security/Eval, Style
      apart = slots.uniq.size == size || write.match?(/\+=|= 1\z|:on|c\.v = list/)
      apart &&= !write.match?(/\]\.max/) || slots.uniq.size == size
      definitions = <<~RUBY
        ORDER = #{order.inspect}.freeze
        class Spot
          attr_accessor :state
          def initialize = @state = 0
          def set(v) = @state = v
        end
        class Cell
          attr_accessor :i, :v, :to
          def initialize(i, v, to) = (@i, @v, @to = i, v, to)
        end
      RUBY
      run = "list = Array.new(#{size}, 0)\nothers = Array.new(#{size}) { Spot.new }\ncells = #{values.inspect}.each_with_index.map { |v, i| Cell.new(i, v, others) }\n" \
            "cells.~each { |c| #{write}#{guard} }\n[list, others.map(&:state), cells.map(&:v)]"
      program(definitions, run, compared: apart)
    end

    METHODS = [
      "def to_ary = [1, 2]", "def to_ary = nil", "def to_ary = [x]", "def to_a = [3, 4]", "def to_int = 1", "def to_str = \"b\"", "def to_f = 1.5",
      "def to_i = 2", "def to_proc = ->(v) { v }", "def coerce(other) = [other, 2]", "def to_s = \"s\"", "def to_sym = :a", "def to_hash = { a: 1 }",
      "def to_h = { a: 1 }", "def <=>(other) = 0", "def ==(other) = true", "def ===(other) = true", "def each = yield(1)", "def +(other) = 9",
      "def hash = 1", "def eql?(other) = true", "def call(*v) = 5", "def to_r = 1r", "def succ = self", "def !~(other) = true", "def ! = 3",
      "def to_path = \"q\"", "def to_enum = [1].each", "def size = 3", "def nil? = true", "def to_int = 1.5", "def to_ary = 5",
      "def !=(other) = false", "def =~(other) = 1", "def [](i) = 4", "def deconstruct = [1, 2]", "def deconstruct_keys(_) = { a: 1 }"
    ].freeze
    CONVERTED = [
      "[o].map { |a, b| b }", "(a, b = o; [a, b])", "[*o].size", "[o, [3]].flatten.size", "[1].flat_map { o }.size", "[5, 6, 7][o]",
      "[5, 6, 7].first(o)", "[5, 6][0, o]", "x + o", "x * o", "x.fdiv(o)", "2.5 + o", "x <=> o", "x == o", "o == x", "[1, 2].include?(o)",
      "[o, 1].index(1)", "[1] + o", "[1, 2] - o", "[1, 2] & o", "[1].zip(o)", "[1].concat(o)", "Array.new(o)", "Array(o).size", "Integer(o)",
      "Float(o)", "Math.sqrt(o)", "\"ab\".index(o)", "\"ab\" == o", "\"ab\".include?(o)", "\"ab\"[o]", "[1, 2].rotate(o)", "[1, 2].take(o)",
      "x.round(o)", "x << o", "x & o", "x[o]", "x.digits(o)", "[[1, 2], o].sum { |a, b| b || 5 }", "[[1, 2], o].transpose.size", "[1, 2].product(o)",
      "[1, 2].sum(o)", "(case x when o then 1 else 2 end)", "[1, 2].each_slice(o).to_a", "(1..3).first(o)", "(1..3).step(o).to_a", "(o..3).size",
      "x.clamp(o, 3)", "x.clamp(1..o)", "[x, o].max", "[x, o].min", "[o, x].sort.size", "[x, o].sum", "[1, 2].map(&o)", "x.pow(o)", "x.gcd(o)",
      "Rational(1, 2) + o", "Complex(1, 2) + o", "[o].join", "[1, 2].fill(o)", "[1, 2].values_at(o)", "[1, 2].dig(o)", "[[1, 2]].dig(0, o)",
      "x.times.first(o)", "[1, 2] == o", "[1, 2] <=> o", "[[o, 1]].to_h.size", "proc { |a, b| [a, b] }.call(o)", "two(o) { |a, b| b }",
      "two(*o) { |a| a }", "take(*o)", "take(**o)", "[o].each_with_index.map { |(a, b), i| b }", "[o, o].uniq.size", "[[o]].flatten.size",
      "[o].to_a.size", "(o ? 1 : 2)", "(!o)", "(o && 1)", "[nil, o].compact.size", "o.nil?", "[1, 2].count(o)", "[1, 2].delete(o)", "[o].sum { 1 }",
      "(o in [a, b])", "(o in {a:})", "(x in ^o)", "[1, 2, 3].sample(o).size", "x.between?(o, 3)", "[1, 2].cycle(o).size",
      "[1, 2].inject(o) { |a, b| b }", "[1, 2].min(o)", "x.floor(o)", "1.5.round(o)", "1.5.floor(o)", "x.ceil(o)", "[1, 2].combination(o).to_a",
      "[[2, 1]].each { |a, b| return [a, b] }", "x.upto(o).to_a", "1.step(3, o).to_a", "[1, 2].slice(o, 1)", "[3, 4].insert(o, 1)", "x.divmod(o)",
      "x % o", "x ** o", "x / o", "x - o", "x > o", "[1, 2].last(o)", "[1, 2].drop(o)", "[1, 2] * o", "[1, 2] | o", "Hash[1, 2].size", "[1, 2].at(o)",
      "[1, 2].fetch(o)", "rand(o).class", "x.bit_length + o", "x.eql?(o)", "x.equal?(o)", "x != o", "Math.atan2(1, o)", "Math.hypot(o, 1)",
      "[0.5, o].sum", "[0.5].sum(o)", "(1..o).to_a", "x.coerce(o)", "1.5.divmod(o)", "1.5 <=> o", "1.5 == o", "[1.5, o].max",
      "loop { break o }.class.name.size"
    ].freeze

    PLACES = [
      "o = OBJECT\n[1, 2].~map { |x| USE }", "[1, 2].~map { |x| o = MADE; USE }", "[MADE, MADE].~map { |o| x = 2; USE }",
      "[1, 2].~map { |x| o = x > 1 ? MADE : 1; USE }", "[1, 2].~map { |x| o = MADE; (USE rescue 77) }"
    ].freeze

    def conversions
      methods = some(METHODS, 1, 3).uniq { |text| text[/def (\S+?)[ (]/, 1] }
      base = among(["", "", "", " < Numeric", " < Struct.new(:q)"])
      made = base.include?("Struct") ? "Own.new(1)" : "Own.new"
      body = methods.map { |text| "  #{"private " if chance(0.08)}#{text}" }.join("\n")
      body = body.gsub("[x]", "[8]")
      definitions = "class Own#{base}\n#{body}\nend\ndef self.two(*v) = yield(*v)\ndef self.take(*v, **o) = v.size\nOBJECT = #{made}"
      use = among(CONVERTED)
      run = among(PLACES)
      program(definitions, run.gsub("MADE", made).sub("USE") { use })
    end
  end

  Kinds.add ValueKinds
end
