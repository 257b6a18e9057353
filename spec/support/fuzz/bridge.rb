# frozen_string_literal: true

# Runs cases through Ikra: ruby -Ilib bridge.rb BACKEND FILE …
#
# Prints a line for each: the file, `equal`, `overflow`, `refused` or `failed`, and what is wrong. Every case runs in a
# process of its own, so that its classes are new and a crash counts as a failure. On CUDA, where a process takes long
# to begin, the classes of a case are removed instead.
require "ikra"
require "tmpdir"
require_relative "../../../ext/ikra-core/tests/cases/oracle"

module Fuzz
  # Sections of operations as the core's cases write them.
  module Within
    def pmap_within(name, *given, &block) = Ikra.__section(:pmap, :map, self, 1, {}, block, [[name, *given]])[1]

    def peach_within(name, *given, &block) = Ikra.__section(:peach, :each, self, 1, {}, block, [[name, *given]])[1]

    def pfind_within(name, *given, &block) = Ikra.__section(:pfind, :find, self, 1, {}, block, [[name, *given]])[1]
  end
  Array.include(Within)
  Range.include(Within)

  # A case as Ikra runs it.
  class Bridge < Case
    # The outcome, and what is wrong.
    def verdict(backend)
      texts = @lines[0...@header].slice_when { |line, _| line == "#" }.drop(1).first.map { |line| line.delete_prefix("#").strip }.reject(&:empty?)
      expected, setup = texts.partition { |text| text.match?(/\A(gives|after|raises): /) }
      lines, unchanged = backend == :cuda ? forgotten { found(backend, setup, expected) } : apart { found(backend, setup, expected) }
      lines = expected if backend == :cuda && close?(lines, expected)
      judge(expected, lines, unchanged)
    rescue RuntimeError, TypeError, ArgumentError => e
      ["failed", "crash: #{e.message}"]
    end

    private

    # Removes what the case defined: its constants, and its methods outside of classes.
    def forgotten
      constants = Object.constants
      methods = Object.private_instance_methods(false)
      yield
    ensure
      (Object.constants - constants).each { |name| Object.send(:remove_const, name) }
      (Object.private_instance_methods(false) - methods).each { |name| Object.send(:remove_method, name) }
      SetUp::OBJECTS.clear
    end

    def found(backend, setup, expected)
      $VERBOSE = nil
      Ikra.configure { |config| config.backend = backend }
      loaded(setup.filter_map { |line| line[/\A(\w+) = /, 1] })
      SetUp.open
      within = binding_of(Object.new)
      setup.each { |line| within.eval(line) }
      SetUp.close
      before = state(within)
      lines = outcome(within, expected)
      [lines, before == state(within)]
    end

    # Loads the case from a file, as a program would be. The section becomes a proc, whose parameter is a binding with
    # the locals around it. All lines stay where they are.
    def loaded(names)
      lines = @lines.dup
      reads = names.map { |name| "#{name} = around.local_variable_get(:#{name})" }
      writes = names.map { |name| "around.local_variable_set(:#{name}, #{name})" }
      lines[@section - 1] = "Fuzz::SECTION = proc do |around| #{reads.join("; ")}"
      lines << "ensure #{writes.join("; ")}" << "end"
      Dir.mktmpdir do |folder|
        path = File.join(folder, File.basename(@path))
        File.write(path, "#{lines.join("\n")}\n")
        load path
      end
    end

    # Everything that the section may have changed.
    def state(within)
      objects = SetUp::OBJECTS.map { |object| object.instance_variables.map { |name| show(object.instance_variable_get(name)) } }
      locals = (within.local_variables - [:object]).map { |name| show(within.local_variable_get(name)) }
      [objects, locals]
    end

    # Objects that the section made have no number.
    def show(value, within = [])
      plain = [Array, NilClass, TrueClass, FalseClass, Numeric, Symbol, String, Range, Module].any? { |klass| klass === value }
      return super if plain || SetUp::OBJECTS.any? { |object| object.equal?(value) }

      "a new #{value.class}"
    end

    def outcome(within, expected)
      value = within.receiver.instance_exec(within, &SECTION)
      SetUp.open
      after = expected.grep(/\Aafter: /) { |text| text.delete_prefix("after: ").partition(" => ").first }
      ["gives: #{show(value)}", *after.map { |expression| "after: #{expression} => #{show(within.eval(expression))}" }]
    rescue StandardError, SystemStackError => e
      [raised(e)]
    end

    def place(error)
      return "line 0, index 0, tick 0" unless error.respond_to?(:ikra)

      line = error.backtrace.first[/:(\d+)/, 1]
      "line #{line}, index #{error.ikra.index}, tick #{error.ikra.tick}"
    end

    def judge(expected, lines, unchanged)
      raised = lines.first.start_with?("raises: ")
      return ["equal", ""] if lines == expected && (unchanged || !raised)
      return ["refused", lines.first] if lines.first.start_with?("raises: Ikra::CompileError")
      return ["refused", lines.first] if unchanged && lines.first.end_with?("arrays do not grow in kernels")
      return ["failed", "it raised, and something was changed"] if raised && !unchanged
      return ["overflow", ""] if raised && (beyond?(lines.first) || summed?(expected, lines.first))

      ["failed", (lines - expected).zip(expected - lines).map { |is, should| "#{is}, not #{should}" }.join("; ")]
    end

    # CUDA's functions of Math are within the bounds of its documentation. Nothing else may differ.
    def close?(lines, expected)
      return false unless @lines.any? { |line| line.match?(/Math\.|\*\*/) }

      float = /-?\d+\.\d+(?:e[-+]?\d+)?/
      return false unless lines.map { |line| line.gsub(float, "x") } == expected.map { |line| line.gsub(float, "x") }

      pairs = [lines, expected].map { |list| list.flat_map { |line| line.scan(float).map(&:to_f) } }.transpose
      pairs.all? { |is, should| is == should || (is - should).abs <= should.abs * 1e-9 }
    end

    # Whether a sum that elements share left 64 bits because of elements that Ruby did not reach. Then another element
    # raises there.
    def summed?(expected, line)
      at = line[/\Araises: Ikra::IntegerOverflow at line (\d+), .*: \+ gives/, 1]
      at && expected.first.start_with?("raises: ") && @lines[at.to_i - 1].include?("counter.n += ")
    end

    # Whether the line says that an Integer went beyond 64 bits where Ruby had one, too.
    def beyond?(line)
      # Arithmetic made a Float of a literal of 2**63 or more.
      return true if line.include?(": this literal gives")
      return false unless line.match?(/\Araises: (Ikra::IntegerOverflow|RangeError at .*kernels)/)

      index, tick = line.match(/index (\d+), tick (\d+)/).captures
      @lines[0].partition("beyond: ").last.split.any? { |at| at == "#{tick}/#{index}" || line.include?("line 0,") }
    end
  end
end

if $PROGRAM_NAME == __FILE__
  backend, *files = ARGV
  $stdout.sync = true
  files.each { |file| puts [file, *Fuzz::Bridge.new(file).verdict(backend.to_sym)].join("\t").gsub("\n", " ") }
end
