# frozen_string_literal: true

require "tmpdir"

# The programs under examples/, at a size of seconds at most: each gives the same result as in plain Ruby.
RSpec.describe "the examples" do
  # These results depend on functions whose last digits may differ between CUDA's library and Ruby, but no decision
  # does.
  math = %i[barnes_hut black_scholes boids kmeans nbody]
  directory = File.expand_path("../../examples", __dir__)
  require File.join(directory, "support/comparison")

  {
    barnes_hut: ["BarnesHut", 60], black_scholes: ["BlackScholes", 200], boids: ["Boids", 30], collatz: ["Collatz", 300], kmeans: ["KMeans", 200],
    levenshtein: ["Levenshtein", 30], life: ["Life", 12], mandelbrot: ["Mandelbrot", 30], matrix: ["MatrixProduct", 12], nbody: ["NBody", 30], raytracer: ["RayTracer", 24],
    schelling: ["Schelling", 12], sudoku: ["Sudoku", 1], sugarscape: ["Sugarscape", 14]
  }.each do |file, (name, size)|
    describe file do
      let(:program) do
        require File.join(directory, "#{file}.rb")
        Object.const_get(name)
      end
      let(:expected) { Comparison.sequentially { program.run(size) } }

      on_every_backend do
        it "gives what it gives in plain Ruby" do
          before = Ikra.config.backend
          Ikra.config.backend = backend
          result = program.run(size)
          if backend == :cuda && math.include?(file)
            expect(result.flatten).to match(expected.flatten.map { |value| value.is_a?(Float) ? be_within(1e-9).of(value) : value })
          else
            expect(Marshal.dump(result)).to eq(Marshal.dump(expected)) # 1 is not 1.0, and NaN is NaN
          end
        ensure
          Ikra.config.backend = before
        end
      end
    end
  end

  # Those without `generate` take a size, the others files.
  {
    bigrams: ["Bigrams", 30], billion_rows: ["BillionRows", 60], grep: ["Grep", 3], histogram: ["Histogram", 50], inverted_index: ["InvertedIndex", 4],
    kmeans: ["KMeansInPasses", 40], matrix_product: ["MatrixProductInPairs", 8], page_views: ["PageViews", 60], word_count: ["WordCount", 30]
  }.each do |file, (name, size)|
    describe "mapreduce/#{file}" do
      let(:program) do
        require File.join(directory, "mapreduce/#{file}.rb")
        Object.const_get(name)
      end

      on_every_backend do
        it "gives what it gives in plain Ruby" do
          before = Ikra.config.backend
          Ikra.config.backend = backend
          Dir.mktmpdir do |there|
            input = program.respond_to?(:generate) ? program.generate(there, size) : size
            expected = Comparison.sequentially { program.run(input) }
            expect(expected).not_to be_empty
            expect(Marshal.dump(program.run(input))).to eq(Marshal.dump(expected))
          end
        ensure
          Ikra.config.backend = before
        end
      end
    end
  end

  it "have a list in the README, and are all run here" do
    here = File.read(__FILE__)
    readme = File.read(File.join(directory, "../README.md"))
    programs = Dir[File.join(directory, "{.,mapreduce}", "*.rb")].map { |path| path.delete_prefix("#{directory}/").delete_prefix("./").delete_suffix(".rb") }
    expect(programs).to include("sudoku", "mapreduce/grep")
    expect(programs).to all(satisfy { |name| readme.include?("examples/#{name}.rb") })
    expect(programs - ["traffic"]).to all(satisfy { |name| here.include?("#{File.basename(name)}: [") })
  end

  it "take files on the command line" do
    Dir.mktmpdir do |there|
      File.write(File.join(there, "a.txt"), "The cat, the dog\n")
      File.write(File.join(there, "b.txt"), "a CAT")
      command = [RbConfig.ruby, "-I#{File.join(directory, "../lib")}", File.join(directory, "mapreduce/word_count.rb"), "a.txt", "b.txt"]
      output = IO.popen({ "IKRA_BACKEND" => "cpu" }, command, chdir: there, &:read)
      expect(output).to end_with("The results are the same.\n4 words, most often:\n  the: 2\n  cat: 2\n  dog: 1\n  a: 1\n")
    end
  end

  it "say on the command line what they found, how long it took, and that Ruby finds the same" do
    Dir.mktmpdir do |there|
      command = [RbConfig.ruby, "-I#{File.join(directory, "../lib")}", File.join(directory, "mandelbrot.rb"), "30"]
      output = IO.popen({ "IKRA_BACKEND" => "cpu" }, command, chdir: there, &:read)
      expect(output).to match(/^Ikra +[\d.]+ s$.*^Sequential Ruby \(.+\) +[\d.]+ s\nThe results are the same\.\nPicture: mandelbrot\.png$/m)
      expect(File.binread(File.join(there, "mandelbrot.png"))).to start_with("\x89PNG".b)
    end
  end
end
