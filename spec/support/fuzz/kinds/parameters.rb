# frozen_string_literal: true

module Fuzz
  # Values for parameters: splats, parameters after them, keywords.
  module ParameterKinds
    ITEMS = ["x", "x", "1", "nil", "2.5", ":s", "[x, 2]", "[x]", "[]", "[[x, 1], 2]", "*[x, 3]", "*list", "*nil", "*(1..2)", "*[]"].freeze
    ITERATED = ["[ARGS].map BLOCK", "[[ARGS]].map BLOCK", "[[ARGS], [1, 2, 3]].map BLOCK", "[ARGS].each_with_index.map BLOCK", "[ARGS].map.with_index BLOCK",
                "[[ARGS], [x]].each_with_index.map BLOCK", "[ARGS].flat_map BLOCK", "[[ARGS]].then BLOCK", "[ARGS].each_slice(2).map BLOCK",
                "[ARGS].each_cons(2).map BLOCK", "(1..2).zip([ARGS]).map BLOCK", "[ARGS].inject(0) BLOCK", "[[ARGS]].inject(x) BLOCK", "3.times.map BLOCK",
                "[[ARGS]].each_with_object([x]).map BLOCK", "[[ARGS]].filter_map BLOCK", "[[ARGS]].group_by BLOCK", "Array.new(2) BLOCK"].freeze

    def splats
      list, names = parameter_list
      value = "[#{names.join(", ")}]"
      args = some(ITEMS, 0, 4).join(", ")
      definitions, call = splat_call(list, value, args)
      elements = among(["[1, 2, 3]", "[[1, 2], [3, 4]]", "[1, [2, 3], nil]", "[1.5, 2]"])
      program(definitions, "#{elements}.~map { |x| list = [x, 7]; #{call} }")
    end

    def keywords
      names = %w[a b c d].first(between(1, 4))
      kinds = %w[n n = n: n: n:9].first(5)
      chosen = names.map { |name| [name, among(kinds)] }.sort_by { |_, kind| kinds.index(kind) }
      list = chosen.map { |name, kind| { "n" => name, "=" => "#{name} = 5", "n:" => "#{name}:", "n:9" => "#{name}: #{among(["9", "nil"])}" }.fetch(kind) }
      list.insert(chosen.count { |_, kind| %w[n =].include?(kind) }, "*rest") if chance(0.2)
      names += ["rest"] if list.include?("*rest")
      args = some(["x", "1", "*[x, 2]", "nil"], 0, 2) + %w[a b c d].select { chance(0.5) }.map { |name| "#{name}: #{among(["x", "1", "nil"])}" }
      args << among(["**{a: x}", "**OPTIONS", "**{}", "&nil"]) if chance(0.15)
      definitions, call = splat_call(list.join(", "), "[#{names.join(", ")}]", args.join(", "))
      program("OPTIONS = { b: 4 }.freeze\n#{definitions}", "[1, 2].~map { |x| list = [x]; #{call} }")
    end

    private

    # A list of parameters, and the names in it.
    def parameter_list(depth = 0)
      names = []
      one = lambda do
        next names.push(fresh).last unless depth < 2 && chance(0.2)

        inner, more = parameter_list(depth + 1)
        names.concat(more)
        "(#{inner})"
      end
      list = Array.new(between(0, 2)) { one.call }
      list += Array.new(between(0, 2)) { "#{fresh.tap { |name| names << name }} = #{among(["9", names.first || "8", "[7, 6]"])}" } if depth.zero? && chance(0.4)
      rest = chance(0.5)
      list << among(["*", "*#{fresh}"]).tap { |text| names << text[1..] if text.size > 1 } if rest
      list += Array.new(between(0, 2)) { one.call } if rest || list.any? { |text| text.include?(" = ") }
      list << names.push(fresh).last if list.empty? && depth.positive?
      [list.join(", "), names]
    end

    # Definitions, and a call with the arguments `args`.
    def splat_call(list, value, args)
      block = "{ |#{list}| #{value} }"
      take = "def self.take(#{list}) = #{value}"
      case between(0, 12)
      when 0 then ["def self.give(x, list) = yield(#{args})", "give(x, list) #{block}"]
      when 1 then ["", "proc #{block}#{among([".call(ARGS)", ".(ARGS)", "[ARGS]", ".yield(ARGS)"]).sub("ARGS") { args }}"]
      when 2 then ["", "lambda #{block}#{among([".call(ARGS)", ".(ARGS)", "[ARGS]"]).sub("ARGS") { args }}"]
      when 3 then [take, "take(#{args})"]
      when 4 then [take, "#{among(["send(:take, ARGS)", "public_send(:take, ARGS)", "method(:take).call(ARGS)", "method(:take).to_proc.call(ARGS)"]).sub("ARGS") { args }}".sub(", )", ")")]
      when 5 then ["#{take}\n#{among(["def self.pass(*a, &b) = take(*a, &b)", "def self.pass(...) = take(...)", "def self.pass(*a, **o) = take(*a, **o)"])}", "pass(#{args})"]
      when 6 then ["class Made\n  attr_reader :value\n  def initialize(#{list})\n    @value = #{value}\n  end\nend", "Made.new(#{args}).value"]
      when 7 then ["class Made\n  define_method(:take) #{block}\nend", "Made.new.take(#{args})"]
      when 8
        inherits = among(["def take(*) = super", "def take(*a) = super", "def take(*a) = super(*a)", "def take(*a, **o) = super(*a, **o)", "def take(...) = super(...)"])
        ["class Base\n  def take(#{list}) = #{value}\nend\nclass Made < Base\n  #{inherits}\nend", "Made.new.take(#{args})"]
      when 9 then ["def self.give(x, list, &block) = block.call(#{args})\ndef self.pass(x, list, &block) = give(x, list, &block)", "pass(x, list) #{block}"]
      when 10
        return ["", "proc #{block}.call(#{args})"] if list.empty? || list.include?(" = ") || list.include?(":")

        ["", "(#{list}#{"," unless list.match?(/[,*]/)} = #{args.empty? ? "x" : args}; #{value})"]
      else
        args = "x" if args.empty? || args.include?(":")
        ["", among(ITERATED).sub("ARGS") { args }.sub("BLOCK") { block }]
      end
    end
  end

  Kinds.add ParameterKinds
end
