# frozen_string_literal: true

require "open3"
require "tmpdir"

# Runs the Ruby code of README.md and of the guides under docs/. The examples of one page are one program, in order.
# `expression # => value` must give that value, and `expression # raises Name` must raise that exception. A block of
# text after an example is the output of the example.
module Guides
  ROOT = File.expand_path("../..", __dir__)
  PAGES = %w[README.md docs/algorithms.md docs/concurrency.md docs/differences.md docs/mapreduce.md docs/mdarray.md docs/memory.md docs/operations.md].freeze
  EXAMPLE = /^```ruby\n(?<program>.*?)^```\n(?:\n?```text\n(?<printed>.*?)^```\n)?/m
  SHOWN = /\A *(?<expression>[^#\s][^#]*?) +# => (?<value>.+)\n\z/
  RAISED = /\A *(?<expression>[^#\s][^#]*?) +# raises (?<name>[\w:]+)\n\z/
  # The methods that examples call when they run.
  CHECKS = <<~RUBY
    def __shows(line, expected, value)
      # Ruby 3.4 writes spaces around =>
      given = value.inspect.gsub(" => ", "=>")
      abort "line \#{line} gives \#{given}, not \#{expected}" unless given == expected
    end

    def __raises(line, name, error)
      abort "line \#{line} raises \#{error ? error.class : "nothing"}, not \#{name}" unless error.class.name == name
    end
  RUBY

  class << self
    # @return [Array(String, String)] the program of a page's examples, and its output
    def program(page)
      text = File.read(File.join(ROOT, page))
      examples = text.to_enum(:scan, EXAMPLE).map { Regexp.last_match }
      programs = examples.map do |example|
        first = example.pre_match.count("\n") + 1
        example[:program].lines.each_with_index.map { |line, number| checked(line, first + number + 1) }.join
      end
      [programs.join("\n"), examples.filter_map { |example| example[:printed] }.join]
    end

    # The number of lines of a page that state a value or an exception.
    def checks(page) = File.read(File.join(ROOT, page)).scan(EXAMPLE).flat_map { |program, _| program.lines }.count { |line| line.match?(/ # (=>|raises) /) }

    # A program's output, its warnings, and whether it ended well.
    def run(program, backend)
      Dir.mktmpdir do |there|
        File.write(File.join(there, "page.rb"), program)
        File.write(File.join(there, "checks.rb"), CHECKS)
        command = [RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", "-rikra", "-r./checks.rb", "page.rb"]
        Open3.capture3({ "IKRA_BACKEND" => backend.to_s }, *command, chdir: there)
      end
    end

    private

    def checked(line, number)
      if (match = SHOWN.match(line))
        "__shows(#{number}, #{match[:value].dump}, (#{match[:expression]}))\n"
      elsif (match = RAISED.match(line))
        "begin; #{match[:expression]}; __raises(#{number}, #{match[:name].dump}, nil); rescue StandardError => error; __raises(#{number}, #{match[:name].dump}, error); end\n"
      else
        line
      end
    end
  end
end

RSpec.describe "README.md and the guides" do
  Guides::PAGES.each do |page|
    describe page do
      (Backends.present & %i[cpu cuda]).each do |backend|
        it "has examples that give, raise and print on #{backend} what it says" do
          program, printed = Guides.program(page)
          expect(program.scan(/^(?:__shows|begin; .*__raises)\(/).size).to eq(Guides.checks(page))
          output, complaints, status = Guides.run(program, backend)
          expect(status).to be_success, complaints
          expect(output).to eq(printed)
        end
      end

      it "has no line beyond 120 columns" do
        long = File.readlines(File.join(Guides::ROOT, page), chomp: true).select { |line| line.size > 120 }
        expect(long).to be_empty
      end
    end
  end
end
