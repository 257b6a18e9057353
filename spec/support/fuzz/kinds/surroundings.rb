# frozen_string_literal: true

module Fuzz
  # The surroundings of a block: redefined methods of Ruby's own classes, refinements, and the encoding of the file.
  module SurroundingKinds
    REDEFINED = {
      "Integer" => %w[+ - * / % <=> == < succ abs times zero? even? to_s to_i upto divmod ** -@ coerce hash eql? [] clamp],
      "Array" => %w[size length map each [] first last include? sum sort reverse == + inject min max take uniq each_slice rotate select push << any? empty? hash],
      "Hash" => %w[[] fetch size each key? to_a], "Range" => %w[each size include? first === to_a step sum begin end map last],
      "String" => %w[size [] == bytesize length +], "Symbol" => %w[== to_proc <=> to_s], "Comparable" => %w[clamp between? == < >],
      "Enumerable" => %w[map sum include? to_a inject each_slice each_with_index first sort_by], "Kernel" => %w[then is_a? respond_to? itself nil? === != tap instance_of? kind_of? hash class],
      "NilClass" => %w[to_i to_a nil? == &], "Float" => %w[+ <=> to_i round < == *], "BasicObject" => %w[== ! !=], "Object" => [], "Proc" => %w[===], "Struct" => %w[== [] to_a]
    }.freeze

    def redefined
      owner, names = among(REDEFINED.reject { |_, list| list.empty? }.to_a)
      name = among(names)
      other = among(names)
      change = among([
                       "def #{name}(*, &b) = 42", "def #{name}(*, &b) = nil", "alias #{fresh("old")} #{name}\ndef #{name}(*a, &b) = old1(*a, &b)",
                       "alias #{name} #{other}", "def #{name}(*a, &b) = super", "undef_method :#{name}", "define_method(:#{name}) { |*a| 42 }",
                       "def #{name}(other = 1, *) = other", "def #{name}(*) = raise(ArgumentError, \"mine\")", "def #{name}(*) = true"
                     ]).gsub(/old\d+/, "fuzz_old")
      lists = ["[1, -2, 3]", "[]", "[4, 4, 2, 9]"]
      block = "proc { |x| #{redefined_list(2)} }"
      block = "proc { |x| [#{redefined_int(%w[x.size], 2)}, #{redefined_bool([], 2)}] }" if chance(0.5)
      definitions = "TABLE = { 1 => 10, 2 => 20 }.freeze\nPair = Struct.new(:left, :right)\nBLOCK = #{block}"
      program(definitions, "[#{lists.join(", ")}].pmap(&BLOCK)", plain: "[#{lists.map { |list| "BLOCK.call(#{list})" }.join(", ")}]",
                                                                redefined: [Object.const_get(owner), name.to_sym, change])
    end

    REFINED_USES = [
      "x.v", "[x].map(&:v)", "x.send(:v)", "x.public_send(:v)", "helper(x)", "(x + 1)", "x.respond_to?(:v)", "[x, 2].sum", "[x, 1].map { |y| y.v }",
      "x.then { |y| y + 1 }", "x.abs", "[3, x].max", "Q.new(x).v", "Q.new(x).w", "x.to_s.size", "[x, 2].size", "proc { |y| y.v }.call(x)",
      "[x].first.v", "(x == 1)", "case x when 1 then :one else :other end", "[x, 2].include?(1)", "x.method(:abs).call", "x.clamp(2, 3)"
    ].freeze
    REFINEMENTS = [
      "refine(Integer) { def v = self + 10 }", "refine(Integer) { def +(other) = 5 }", "refine(Integer) { def v = super + 1 }",
      "refine(Q) { def v = 77 }", "refine(Q) { def w = v + 1 }", "refine(Array) { def size = 99 }", "refine(Array) { def sum = 98 }",
      "refine(Integer) { def abs = super + 50 }", "refine(Object) { def v = 66 }", "refine(Integer) { def ==(other) = true }",
      "refine(Integer) { def ===(other) = true }", "refine(Comparable) { def clamp(*) = 3 }", "refine(Kernel) { def then = 4 }",
      "refine(Integer) { def <=>(other) = other.to_i - to_i }"
    ].freeze

    def refinements
      how = among(["using R", "one = 1; using R", "if true\n  using R\nend", "send(:using, R)", "[1].each { using R }", "using R if true",
        "begin\n  using R\nend", "module_eval \"using R\", __FILE__", "", "# using R",
                   "TEXT = <<~END\n  using R\nEND", "TEXT = \"using R\"", "using(R)", "using Module.new { refine(Integer) { def v = 3 } }"])
      blocks = Array.new(2) { |i| "B#{i} = proc { |x| #{some(REFINED_USES, 1, 2).then { |uses| "[#{uses.join(", ")}]" }} }" }
      definitions = ["class Q\n  def initialize(x) = @x = x\n  def v = @x\nend", "module R\n  #{some(REFINEMENTS, 1, 2).join("\n  ")}\nend", "def self.helper(x) = x.then { |y| y + 1 }",
                     blocks[0], how, chance(0.3) ? "class Inner\n  #{blocks[1]}\nend\nB1 = Inner::B1" : blocks[1]].join("\n")
      definitions = definitions.gsub(/^B1 = proc/, "def self.helper2(x) = x.respond_to?(:v) ? 1 : 0\nB1 = proc") if chance(0.2)
      program(definitions, "[B0, B1].map { |b| begin; [1, 2].~map(&b); rescue NoMethodError => e; e.class; end }")
    end

    ENCODINGS = { "utf-8" => ["ä", "日本", "😀", "é"], "iso-8859-1" => ["\xE9", "\xE4\xF6"], "euc-jp" => ["\xA4\xA2", "\xA4\xA2\xA4\xA4"], "windows-31j" => ["\x83\x5C", "\x82\xA0"],
                  "shift_jis" => ["\x95\x5C", "\x83\x7B"], "ascii-8bit" => ["\xFF", "\xFE\xFD"], "us-ascii" => %w[e], "windows-1252" => ["\x80", "\xE9"], "gbk" => ["\xC4\xE3", "\x81\x7C"] }.freeze

    def encodings
      name, letters = among(ENCODINGS.to_a)
      blocks = []
      lines = Array.new(between(2, 5)) { encoded_line(letters.map(&:b), blocks) }
      lines << "B0 = proc { |x| x + 9 }".b if blocks.empty? && blocks << "B0"
      head = among(["# encoding: #{name}", "# -*- coding: #{name} -*-", "#! /usr/bin/env ruby\n# encoding: #{name}", "# encoding: #{name}\n# frozen_string_literal: true"])
      head = among(["", "\xEF\xBB\xBF", "# plain"]).b if name == "utf-8" && chance(0.5)
      newline = chance(0.1) ? "\r\n" : "\n"
      text = "#{head}\nmodule Subject\n".b + lines.join("\n".b) + "\n  def self.run = [#{blocks.join(", ")}].map { |b| [1, 2].~map(&b) }\nend\n".b
      text = text.gsub("\n".b, newline.b)
      Kinds::Program.new(text: { ruby: text, ikra: text }, compared: true)
    end

    private

    def redefined_list(depth)
      return "x" if depth <= 0

      list, int, bool = redefined_list(depth - 1), redefined_int(%w[a], depth - 1), redefined_bool(%w[a], depth - 1)
      r = fresh("r")
      among(["#{list}.map { |a| #{int} }", "#{list}.select { |a| #{bool} }", "#{list}.sort", "#{list}.reverse", "(#{list} + #{list})", "#{list}.take(2)",
        "(0...#{redefined_int([], depth - 1)}.clamp(0, 5)).to_a",
             "#{list}.uniq", "#{list}.rotate(1)", "#{list}.each_slice(2).map { |q| q.sum }", "#{list}.map(&:succ)", "[*#{list}, 1]",
               "#{list}.each_with_index.map { |a, i| a + i }", "#{list}.sort_by { |a| #{int} }",
             "(#{r} = []; #{list}.each { |a| #{r} << a }; #{r})", "(#{r} = []; 3.times { |a| #{r}.push(#{int}) }; #{r})",
               "#{list}.each_with_object([]) { |a, m| m << a }", "#{list}.zip(#{list}).map { |a, b| a }", "#{list}.flat_map { |a| [a, 1] }"])
    end

    def redefined_int(names, depth)
      return among([*names, "1", "2", "7"]) if depth <= 0

      list, a, b, bool = redefined_list(depth - 1), redefined_int(names, depth - 1), redefined_int(names, depth - 1), redefined_bool(names, depth - 1)
      among(["#{list}.sum", "#{list}.size", "(#{a} + #{b})", "#{a}.abs", "(#{list}.first || 0)", "#{list}.inject(0) { |c, d| c + d }", "#{list}.max.to_i",
        "(#{a} <=> #{b})", "TABLE[#{a}].to_i", "'abc'.size",
             "(#{bool} ? #{a} : #{b})", "#{a}.clamp(1, 3)", "Pair.new(#{a}, 2).left", "(#{a} * 2)", "(-#{a})", "#{a}.then { |c| c }",
               "#{list}.count { |c| c == #{a} }", "(case #{a} when 1..3 then 5 else 6 end)", "(1.5 + #{a}).to_i"])
    end

    def redefined_bool(names, depth)
      return among(%w[true false]) if depth <= 0

      list, a, b = redefined_list(depth - 1), redefined_int(names, depth - 1), redefined_int(names, depth - 1)
      among(["(#{a} > #{b})", "#{list}.include?(#{a})", "#{a}.zero?", "(#{a}..#{b}).include?(2)", "#{a}.between?(0, 4)", "(#{list} == #{list})",
        "#{list}.any?", "(#{a} == #{b})", "#{list}.empty?", "(#{a} != #{b})", "!#{a}.even?",
             "nil.nil?", "#{a}.is_a?(Integer)", "(:a == :b)", "(Pair.new(#{a}, 1) == Pair.new(#{b}, 1))", "#{list}.all?(Integer)", "#{a}.eql?(#{b})", "('ab' == 'ab')"])
    end

    # A line with letters in front of and behind blocks.
    def encoded_line(letters, blocks)
      parts = Array.new(between(1, 4)) do
        l = among(letters)
        case between(0, 8)
        when 0 then "#{fresh("S")} = \"".b + l + "\"".b
        when 1 then "#{fresh("S")} = '".b + l + l + "'".b
        when 2 then "#{fresh("S")} = :\"".b + l + "\"".b
        when 3 then "# ".b + l + "\n".b
        when 4 then "#{fresh("S")} = %w[".b + l + " q]".b
        when 5 then "#{fresh("S")} = <<~END\n  ".b + l + "\nEND\n".b
        else
          blocks << "B#{blocks.size}"
          tail = chance(0.75) ? "".b : among([" + \"".b + l + "\".size".b, " + (\"".b + l + "\" == \"".b + l + "\" ? 1 : 2)".b, "\n # ".b + l + "\n".b, " + \"".b + l + "\".bytesize".b])
          among(["B#{blocks.size - 1} = proc { |x| x + #{blocks.size * 10}".b + tail + " }".b, "B#{blocks.size - 1} = lambda do |x|\n x * #{blocks.size * 10}".b + tail + "\nend".b,
                 "B#{blocks.size - 1} = ->(x) { x - #{blocks.size * 10}".b + tail + " }".b])
        end
      end
      parts.join("; ".b).gsub(/\n; /n, "\n".b)
    end
  end

  Kinds.add SurroundingKinds
end
