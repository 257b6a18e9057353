# frozen_string_literal: true

require "json"
require "rbconfig"

# The versions of a program that the suite knows: in which files each is, whether it can run here, and by which command.
#
# Every command is given INPUT OUTPUT RUNS, writes the outputs as columns and prints JSON as its last line; the files in this folder say which.
class Version
  HERE = __dir__
  BUILT = File.expand_path("../../tmp/benchmark/programs", HERE)
  C_FLAGS = %w[-O3 -march=native -ffp-contract=off -fopenmp -std=gnu11 -Wall].freeze

  # kind: :ruby, :ikra, :native or :python. device: :cpu or :gpu. loose: its results are compared within Program#loose_tolerance.
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

  # Lines of the program's own files that are neither blank nor comments.
  def lines(program)
    files.select { |file| program.has?(file) }.sum do |file|
      File.foreach(program.file(file)).count { |line| !line.match?(%r{\A\s*(//|#(?!include|pragma|define|ifdef|ifndef|else|endif)|\z)}) }
    end
  end

  # Environment, and command without INPUT OUTPUT RUNS; or a String that says why it cannot run here.
  def command(bench, program) = @how.call(bench, program)

  # All of them, plain Ruby first.
  def self.all
    @all ||= [ruby, ikra("cpu", "ikra.rb"), ikra("cuda", "ikra.rb"), ikra("cpu", "md_array.rb"), ikra("cuda", "md_array.rb"),
              c("one thread") { 1 }, c("OpenMP") { |bench| bench.cpus.size }, by_hand("nvcc"), by_hand("nvrtc"),
              python("numba", :cpu), python("numba_cuda", :gpu), python("cupy", :gpu), python("jax", :gpu)].freeze
  end

  def self.named(name) = all.find { |version| version.name == name } || raise(ArgumentError, "no version #{name}: there are #{all.map(&:name).join(", ")}")

  class << self
    private

    def ruby
      new("ruby", :ruby, :cpu, %w[model.rb ruby.rb]) do |bench, program|
        [{}, [RbConfig.ruby, *bench.yjit, File.join(HERE, "run.rb"), program.name, "ruby"]]
      end
    end

    def ikra(backend, file)
      name = file == "ikra.rb" ? backend : "#{backend}, MDArray"
      device = backend == "cuda" ? :gpu : :cpu
      new(name, :ikra, device, ["model.rb", file]) do |bench, program|
        next "no GPU" if device == :gpu && !bench.gpu?

        [{ "IKRA_BACKEND" => backend }, [RbConfig.ruby, "-I#{bench.ikra}", File.join(HERE, "run.rb"), program.name, File.basename(file, ".rb")]]
      end
    end

    def c(how, &threads)
      new("c, #{how}", :native, :cpu, %w[c.c]) do |bench, program|
        built = File.join(BUILT, program.name)
        sources = [program.file("c.c"), File.join(HERE, "program.h")]
        next "gcc is not installed" unless bench.build(built, sources, "gcc", *C_FLAGS, "-I#{HERE}", sources.first, "-o", built, "-lm")

        [{ "OMP_NUM_THREADS" => threads.call(bench).to_s, "OMP_PROC_BIND" => "true" }, [built]]
      end
    end

    def by_hand(compiler)
      new("cuda by hand, #{compiler}", :native, :gpu, %w[cuda.rb cuda.cu]) do |bench, program|
        next "no GPU" unless bench.gpu?
        next "nvcc is not installed" if compiler == "nvcc" && !bench.tool?("nvcc")

        [{}, [RbConfig.ruby, File.join(HERE, "cuda.rb"), program.name, compiler]]
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
