# frozen_string_literal: true

require "json"
require "rbconfig"
require_relative "../harness"

# The versions of a program: in which files each is, whether it can run here, and by which command.
#
# Every command gets INPUT OUTPUT RUNS, writes the outputs as columns and prints JSON as its last line. The files in
# this folder document it.
class Version
  HERE = __dir__
  BUILT = File.expand_path("../../tmp/benchmark/programs", HERE)
  C_FLAGS = %w[-O3 -march=native -ffp-contract=off -fopenmp -std=gnu11 -Wall].freeze

  # kind: :ruby, :ikra, :native or :python. device: :cpu or :gpu. loose: whether its results are compared within
  # Program#loose_tolerance.
  attr_reader :name, :kind, :device, :files

  def initialize(name, kind, device, files, loose: false, &how)
    @name = name
    @kind = kind
    @device = device
    @files = files
    @loose = loose
    @how = how
  end

  def loose? = @loose
  def there?(program) = program.has?(files.last)

  # The number of lines of the program's own files without blank lines and comments. In Ruby only the model and #compute
  # count. Code that converts inputs and outputs does not.
  def lines(program)
    paths = [*files, *headers(program)].flat_map { |file| file == "model.rb" ? program.model : program.file(file) }
    paths.sum do |path|
      text = File.readlines(path)
      text = text.drop_while { |line| !line.start_with?("  def compute") }[0...-1] if path.end_with?(".rb") && !program.model.include?(path)
      text.count { |line| !line.match?(%r{\A\s*(//|#(?!include|pragma|define|ifdef|ifndef|else|endif)|\z)}) }
    end
  end

  # The common files of versions in C and CUDA.
  def headers(program) = kind == :native ? Dir[program.file("*.h")].map { |path| File.basename(path) } : []

  # Environment, and command without INPUT OUTPUT RUNS; or a String that says why it cannot run here.
  def command(bench, program) = @how.call(bench, program)

  # All versions, plain Ruby first.
  def self.all
    @all ||= [ruby, ikra("cpu", "ikra.rb"), ikra("cuda", "ikra.rb"), ikra("cpu", "md_array.rb"), ikra("cuda", "md_array.rb"),
              c("one thread") { 1 }, c("OpenMP") { |bench| bench.cpus.size }, c("OpenMP, tuned", "c_tuned.c") { |bench| bench.cpus.size },
              by_hand("nvcc"), by_hand("nvrtc"), by_hand("nvcc", "cuda_tuned.cu"), by_hand("nvrtc", "cuda_tuned.cu"),
              python("numba", :cpu), python("numba_cuda", :gpu), python("cupy", :gpu), python("jax", :gpu)].freeze
  end

  def self.named(name) = all.find { |version| version.name == name } || raise(ArgumentError, "no version #{name.inspect}: there are #{all.map { |version| version.name.inspect }.join(" ")}")

  # The versions that VERSIONS names, else all. Names have commas in them, so semicolons separate them.
  def self.chosen = Harness.chosen("VERSIONS", all.map(&:name), separator: ";").map { |name| named(name) }

  # Ikra where it chooses the backend itself. It is timed after so many seconds of calls.
  def self.auto(settle:)
    ikra("auto", "ikra.rb", "SETTLE" => settle.to_s)
  end

  class << self
    private

    def ruby
      new("ruby", :ruby, :cpu, %w[model.rb ruby.rb]) do |bench, program|
        [{}, [RbConfig.ruby, *bench.yjit, File.join(HERE, "run.rb"), program.name, "ruby"]]
      end
    end

    def ikra(backend, file, environment = {})
      name = file == "ikra.rb" ? backend : "#{backend}, MDArray"
      device = backend == "cpu" ? :cpu : :gpu
      new(name, :ikra, device, ["model.rb", file]) do |bench, program|
        next "no GPU" if device == :gpu && !bench.gpu?

        [{ "IKRA_BACKEND" => backend, **environment }, [RbConfig.ruby, "-I#{bench.ikra}", File.join(HERE, "run.rb"), program.name, File.basename(file, ".rb")]]
      end
    end

    def c(how, file = "c.c", &threads)
      new("c, #{how}", :native, :cpu, ["c.c", file].uniq) do |bench, program|
        built = File.join(BUILT, "#{program.name}_#{File.basename(file, ".c")}")
        sources = [program.file(file), File.join(HERE, "program.h"), *Dir[program.file("*.{c,h}")]]
        next "gcc is not installed" unless bench.build(built, sources, "gcc", *C_FLAGS, "-I#{HERE}", sources.first, "-o", built, "-lm")

        [{ "OMP_NUM_THREADS" => threads.call(bench).to_s }, [built]]
      end
    end

    def by_hand(compiler, file = "cuda.cu")
      new("cuda by hand, #{compiler}#{", tuned" if file != "cuda.cu"}", :native, :gpu, ["cuda.rb", "cuda.cu", file].uniq) do |bench, program|
        next "no GPU" unless bench.gpu?
        next "nvcc is not installed" if compiler == "nvcc" && !bench.tool?("nvcc")

        [{}, [RbConfig.ruby, File.join(HERE, "cuda.rb"), program.name, compiler, file]]
      end
    end

    # The Python of BENCHMARK_PYTHON, else of `rake benchmark:python`, else python3.
    def python(library, device)
      new(library, :python, device, ["#{library}.py"], loose: true) do |bench, program|
        next "no GPU" if device == :gpu && library != "jax" && !bench.gpu?
        next "Python is not installed" unless (python = bench.python)

        [{ "NUMBA_NUM_THREADS" => bench.cpus.size.to_s, "XLA_PYTHON_CLIENT_PREALLOCATE" => "false" }, [python, File.join(HERE, "python.py"), library, program.file("#{library}.py")]]
      end
    end
  end
end
