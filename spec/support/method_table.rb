# frozen_string_literal: true

# The table of methods: each method that a receiver has in Ruby and that kernels know, with each form of its arguments,
# without and with a block. Ruby's own lists say which methods exist. Compiling says which of them kernels know. So a
# new method is included by itself.
module MethodTable
  Own = Struct.new(:value) do
    def inspect = "own #{value}"
  end

  # An object that has `<=>`.
  class Ordered
    include Comparable

    attr_reader :value

    def initialize(value) = @value = value
    def <=>(other) = other.is_a?(Ordered) ? value <=> other.value : nil
    def inspect = "ordered #{value}"
  end

  # An object without methods of its own.
  class Plain
    def initialize(value) = @value = value
    def inspect = "plain #{@value}"
  end

  # An object that Ruby's methods convert.
  class Converted
    def to_int = 1
    def to_str = "a"
    def to_ary = [1, 2]
    def to_f = 1.5
    def to_i = 1
    def to_sym = :a
    def coerce(other) = [other, 2]
    def inspect = "converted"
  end

  HASH = { 1 => 2, 3 => 4 }.freeze
  NAMES = { a: 1, b: nil }.freeze

  # Makes the receivers of one kind. `captured`: the block captures them, one by one.
  Group = Struct.new(:name, :captured, :make)

  def self.group(name, captured: false, &make) = Group.new(name, captured, make)

  GROUPS = [
    group("Integers") { [0, 1, -3, 7, 12] },
    group("large Integers") { [2**62, -2**63, 2**63 - 1, 2**53 + 1] },
    group("Floats") { [0.0, -0.0, 1.5, -2.5, 1e20, 1e-9, Float::NAN, Float::INFINITY] },
    group("nil") { [nil] },
    group("true and false") { [true, false] },
    group("Symbols") { %i[a b] },
    group("Strings") { ["", "a", "hello world", "äöü", "12", "-1.5e3x"] },
    group("arrays of Integers") { [[1, 2, 3], [], [3, 1, 2, 2], [-1]] },
    group("arrays of Floats") { [[1.5, 2.0], [0.0, -0.0, Float::NAN], []] },
    group("mixed arrays") { [[1, 2.5, nil], [:a, 1], [true, false, 1]] },
    group("arrays of Strings") { [%w[b a], %w[a a b]] },
    group("nested arrays") { [[[1, 2], [3, 4]], [[5, 6]], []] },
    group("deep arrays") { [[1, [2, 3]], [[4], 5]] },
    group("empty arrays") { [[], []] },
    group("arrays of nil") { [[nil, nil], [nil]] },
    group("arrays of objects") { [[Plain.new(1), Plain.new(2)], [Plain.new(3)]] },
    group("arrays of ordered objects") { [[Ordered.new(2), Ordered.new(1)], [Ordered.new(3)]] },
    group("captured arrays", captured: true) { [[1, 2, 3], [1.5, 2.0], []] },
    group("Hashes of Integers", captured: true) { [{ 1 => 2, 3 => 4 }, {}] },
    group("Hashes of Symbols", captured: true) { [{ a: 1, b: nil }, { a: [1, 2] }] },
    group("Hashes with a default", captured: true) { [Hash.new(7).merge!(1 => 2)] },
    group("Hashes of Strings", captured: true) { [{ "a" => 1.5 }] },
    group("Ranges of Integers") { [1..5, 1...1, 5..1, -2..3, 0...4] },
    group("Ranges of Floats") { [1.5..3.5, 0.0...1.0, 2.0..1.0] },
    group("Ranges of an Integer and a Float") { [1..3.5, 0...2.0, 3..1.5] },
    group("Ranges of a Float and an Integer") { [1.5..3, 2.5...5, 3.5..1] },
    group("endless Ranges") { [1.., 0...nil] },
    group("beginless Ranges") { [..3, nil...2] },
    group("Ranges of nothing") { [nil..nil] },
    group("Ranges of Strings", captured: true) { ["a".."d"] },
    group("Structs") { [Own.new(1), Own.new(2.5)] },
    group("ordered objects") { [Ordered.new(1), Ordered.new(2)] },
    group("plain objects") { [Plain.new(1)] },
    group("Complexes") { [Complex(1, 2), Complex(0, -1)] },
    group("Complexes of Floats") { [Complex(1.5, 2.0)] },
    group("Rationals") { [Rational(3, 2), Rational(-1, 3), Rational(4, 1)] },
    group("Math", captured: true) { [Math] },
    group("classes", captured: true) { [Integer, Array, Comparable, Struct, Own] },
    group("functions of Integers") { [3, 0, -1] },
    group("functions of Strings") { ["12", "1.5", "x", ""] },
    group("functions of others") { [nil, 2.5, :a] }
  ].freeze

  ARGUMENTS = [
    "", "1", "0", "-1", "100", "2.5", "nil", "true", ":a", '"a"', "[1, 2]", "[]", "1..2", "0.5..2", "1..", "Rational(1, 2)", "1i", "x", "1, 2", "0, nil", "1, 2.5",
    "-1, 1", "1..2, 1", "0, 1, 2", ":a, :b", "[[1, 2]]", "Own.new(1)", "Plain.new(1)", "Converted.new", "Integer", "HASH", "1, a: 2", "a: 1"
  ].freeze
  BLOCKS = ["{ |a| a }", "{ |a, b| a }", "{ 1 }", "{ nil }", "{ |a, b| b }", "{ |a| a == 1 }", "{ |*a| a }"].freeze
  WITH_BLOCK = ["", "1", "[1, 2]", "-1", "nil", "1, 2"].freeze

  # Methods that end a program, or do not end, or whose answers differ from run to run.
  LEFT_OUT = %i[
    loop rand sleep exit exit! abort fork raise fail throw catch object_id __id__ hash binding gets readline readlines instance_variable_set
    trap select system exec spawn srand test warn puts print p pp display require load method send public_send __send__ tap
  ].freeze
  # Kernel's functions, which are called without a receiver.
  FUNCTIONS = %i[Integer Float Rational Complex Array String Hash format sprintf catch raise fail throw lambda proc block_given? loop].freeze

  # Known differences and their reasons: the code, and what Ikra says.
  KNOWN = {
    /arrays do not grow in kernels/ => "arrays do not grow",
    /\Ax\.(?:&|-|\||difference|intersection|union)\(x\) where x is .*NaN/ => "NaN has no identity",
    /\Ax\.sort(?:!|_by)?\(\) \{/ => "which elements Ruby compares first shows in the words of exceptions",
    /do not track the identity/ => "the identity of large numbers",
    /\Ax\.(?:numerator|denominator|fdiv|pow|\*\*|\[\])\(.*IntegerOverflow/ => "Integers and Rationals leave 64 bits on the way to an answer that does not",
    /\Ax\.\[\]\(nil\) where x is \d{19}/ => "the words of [] of an Integer beyond 62 bits",
    /cycle\([^)]+\) of|each_with_object\([^)]*\) of|cycle\([^)]+\) where/ => "arguments are checked before Ruby gives an Enumerator",
    /undefined method [`'].*for (an instance of (?:Array|Range)|\[\]:Array)/ => "messages show Ranges, and arrays without elements, that are made in the section"
  }.freeze

  # Of Ranges without an end. Other methods would never return.
  OF_OPEN_RANGES = %i[
    cover? include? member? === == != eql? begin end first exclude_end? size class is_a? instance_of? nil? last min max minmax equal? <=> itself
  ].freeze

  # One method of one group of receivers, with arguments.
  Case = Struct.new(:group, :name, :code)

  class << self
    # All forms of the methods that a group's receivers have in Ruby and kernels know.
    def cases(group)
      names(group).flat_map { |name| forms(group, name).map { |code| Case.new(group, name, code) } }
    end

    # Makes the blocks of these cases.
    def blocks(cases, folder)
      path = File.join(folder, "cases#{@files = @files.to_i + 1}.rb")
      File.write(path, program(cases))
      eval(File.read(path), TOPLEVEL_BINDING, path)
    end

    # Compiles one by one, so that a message can name the line.
    def known?(group, name, folder)
      unknown = /kernels (?:do not know|make no) (?:\S*[#.])?#{Regexp.escape(name)}$/
      one = Case.new(group, name, forms(group, name).first)
      make, receiver = blocks([one], folder).first, group.make.call.first
      group.captured ? [0].pmap(backend: :reference, &make.call(receiver)) : [receiver].pmap(backend: :reference, &make.call)
      true
    rescue Ikra::CompileError => e
      !e.message.match?(unknown)
    rescue StandardError, SystemStackError
      true
    end

    def names(group)
      return FUNCTIONS if functions?(group)

      all = group.make.call.flat_map { |value| value.public_methods.select { |name| core?(value.method(name)) } }
      all &= OF_OPEN_RANGES if open?(group)
      all.uniq.sort - LEFT_OUT
    end

    def forms(group, name)
      call = functions?(group) ? name : "x.#{name}"
      plain = ARGUMENTS.map { |arguments| setter?(name) ? "x.send(:#{name}, #{arguments})" : "#{call}(#{arguments})" }
      many = group.make.call.any? { |value| value.respond_to?(:each) }
      return plain if name == :loop

      return plain if group.name == "large Integers" || open?(group) || setter?(name)

      blocks = WITH_BLOCK.product(many ? BLOCKS : BLOCKS.first(2)).map { |arguments, block| "#{call}(#{arguments}) #{block}" }
      (plain + blocks).reject { |code| code.match?(/\.cycle\((nil)?\) |\.step\(.* \{|<<\(x\)/) }
    end

    # An assignment takes one argument. So `send` calls such a method.
    def setter?(name) = name.match?(/\w=\z/)

    def functions?(group) = group.name.start_with?("functions")

    def open?(group) = group.name.match?(/endless|beginless|nothing/)

    # The text of a program that gives a list of lambdas, each of which makes a block.
    def program(cases)
      lambdas = cases.map do |one|
        one.group.captured ? "->(x) { proc { |_| #{one.code} } }" : "-> { proc { |x| #{one.code} } }"
      end
      "module MethodTable\n[\n#{lambdas.join(",\n")}\n]\nend\n"
    end

    # nil, or how Ikra differs from Ruby.
    def difference(one, make, backend)
      return each_captured(one, make, backend) if one.group.captured

      block = make.call
      outcomes = one.group.make.call.map { |value| outcome(value) { block.call(value) } }
      return :refused if outcomes.include?(:too_large)

      good, bad = outcomes.each_index.partition { |i| outcomes[i].is_a?(Array) && !beyond?(outcomes[i]) }
      together = good.empty? ? [] : outcome_of(good, one.group, block, backend)
      return :refused if together == :refused
      return "#{one.code} of #{one.group.name}: #{together}" unless together.is_a?(Array)

      singles = bad.map { |i| outcome_of([i], one.group, block, backend) }
      return :refused if singles.include?(:refused)

      good.zip(together).each { |i, got| return tell(one, i, outcomes[i], got) unless same?(outcomes[i], got) }
      bad.zip(singles).each { |i, got| return tell(one, i, outcomes[i], got.is_a?(Array) ? got.first : got) unless same?(outcomes[i], got) }
      nil
    end

    private

    # Whether a method is Ruby's own, and not one that Ikra or libraries add.
    def core?(method)
      method.source_location.nil? && (!method.owner.name.to_s.match?(/\A(RSpec|Ikra|PP)/))
    end

    def tell(one, index, expected, got)
      "#{one.code} where x is #{one.group.make.call[index].inspect}\n  Ruby: #{text(expected)}\n  Ikra: #{text(got)}"
    end

    def text(outcome) = outcome.is_a?(Array) ? outcome.first : outcome.to_s.lines.first(2).join.strip

    # The value and the receiver afterwards, or an exception's class and message.
    def outcome(value)
      result = yield
      [spell(result), spell(value)]
    rescue Ikra::CompileError
      :refused
    rescue NoMemoryError
      :too_large
    rescue StandardError, SystemStackError, NotImplementedError => e
      "#{e.class}: #{without_address(e.respond_to?(:original_message) ? e.original_message : e.message)}"
    end

    def outcome_of(indices, group, block, backend)
      values = group.make.call.values_at(*indices)
      got = nil
      failed = outcome(nil) { got = values.pmap(backend: backend, &block) }
      failed.is_a?(Array) ? got.zip(values).map { |result, value| [spell(result), spell(value)] } : failed
    end

    def each_captured(one, make, backend)
      one.group.make.call.each_index do |i|
        mine, theirs = one.group.make.call[i], one.group.make.call[i]
        expected = outcome(theirs) { make.call(theirs).call(0) }
        got = outcome(mine) { [0].pmap(backend: backend, &make.call(mine)).first }
        return :refused if got == :refused
        return tell(one, i, expected, got) unless same?(expected, got)
      end
      nil
    end

    def same?(expected, got)
      got = got.first if got.is_a?(Array) && got.first.is_a?(Array)
      return true if expected == got

      beyond?(expected) && got.is_a?(String) && got.match?(/\A(Ikra::IntegerOverflow|RangeError)/)
    end

    # An Integer of more than 64 bits, a Rational, or a Complex, which kernels may not have.
    def beyond?(expected) = expected.is_a?(Array) && expected.first.match?(%r{\d{19}|\d/\d|i\)})

    def spell(value) = without_address(value.inspect)
    def without_address(text) = text.gsub(/0x\h{8,}/, "0x")
  end
end
