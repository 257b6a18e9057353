# frozen_string_literal: true

# Instance variables of all kinds of values, assigned in every way: what Ruby does is done, or an error is raised. A
# value without columns, such as a class or a String, once kept nothing of what a block assigned.
RSpec.describe "Assigned instance variables" do
  # Values, as Ruby writes them. Each is made anew for each run.
  values = [
    "Plain.new", "Plain.new.freeze", "Plain", "Settings", "Math", "Class.new", "Pair.new(1, 2)", "Pair", "1", "2**61", "1.5", ":a", "nil", "true",
    '+"text"', '"text".freeze', "[1]", "[1].freeze", "Class.new(Array).new", "{ 1 => 2 }", "(1..2)", "(1.0..2.0)", "Complex(1, 2)", "Rational(1, 2)",
    "/x/", "->(x) { x }", "Set[1]", 'RuntimeError.new("x")', "Object.new", "self"
  ]
  ways = {
    "an ivar" => "mark(5)", "an attribute" => "self.mark = 5", "by its name" => "instance_variable_set(:@mark, 5)", "||=" => "mark_once", "+=" => "add_mark",
    "several" => "mark_both(5)", "through another method" => "mark_twice(5)"
  }

  # The program prints a line for each value and each way: Ruby's outcome, and Ikra's.
  program = lambda do |backend|
    <<~RUBY
      class Plain; end
      module Settings; end
      Pair = Struct.new(:a, :b)

      module Marked
        attr_writer :mark
        def mark(x) = @mark = x
        def mark_once = @mark ||= 5
        def add_mark = @mark = (@mark || 0) + 5
        def mark_both(x) = (@mark, @other = x, 1)
        def mark_twice(x) = [1].each { |one| mark(x + one) }
      end
      Object.include(Marked)

      # What is to be seen of a value after a block.
      outcome = lambda do |value, run|
        run.call(value)
        [:fine, value.instance_variables.sort.map { |name| [name, value.instance_variable_get(name)] }]
      rescue FrozenError
        [:frozen, []]
      rescue Ikra::CompileError
        [:refused, []]
      ensure
        value.instance_variables.each { |name| value.remove_instance_variable(name) } unless value.frozen?
      end

      makers = [#{values.map { |value| "-> { #{value} }" }.join(", ")}]
      ways = { #{ways.map { |name, text| "#{name.inspect} => #{text.sub(/\A(?:self\.)?/, "->(value, run) { run.call(value) { |x| x.").sub(/$/, " } }")}" }.join(", ")} }
      as_element = ->(value, &block) { [value].peach(backend: #{backend.inspect}, &block) }
      makers.each_with_index do |make, i|
        ways.each do |name, way|
          plain = outcome.call(make.call, ->(value) { way.call(value, ->(v, &block) { [v].each(&block) }) })
          element = outcome.call(make.call, ->(value) { way.call(value, as_element) })
          captured = outcome.call(make.call, ->(value) { way.call(value, ->(v, &block) { [0].peach(backend: #{backend.inspect}) { block.call(v) } }) })
          beside = outcome.call(make.call, ->(value) { way.call(value, ->(v, &block) { [Plain.new, v].peach(backend: #{backend.inspect}, &block) }) })
          puts [i, name, plain, element, captured, beside].inspect
        end
      end
    RUBY
  end

  on_every_backend do
    it "are assigned as in Ruby, or refused" do
      outcomes = run_ruby(program.call(backend)).lines.map { |line| eval(line) } # rubocop:disable Security/Eval -- lists of literals
      expect(outcomes.size).to eq(values.size * ways.size)
      outcomes.each do |i, way, plain, *found|
        found.each { |one| expect(one).to(eq(plain).or(eq([:refused, []])), "#{values[i]}, #{way}: #{one}, not #{plain}") }
      end
      kept = outcomes.select { |_, _, plain, element, *| plain == element && plain[0] == :fine }
      expect(kept.map { |i, *| values[i] }.uniq).to include("Plain.new", "Pair.new(1, 2)")
    end
  end
end
