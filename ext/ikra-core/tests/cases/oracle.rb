# frozen_string_literal: true

# Runs cases as plain sequential Ruby and says where their expectations differ.
#
#   ruby --disable=gems oracle.rb integers/division.rb …            prints differences, fails if there are any
#   ruby --disable=gems oracle.rb --update integers/division.rb …   writes what Ruby gives into the files
#
# The form of a case is described in src/world/fixture/case.rs.

# Ikra itself may be there to run the cases.
require_relative "sequential" unless defined?(Ikra::Parallel)

# Objects made by the values of their ivars: Car(speed: 1.0). It is taken away while the section runs.
module SetUp
  OBJECTS = []
  METHODS = Module.new
  Object.include(METHODS)

  def self.open
    METHODS.define_method(:method_missing) do |name, *arguments, **ivars|
      if name.match?(/\A[A-Z]/)
        object = (is_a?(Module) ? self : Object).const_get(name).allocate
        OBJECTS << object
        object.set(**ivars)
      elsif arguments.empty? && instance_variable_defined?("@#{name}")
        instance_variable_get("@#{name}")
      else
        super(name, *arguments, **ivars)
      end
    end
    METHODS.define_method(:set) do |**ivars|
      ivars.each do |name, value|
        SetUp.member?(self, name) ? self[name] = value : instance_variable_set("@#{name}", value)
      end
      self
    end
  end

  def self.member?(object, name)
    object.is_a?(Struct) && object.members.include?(name)
  end

  def self.close
    METHODS.remove_method(:method_missing, :set)
  end
end

def binding_of(object)
  object.instance_eval { binding }
end

# One case file, and what plain Ruby makes of it.
class Case
  KEYS = %w[gives after raises refused conflict kernels differs self options holes shows checks].freeze
  EXPECTATIONS = KEYS - %w[self options holes shows checks]

  def initialize(path)
    @path = path
    @lines = File.readlines(path, chomp: true)
    @header = @lines.take_while { |line| line.start_with?("#") }.size
    body = @lines[@header..].join("\n").rstrip.lines(chomp: true)
    @section = @header + ((body.rindex("") || -1) + 1)
  end

  # The lines of the file as they should be.
  def corrected
    common = []
    paragraphs = @lines[0...@header].slice_when { |line, _| line == "#" }.to_a
    head = paragraphs.drop(1).flat_map do |paragraph|
      texts = paragraph.map { |line| line.delete_prefix("#").strip }.reject(&:empty?)
      own = texts.reject { |text| KEYS.include?(text[/\A(\w+):/, 1]) }
      if texts.none? { |text| EXPECTATIONS.include?(text[/\A(\w+):/, 1]) }
        common = own
        next paragraph
      end
      next paragraph if texts.any? { |text| text.match?(/\A(refused|conflict|differs):/) }

      rewritten(paragraph, apart { run(common + own, texts) })
    end
    paragraphs.first(1).flatten + head + @lines[@header..]
  end

  def update
    File.write(@path, "#{corrected.join("\n")}\n")
  end

  def differences
    corrected.each_with_index.reject { |line, number| line == @lines[number] }
             .map { |line, number| "#{@path}:#{number + 1}: #{@lines[number]}\n  Ruby: #{line}" }
  end

  private

  def rewritten(paragraph, outcome)
    kept = paragraph.reject { |line| line.match?(/\A# *(gives|after|raises):/) }
    at = kept.index { |line| line == "#" || line.match?(/\A# *(?:kernels|checks|shows):/) } || kept.size
    kept.insert(at, *outcome.map { |line| "# #{line}" })
  end

  # In a process of its own, so that classes and constants are new.
  def apart
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      writer.write(Marshal.dump(yield))
      writer.close
      exit!(0)
    end
    writer.close
    answer = reader.read
    Process.wait(pid)
    raise "#{@path}: no answer" if answer.empty?

    Marshal.load(answer)
  end

  def run(set_up, texts)
    eval(@lines[@header...@section].join("\n"), TOPLEVEL_BINDING, @path, @header + 1)
    SetUp.open
    within = binding_of(Object.new)
    set_up.each { |line| within.eval(line) }
    within = with_self(within, texts)
    SetUp.close
    outcome(within, texts)
  end

  def with_self(within, texts)
    object = value_of(texts, "self").first
    return within unless object

    inner = binding_of(within.eval(object))
    within.local_variables.each { |name| inner.local_variable_set(name, within.local_variable_get(name)) }
    inner
  end

  def outcome(within, texts)
    value = within.eval(@lines[@section..].join("\n"), @path, @section + 1)
    SetUp.open
    lines = texts.grep(/\A(gives|raises):/).empty? ? [] : ["gives: #{show(value)}"]
    lines + value_of(texts, "after").map do |equation|
      expression = equation.split(" => ").first
      "after: #{expression} => #{show(within.eval(expression))}"
    end
  rescue StandardError, SystemStackError => e
    [raised(e)]
  end

  def raised(error)
    "raises: #{error.class} at #{place(error)}: #{error.message.gsub(/#<(?<name>[\w:]+):0x\h+(?<rest>(?:[^<>]|#<\g<rest>>)*)>/, '#<\k<name>>')}"
  end

  def place(error)
    line = error.backtrace_locations.find { |location| location.path == @path }&.lineno
    "line #{line}, index #{Ikra.index}, tick #{Ikra.tick}"
  end

  def value_of(texts, key)
    texts.grep(/\A#{key}: /) { |text| text.delete_prefix("#{key}: ") }
  end

  def show(value, within = [])
    case value
    when Array
      return "[...]" if within.any? { |array| array.equal?(value) }

      "[#{value.map { |item| show(item, [*within, value]) }.join(", ")}]"
    when nil, true, false, Numeric, Symbol, String, Range, Module then value.inspect
    else "#{value.class}##{SetUp::OBJECTS.select { |object| object.instance_of?(value.class) }.index { |object| object.equal?(value) } + 1}"
    end
  end
end

if $PROGRAM_NAME == __FILE__
  update = ARGV.delete("--update")
  differences = ARGV.flat_map do |path|
    update ? Case.new(path).update && [] : Case.new(path).differences
  end
  puts differences
  exit differences.empty?
end
