# frozen_string_literal: true

# Objects that Ruby would convert: a kernel refuses them, or answers as Ruby does.
module Conversions
  class List
    def to_ary = [1, 2]
    def to_a = [1, 2]
  end

  class Number
    def to_int = 1
    def coerce(other) = [other, 2]
  end

  class Text
    def to_str = "b"
  end

  class Real < Numeric
    def to_f = 4.0
    def <=>(_other) = 0
  end

  # The same by private methods, and by method_missing.
  class Hidden
    private

    def to_ary = [1, 2]
    def to_a = [1, 2]
    def to_int = 1
    def to_str = "b"
  end

  class Dynamic
    KNOWN = { to_ary: [1, 2], to_a: [1, 2], to_int: 1, to_str: "b" }.freeze

    def method_missing(name, *) = KNOWN.fetch(name) { super }
    def respond_to_missing?(name, _all = false) = KNOWN.key?(name)
  end

  class Plain; end

  PLAIN = Plain.new
  OBJECTS = [List, Number, Text, Real, Hidden, Dynamic, Plain].map(&:new).freeze

  class << self
    def two(x) = yield(x)
    def nested((_, b)) = b
  end

  # Methods that take an object as a list, an Integer, a String, a Float or a number.
  USES = {
    "parameters of a block" => ->(o) { [o].map { |_, b| b } }, "parameters and a splat" => ->(o) { [o].map { |_, *b| b.size } },
    "nested parameters" => ->(o) { [[o, 1]].map { |(_, b), _| b } }, "yield" => ->(o) { two(o) { |_, b| b } },
    "parameters of a method" => ->(o) { Conversions.nested(o) }, "a proc" => ->(o) { proc { |_, b| b }.call(o) },
    "parameters of a lambda" => ->(o) { ->((_, b)) { b }.call(o) }, "an assignment" => ->(o) { _, b = o; b }, "for" => ->(o) { r = 0; for _, b in [o] do r = b; end; r },
    "then" => ->(o) { o.then { |_, b| b } }, "select" => ->(o) { [o].select { |_, b| b }.size }, "sum" => ->(o) { [o].sum { |_, b| b || 5 } },
    "a splat" => ->(o) { [*o].size }, "flatten" => ->(o) { [o, [3]].flatten.size },
    "flatten of two levels" => ->(o) { [[o]].flatten.size }, "flat_map" => ->(o) { [1].flat_map { o }.size }, "flat_map of a Range" => ->(o) { (1..2).flat_map { o }.size },
    "+" => ->(o) { ([0] + o).size }, "-" => ->(o) { ([0] - o).size }, "&" => ->(o) { ([0] & o).size }, "|" => ->(o) { ([0] | o).size },
    "*" => ->(o) { ([0] * o).size }, "product" => ->(o) { [1].product(o).size }, "transpose" => ->(o) { [o].transpose.size }, "==" => ->(o) { [1, 2] == o }, "<=>" => ->(o) { [1, 2] <=> o },
    "an index" => ->(o) { [10, 20][o] }, "an index to write" => ->(o) { a = [1, 2]; a[o] = 9; a }, "a length" => ->(o) { [10, 20][0, o].size }, "at" => ->(o) { [10, 20].at(o) },
    "first" => ->(o) { [10, 20].first(o).size }, "take" => ->(o) { [10, 20].take(o).size }, "drop" => ->(o) { [10, 20].drop(o).size }, "fetch" => ->(o) { [10, 20].fetch(o) },
    "rotate" => ->(o) { [10, 20].rotate(o) }, "each_slice" => ->(o) { [10, 20].each_slice(o).to_a.size }, "cycle" => ->(o) { n = 0; [1].cycle(o) { n += 1 }; n },
    "Array.new" => ->(o) { Array.new(o) { 1 }.size }, "combination" => ->(o) { [1, 2].combination(o).to_a.size }, "Integer#+" => ->(o) { 1 + o }, "Float#*" => ->(o) { 1.5 * o },
    "Integer#<" => ->(o) { 1 < o }, "Integer#<<" => ->(o) { 1 << o }, "Integer#round" => ->(o) { 15.round(o) }, "digits" => ->(o) { 3.digits(o).size }, "Integer.sqrt" => ->(o) { Integer.sqrt(o) },
    "sum from it on" => ->(o) { [1].sum(o) }, "sum of it" => ->(o) { [1, o].sum }, "Math" => ->(o) { Math.sqrt(o) }, "Math of two" => ->(o) { Math.hypot(o, 1) }, "rand" => ->(o) { rand(o).size },
    "a Range" => ->(o) { (1..3).cover?(o) }, "start_with?" => ->(o) { "b".start_with?(o) }, "include?" => ->(o) { "b".include?(o) },
    "String#index" => ->(o) { "b".index(o) }, "String#==" => ->(o) { "b" == o },
    "String#<=>" => ->(o) { "b" <=> o }, "String#<" => ->(o) { "a" < o }, "String#[]" => ->(o) { "abc"[o] }, "getbyte" => ->(o) { "abc".getbyte(o) }, "a Struct's index" => ->(o) { PAIR[o] },
    "min by a block" => ->(o) { [1, 2].min { o } }
  }.freeze

  PAIR = Struct.new(:a, :b).new(5, 6).freeze
end

RSpec.describe "Implicit conversions" do
  def outcome
    yield
  rescue StandardError => e
    raise if e.is_a?(Ikra::InternalError)

    [e.class, e.message.lines.first.chomp.gsub(/0x\h+/, "")]
  end

  Conversions::USES.each do |what, block|
    it "of the program's own objects by #{what} are Ruby's, or refused" do
      answers = Conversions::OBJECTS.map do |object|
        expected = outcome { block.call(object) }
        got = outcome { [object].pmap(backend: :reference, &block).first }
        next :refused if Array(got).first == Ikra::CompileError

        expect([object.class, got]).to eq([object.class, expected])
        :equal
      end
      expect(answers).to include(:equal) unless what == "sum from it on"
    end
  end

  on_every_backend do
    it "are told with the method that Ruby would call" do
      object = Conversions::List.new
      expect { [object].pmap(backend:) { |a, b| b } }.to raise_error(Ikra::CompileError, /kernels do not ask Conversions::List for to_ary/)
      expect { [Conversions::Number.new].pmap(backend:) { |x| [1, 2][x] } }.to raise_error(Ikra::CompileError, /Conversions::Number for to_int/)
      expect { [Conversions::Text.new].pmap(backend:) { |x| "ab".include?(x) } }.to raise_error(Ikra::CompileError, /Conversions::Text for to_str/)
      expect { [Conversions::Real.new].pmap(backend:) { |x| Math.sqrt(x) } }.to raise_error(Ikra::CompileError, /Conversions::Real for to_f/)
    end

    it "are TypeErrors of objects that have none" do
      expect { |x| x > 1 ? [1] + Conversions::PLAIN : 0 }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? [1][Conversions::PLAIN] : 0 }.to be_same_as_ruby.over(1, 2)
    end
  end
end
