# frozen_string_literal: true

require File.expand_path("../../examples/support/comparison", __dir__)

# docs/language.md says what kernels accept and what they refuse. Its examples run here. An example without a message is
# accepted, and gives on every backend what plain Ruby gives. An example with a message beside it is refused with that
# message. UPDATE_SNAPSHOTS=1 writes the messages as they are now; the diff must be reviewed.
module LanguageDocument
  FILE = File.expand_path("../../docs/language.md", __dir__)
  EXAMPLE = /^```ruby\n(?<program>.*?)^```\n(?:```text\n(?<message>.*?)^```\n)?/m

  class << self
    # Heading, program and message of each example. The message is nil where the example is accepted.
    def examples
      text = File.read(FILE)
      text.to_enum(:scan, EXAMPLE).map do
        match = Regexp.last_match
        [match.pre_match[/.*^## (.+?)$/m, 1], match[:program], match[:message]]
      end
    end

    # The value of the program, or the exception that it raises.
    def outcome(program)
      warned, $VERBOSE = $VERBOSE, nil
      name = "Example#{@count = @count.to_i + 1}"
      value = eval("module LanguageDocument::#{name}\n#{program}\nend", TOPLEVEL_BINDING.dup, "example.rb", 0)
      value.inspect.gsub(name, "Example")
    rescue Ikra::CompileError
      raise
    rescue StandardError, SystemStackError => e
      [e.class, e.message, e.backtrace.grep(/\Aexample.rb/).first[/\A[^:]+:\d+/]]
    ensure
      $VERBOSE = warned
    end

    # The message, without the source above it.
    def refusal(program)
      outcome(program)
      nil
    rescue Ikra::CompileError => e
      e.message.lines.reject { |line| line.strip.empty? || line.start_with?("    ") }.join.gsub(/:0x\h+/, ":0x…").gsub(/LanguageDocument::Example\d+::/, "").chomp << "\n"
    end

    def update
      text = File.read(FILE).gsub(EXAMPLE) do
        match = Regexp.last_match
        "```ruby\n#{match[:program]}```\n#{"```text\n#{refusal(match[:program])}```\n" if match[:message]}"
      end
      File.write(FILE, text)
    end
  end
end

RSpec.describe "docs/language.md" do
  LanguageDocument.update if ENV["UPDATE_SNAPSHOTS"] == "1"

  examples = LanguageDocument.examples
  accepted, refused = examples.partition { |_, _, message| message.nil? }

  it "has examples of both kinds under each heading that has any" do
    expect(accepted.size).to be >= 25
    expect(refused.size).to be >= 40
    links = File.read(LanguageDocument::FILE).scan(/\]\(#([\w-]+)\)/).flatten
    expect(links).to all(satisfy { |link| examples.any? { |heading, *| heading.downcase.tr(" ", "-") == link } })
  end

  on_every_backend do
    accepted.each_with_index do |(heading, program, _), number|
      it "is right that this is accepted (#{heading}, #{number}): #{program.lines.first.chomp}" do
        before = Ikra.config.backend
        Ikra.config.backend = backend
        expect(LanguageDocument.outcome(program)).to eq(Comparison.sequentially { LanguageDocument.outcome(program) })
      ensure
        Ikra.config.backend = before
      end
    end
  end

  refused.each do |heading, program, message|
    it "is right that this is refused (#{heading}): #{program.lines.last.chomp}" do
      expect(LanguageDocument.refusal(program)).to eq(message)
      expect(message).to match(/^Instead: /)
    end
  end
end
