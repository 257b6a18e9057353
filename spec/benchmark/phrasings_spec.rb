# frozen_string_literal: true

require File.expand_path("../../benchmark/phrasings", __dir__)

# All phrasings of a program give what plain Ruby gives for the program, at a size without meaning.
RSpec.describe "benchmark/phrasings" do
  it "has at least six of each of the programs that passes were written for" do
    counts = Program.phrased.to_h { |name| [name, Program.find(name).new(name).phrasings.size] }
    expect(counts.keys).to include(*%w[black_scholes boids fft floyd_warshall himeno kmeans lattice_boltzmann life mandelbrot map matmul nbody smith_waterman sph sum traffic])
    expect(counts.values).to all(be >= 6)
  end

  Program.phrased.each do |name|
    program = Program.find(name).new(name)
    program.phrasings.each do |phrasing, other|
      describe "#{name}: #{phrasing}" do
        on_every_backend do
          it "gives what plain Ruby gives for the program", slow: true do
            input = program.input(program.class.sizes[:tiny], Random.new(RSpec.configuration.seed))
            before, Ikra.config.backend = Ikra.config.backend, backend
            expect(other.difference(program.in_ruby(input), other.run(input))).to be_nil
          ensure
            Ikra.config.backend = before
          end
        end
      end
    end
  end

  describe PhrasingsBenchmark do
    around do |example|
      before = ENV.to_h
      ENV.update("PROGRAMS" => "sum", "IKRA_BENCH_BACKENDS" => "cpu", "IKRA_BENCH_TINY" => "1")
      example.run
    ensure
      ENV.replace(before)
    end

    # A program with these phrasings.
    def phrased(phrasings)
      allow(Program).to receive(:phrased).and_return(["sum"])
      allow_any_instance_of(Program.find("sum")).to receive(:phrasings).and_return(phrasings)
      allow_any_instance_of(Suite).to receive(:measure).and_return({ versions: { "c, OpenMP" => { min: 1.0, phases: {} } } })
    end

    def sum(&compute) = Class.new(Program.find("sum")) { define_method(:compute, &compute) }.new("sum")

    it "holds the slowest to the best, and the best to the one by hand" do
      phrased("good" => sum { |floats| floats.preduce { |a, b| a + b } }, "other" => sum { |floats| floats.psum { |x| x } })
      expect { described_class.new.run }.to output(/sum: cpu: the slowest phrasing against the best .*at most 1\.2.*sum: cpu: the best phrasing against C by hand .*at least 0\.95/m).to_stdout
    end

    it "times nothing whose result differs, or that is refused" do
      phrased("good" => sum { |floats| floats.preduce { |a, b| a + b } }, "wrong" => sum { |floats| floats.psum + 1.0 }, "refused" => sum { |floats| floats.pmap { |x| x.to_s.unpack("C") }.size })
      reasons = /sum: cpu: wrong: total\[0\] is .*sum: cpu: refused: .*kernels do not know String#unpack/m
      only_good = satisfy { |text| text.scan(/^  (good|wrong|refused) /).flatten == ["good"] }
      expect { expect { described_class.new.run }.to raise_error(SystemExit) }.to output(reasons).to_stderr.and output(only_good).to_stdout
    end
  end
end
