# frozen_string_literal: true

# Compares programs of single kinds with Ruby.
#
#   ruby -Ilib spec/support/fuzz/kinds.rb KIND|all COUNT [SEED [FIRST [BACKEND …]]]
#
# Prints a line with the outcomes of each kind, and the text of each program that fails.
require "ikra"
require "tmpdir"
require "timeout"

module Fuzz
  # Programs that each test one part of Ruby which the programs of Generator seldom use.
  #
  # A kind is a public method of a module under `kinds/`, and gives a Program. In its text `~` stands in front of the
  # methods that have a parallel one: `.~map` is `.map` in Ruby, and `.pmap` in Ikra.
  class Kinds
    # A text with a module Subject, which has a method `run`. `plain` is what Ruby runs instead of `run`. `redefined` is
    # a class, a method of it, and a text that redefines it while the program runs. `compared` is false where the answer
    # may differ from Ruby's, so that only internal errors and crashes count.
    Program = Struct.new(:text, :redefined, :compared, keyword_init: true)

    @names = []
    class << self
      attr_reader :names

      def add(kinds)
        include kinds
        @names.concat(kinds.public_instance_methods(false))
      end
    end

    # The same kind, seed and number give the same program.
    def self.program(kind, seed, number)
      new(Random.new((seed * 1_000_000) + (number * 31) + names.index(kind))).public_send(kind)
    end

    def initialize(random)
      @random = random
      @count = 0
    end

    private

    def chance(share) = @random.rand < share
    def among(list) = list.sample(random: @random)
    def some(list, least, most) = Array.new(between(least, most)) { among(list) }
    def between(least, most) = @random.rand(least..most)
    def fresh(prefix = "v") = "#{prefix}#{@count += 1}"

    def program(definitions, run, plain: run, **facts)
      text = lambda do |expression|
        "module Subject\n#{definitions.gsub(/^/, "  ")}\n\n  def self.run\n#{expression.gsub(/^/, "    ")}\n  end\nend\n"
      end
      Program.new(text: { ruby: text.call(plain), ikra: text.call(run) }, compared: true, **facts)
    end

    # An expression of Integers.
    def int(names, depth = 2)
      return among([*names, *names, between(0, 9).to_s]) if depth <= 0

      a, b = int(names, depth - 1), int(names, depth - 1)
      among(["#{a} + #{b}", "(#{a} - #{b})", "#{a} * 2", "(#{a}).abs", "(#{a} > #{b} ? #{a} : #{b})", "(#{a}) % 5", a])
    end
  end
end

Dir[File.join(__dir__, "kinds", "*.rb")].sort.each { |file| require file }

module Fuzz
  # Runs programs of a kind, each in a process of its own, so that its definitions end with it.
  class KindsRunner
    SECONDS = 60

    def initialize(kind, seed, backends)
      @kind = kind
      @seed = seed
      @backends = backends
    end

    # The outcome, what is wrong, and the program's text.
    def call(number)
      program = Kinds.program(@kind, @seed, number)
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        [$stdout, $stderr].each { |io| io.reopen(File::NULL) }
        Process.setrlimit(Process::RLIMIT_CPU, SECONDS)
        writer.write(Marshal.dump(verdict(program)))
        writer.close
        exit!(0)
      end
      writer.close
      answer = reader.read
      Process.wait(pid)
      outcome, words = answer.empty? ? ["failed", "crash: #{$CHILD_STATUS || $?}"] : Marshal.load(answer) # rubocop:disable Security/MarshalLoad, Style/SpecialGlobalVars
      [outcome, words, program]
    end

    private

    def verdict(program)
      $VERBOSE = nil
      expected = outcome(program, program.text[:ruby], "", 0)
      return ["skipped", expected] if expected.match?(/\A(SyntaxError|SystemStackError|NoMemoryError)/)

      @backends.each.with_index(1) do |backend, i|
        Ikra.configure { |config| config.backend = backend }
        got = outcome(program, program.text[:ikra], "p", i)
        return ["refused", got] if got.match?(/\A(Ikra::CompileError|ArgumentError: Ikra runs over)/)
        return ["overflow", got] if got.start_with?("Ikra::IntegerOverflow") && expected.match?(/\d{19}/)
        next if got == expected || (!program.compared && !got.match?(/internal|panic/i))

        return ["failed", "#{backend}\n  Ruby: #{expected}\n  Ikra: #{got}"]
      end
      ["equal", ""]
    end

    # The value or the exception of `run`, as text without parts that always differ.
    def outcome(program, text, prefix, number)
      subject = load(text.b.gsub(/\.~(?=[a-z])/n, ".#{prefix}").gsub("Subject".b, "Subject#{number}"), number)
      shown(run(subject, program.redefined))
    rescue ScriptError, StandardError, SystemStackError, NoMemoryError => e
      message = e.respond_to?(:original_message) ? e.original_message : e.message
      shown(nil, "#{e.class}: #{message}")
    end

    def shown(value, text = value.inspect)
      text.b.gsub(/Subject\d/n, "Subject").gsub(/0x\h{6,}/n, "0x").force_encoding("utf-8").scrub
    end

    def run(subject, redefined)
      return subject.run unless redefined

      owner, name, change = redefined
      original = owner.instance_method(name)
      begin
        owner.class_eval(change, "redefined.rb", 1)
        value = begin
          subject.run
        rescue StandardError => e
          e
        end
      ensure
        owner.define_method(name, original)
      end
      value.is_a?(Exception) ? raise(value) : value
    end

    def load(text, number)
      folder = Dir.mktmpdir
      path = File.join(folder, "program#{number}.rb")
      File.binwrite(path, text)
      Kernel.load(path)
      Object.const_get("Subject#{number}")
    end
  end

  def self.run_kinds(kinds, numbers, seed, backends)
    kinds.sum do |kind|
      runner = KindsRunner.new(kind, seed, backends)
      tally, reasons = Hash.new(0), Hash.new(0)
      numbers.each do |number|
        outcome, words, program = runner.call(number)
        tally[outcome] += 1
        reasons[words.lines.first.to_s[/: .*?: (.*)/, 1].to_s[0, 70]] += 1 if outcome == "refused"
        puts "── #{kind}, seed #{seed}, program #{number}: #{words}", program.redefined, program.text[:ikra] if outcome == "failed"
      end
      puts "#{kind}: #{tally.sort.map { |outcome, times| "#{times} #{outcome}" }.join(", ")}"
      reasons.sort_by { |_, times| -times }.first(8).each { |why, times| puts format("%6d × %s", times, why) } if ENV["IKRA_FUZZ_REASONS"]
      tally["failed"]
    end
  end
end

if $PROGRAM_NAME == __FILE__
  kind, count, seed, first, *backends = ARGV
  $stdout.sync = true
  kinds = kind == "all" ? Fuzz::Kinds.names : [kind.to_sym]
  first = first.to_i
  backends = %w[reference cpu] if backends.empty?
  exit Fuzz.run_kinds(kinds, first...(first + Integer(count)), (seed || 1).to_i, backends.map(&:to_sym)).zero?
end
