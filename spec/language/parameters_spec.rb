# frozen_string_literal: true

require "tmpdir"
require_relative "../support/parameter_cases"

# Some elements of a section are arrays of these, and others are not.
module Parameters
  MIXED = [[1, 2], 3, [4], [], [5, 6, 7], nil].freeze
end

RSpec.describe "Parameters" do
  def outcome
    yield
  rescue ArgumentError => e
    [e.class, e.respond_to?(:original_message) ? e.original_message : e.message]
  end

  # Not all variables of the cases are used, and Ruby would warn.
  def silent
    verbose, $VERBOSE = $VERBOSE, nil
    yield
  ensure
    $VERBOSE = verbose
  end

  on_every_backend do
    it "of every kind take what every caller gives" do
      seldom = backend == :reference ? 10 : 30
      Dir.mktmpdir do |folder|
        text = ParameterCases.program(ENV["IKRA_EXHAUSTIVE"] ? 1 : seldom, Random.new(RSpec.configuration.seed))
        File.write(path = File.join(folder, "cases.rb"), text)
        cases = silent { eval(text, TOPLEVEL_BINDING, path) }
        different = cases.filter_map do |name, code|
          ruby = outcome { code.call(3) }
          ikra = outcome { [3].pmap(backend: backend, &code).first }
          "#{name}\n  Ruby: #{ruby}\n  Ikra: #{ikra}" unless ikra == ruby
        end
        expect(cases.size).to be > 100
        expect(different).to be_empty, -> { different.first(5).join("\n") }
      end
    end

    it "of a section's block take arrays apart, whatever their lengths" do
      expect(Parameters::MIXED).to map_same_as_ruby(on: backend) { |a, b = 9| [a, b] }
      expect(Parameters::MIXED).to map_same_as_ruby(on: backend) { |a = 8, b = 9| [a, b] }
      expect(Parameters::MIXED).to map_same_as_ruby(on: backend) { |a = 8, b = 9, c| [a, b, c] }
      expect(Parameters::MIXED).to map_same_as_ruby(on: backend) { |*a, b, c| [a, b, c] }
      expect(Parameters::MIXED).to map_same_as_ruby(on: backend) { |a, b = a, *c, d, e| [a, b, c, d, e] }
      expect(Parameters::MIXED).to map_same_as_ruby(on: backend) { |x| *a, b = x; [a, b] }
      expect(Parameters::MIXED).to map_same_as_ruby(on: backend) { |a = 8, *b| [a, b] }
    end

    it "with defaults that read what is taken apart behind them are refused" do
      expect { |x| [[[x, 2]]].map { |(a, b), c = 3, (d, e)| [a, b, c, d, e] } }.to be_same_as_ruby.over(1, 2)
      expect { [1].pmap(backend:) { |x| [[[x, 2]]].map { |(a, _), c = a| c } } }.to raise_error(Ikra::CompileError, /a default that reads a parameter in parentheses/)
      expect { [1].pmap(backend:) { |x| ->((a, _), c: a) { c }.call([x, 2]) } }.to raise_error(Ikra::CompileError, /a default that reads a parameter in parentheses/)
    end

    it "of operations' blocks take two values" do
      expect([1, 2, 3].preduce(backend: backend) { |*a, b| a[0] + b }).to eq(6)
      expect([1, 2, 3].preduce(backend: backend) { |a, *b| a + b[0] }).to eq(6)
      expect([3, 1, 2].psort(backend: backend) { |*a, b| a[0] <=> b }).to eq([1, 2, 3])
      expect([3, 1].pmap(backend: backend).with_index { |*a, b| [a, b] }).to eq([[[3], 0], [[1], 1]])
      expect([[1, 2], [2, 3]].pmap(backend: backend).with_index { |(a, *b), c| [a, b, c] }).to eq([[1, [2], 0], [2, [3], 1]])
    end
  end
end
