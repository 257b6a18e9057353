# frozen_string_literal: true

require "open3"
require_relative "emulated/device"
require File.expand_path("../../benchmark/suite/suite", __dir__)
require File.expand_path("../../benchmark/suite/cuda", __dir__)
require File.expand_path("../../benchmark/operations/by_hand", __dir__)
require File.expand_path("../../benchmark/mdarray", __dir__)
require File.expand_path("../../benchmark/programs", __dir__)

# Runs the benchmark programs at a size without meaning, to keep them working.
RSpec.describe "benchmark/programs" do
  directory = File.expand_path("../../benchmark", __dir__)

  describe Columns do
    it "reads what it wrote" do
      Dir.mktmpdir do |there|
        path = File.join(there, "columns")
        described_class.new.input(:count, :int64, -3).input(:bytes, :byte, [0, 255, 7]).output(:x, :float64, [0.1, -0.0]).write(path)
        columns = described_class.read(path)
        expect([columns[:count], columns[:bytes], columns[:x].pack("d*")]).to eq([-3, [0, 255, 7], [0.1, -0.0].pack("d*")])
        expect(columns.outputs.keys).to eq([:x])
      end
    end
  end

  describe Program do
    it "lists the least sizes of all programs first" do
      places = described_class.places(%w[map himeno])
      expect(places.first(4)).to eq([["map", 100], ["himeno", 5], ["map", 1_000], ["himeno", 10]])
      expect(places.last).to eq(["map", 10_000_000])
      expect(described_class.places(%w[map himeno], steps: 1).size).to eq(2)
    end

    it "tells apart what is not the same bits" do
      map = described_class.find("map").new("map")
      expect(map.difference({ y: [0.0, 1.0] }, { y: [0.0, 1.0] })).to be_nil
      expect(map.difference({ y: [0.0, 1.0] }, { y: [-0.0, 1.0] })).to eq("y[0] is -0.0, not 0.0")
      expect(map.difference({ y: [0.0, 1.0] }, { y: [0.0, Float::NAN] }, loose: true)).to eq("y[1] is NaN, not 1.0")
      expect(map.difference({ y: [0.0, 1.0] }, { y: [0.0, 1.0 + 1e-12] }, loose: true)).to be_nil
      expect(map.difference({ y: [0.0] }, { y: [] })).to eq("y has 0 values, not 1")
    end

    it "says of every program what its folder has" do
      expect(described_class.names).to include("map", "nbody", "himeno")
      described_class.names.each do |name|
        program = described_class.find(name).new(name)
        expect(%w[ruby.rb ikra.rb c.c cuda.cu cuda.rb].reject { |file| program.has?(file) }).to eq([]), name
        expect(described_class.find(name).sizes.keys).to include(:tiny, :small, :normal)
      end
    end
  end

  it "times nothing whose result differs" do
    Dir.mktmpdir do |there|
      bench = Harness.new("wrong", keep: false, out: StringIO.new)
      wrong = Version.new("wrong", :native, :cpu, %w[ikra.rb]) do
        [{}, [RbConfig.ruby, "-r#{directory}/suite/columns", "-rjson", "-e", <<~RUBY]]
          Columns.new.output(:y, :float64, Columns.read(ARGV[0]).fetch(:y).values).write(ARGV[1])
          puts JSON.generate(seconds: [1.0])
        RUBY
      end
      suite = Suite.new(bench, versions: [Version.named("ruby"), wrong], seed: 1, out: StringIO.new)
      found = Dir.chdir(there) { suite.measure("map", 10, runs: 1) }
      expect(found[:versions].keys).to eq(["ruby"])
      expect(found[:skipped]["wrong"]).to start_with("ANOTHER RESULT: y[0] is 0.0")
      expect(suite.failed.size).to eq(1)
    end
  end

  it "times nothing where plain Ruby gives nothing to compare with" do
    suite = Suite.new(Harness.new("slow", keep: false, out: StringIO.new), versions: [Version.named("ruby"), Version.named("cpu")], seed: 1, out: StringIO.new)
    stub_const("Suite::LIMIT", 0)
    found = suite.measure("map", 10, runs: 1)
    expect(found[:versions]).to be_empty
    expect(found[:skipped]).to eq("ruby" => "stopped after 0 s", "cpu" => "plain Ruby gave nothing to compare with")
  end

  describe ProgramsBenchmark do
    # The kept targets by name, for so many seconds of traffic on CUDA.
    def targets(size, median, kernel)
      environment = ENV.to_h
      ENV.update("PROGRAMS" => "traffic")
      %w[IKRA_BENCH_TINY SIZE VERSIONS BUDGET].each { |name| ENV.delete(name) }
      allow_any_instance_of(Suite).to receive(:measure).and_return({ size: size, versions: { "cuda" => { median: median, kernel: kernel } } })
      Dir.mktmpdir do |there|
        stub_const("Harness::RESULTS", there)
        expect { described_class.new.run }.to output(/json/).to_stdout
        JSON.parse(File.read(Dir[File.join(there, "*.json")].first), symbolize_names: true)[:targets].to_h { |target| [target[:name], target.except(:name)] }
      end
    ensure
      ENV.replace(environment)
    end

    it "holds a program to the milliseconds that are promised of it: of its kernel, and of all else" do
      expect(targets(1_000_000, 0.1275, 0.0025)).to eq("traffic: cuda: kernel" => { value: 2.5, unit: "ms", at_most: 2.4, met: false },
                                                       "traffic: cuda: all of a call but the kernel" => { value: 125.0, unit: "ms", at_most: 100, met: false })
      expect(targets(1_000_000, 0.0625, 0.002).values.map { |target| target[:met] }).to eq([true, true])
    end

    it "promises no milliseconds at other sizes" do
      expect(targets(50_000, 0.1, 0.001)).to eq({})
    end
  end

  # Each version is loaded over the one before: all define #compute.
  def run_in_ruby(program, input, version = "ruby.rb")
    silently { load program.file(version) }
    state = program.state(input)
    program.outputs(state, program.compute(state))
  end

  def by_hand(program, launches)
    silently { load program.file("cuda.rb") }
    program.compute(launches)
  end

  def silently
    before = $VERBOSE
    $VERBOSE = nil
    yield
  ensure
    $VERBOSE = before
  end

  Program.names.each do |name|
    describe name do
      on_every_backend do
        it "gives what plain Ruby gives", slow: true do
          program = Program.find(name).new(name)
          input = program.input(Program.find(name).sizes[:tiny], Random.new(RSpec.configuration.seed))
          expected = run_in_ruby(program, input)
          before = Ikra.config.backend
          Ikra.config.backend = backend
          expect(program.difference(expected, run_in_ruby(program, input, "ikra.rb"))).to be_nil
        ensure
          Ikra.config.backend = before
        end
      end
    end

    describe "the CUDA of #{name}, written by hand" do
      program = Program.find(name).new(name)

      it "gives what plain Ruby gives, where a C++ compiler runs it on the host", slow: true do
        input = program.input(Program.find(name).sizes[:tiny], Random.new(RSpec.configuration.seed))
        ruby = run_in_ruby(program, input)
        Dir[program.file("cuda*.cu")].each do |source|
          Dir.mktmpdir do |there|
            device = EmulatedDevice.new(source, there)
            launches = Launches.new(device, device.kernels, input, tuned: !source.end_with?("/cuda.cu"))
            launches.restore
            launches.upload
            by_hand(program, launches)
            launches.download
            expect(program.difference(ruby, launches.outputs.outputs)).to(be_nil, source)
          end
        end
      end

      it "is accepted by NVRTC" do
        Dir[program.file("cuda*.cu")].each do |text|
          expect(Device.compile(File.read(text), 90, folder: program.folder)).to start_with("\x7FELF".b)
        end
      rescue Device::Failed => e
        raise unless e.message.start_with?("no libnvrtc")

        skip "NVRTC is not installed"
      end
    end
  end

  describe ByHandOperations do
    def inputs(operation)
      case operation
      when /mandelbrot/ then [Ikra::MDArray[20]]
      when "matmul" then Array.new(2) { Ikra::MDArray.rand(21, 21) }
      when "stencil" then [Ikra::MDArray.rand(21, 21)]
      else [Ikra::MDArray.rand(1000).to(operation.end_with?("f32") ? :f32 : :f64)]
      end
    end

    def expected(operation, one, other = nil)
      benchmark = MDArrayBenchmark.allocate
      case operation
      when "mandelbrot" then benchmark.__send__(:mandelbrot, 20)
      when "mandelbrot, f32" then benchmark.__send__(:mandelbrot, 20, precision: :f32)
      when "matmul" then one.matmul(other)
      when "stencil" then benchmark.__send__(:blurred, one)
      when "sum" then Ikra::MDArray[one.sum]
      else one * 2.5 + one * 0.5 * one
      end
    end

    it "computes what Ikra does, where a C++ compiler runs it on the host", slow: true do
      Dir.mktmpdir do |there|
        device = EmulatedDevice.new(described_class::SOURCE, there)
        by_hand = described_class.new(device, device.kernels)
        described_class::NAMES.each do |operation|
          given = inputs(operation)
          work = by_hand.prepare(operation, given)
          work.launch.call
          # The order of additions differs.
          apart = by_hand.download(work).combine(expected(operation, *given).flatten) { |x, y| (x - y).abs }.max
          expect(apart).to be <= 1e-12, operation
        end
      end
    end

    it "is accepted by NVRTC" do
      expect(Device.compile(File.read(described_class::SOURCE), 90)).to start_with("\x7FELF".b)
    rescue Device::Failed => e
      raise unless e.message.start_with?("no libnvrtc")

      skip "NVRTC is not installed"
    end
  end

  others = %w[auto calls ceilings compile concurrency enumerable mapreduce mdarray micro/layout micro/objects operations operations_host phrasings residency scaling transfers]
  others.each do |name|
    it "has #{name}.rb beside them, which runs", slow: true do
      environment = { "IKRA_BENCH_TINY" => "1", "IKRA_BENCH_BACKENDS" => "cpu" }
      output, status = Open3.capture2e(environment, RbConfig.ruby, "-I#{File.dirname(directory)}/lib", File.join(directory, "#{name}.rb"))
      expect(status).to be_success, output
      expect(output).not_to include("MISSED")
    end
  end

  it "are all known to rake benchmark" do
    known = File.read(File.join(directory, "../Rakefile"))[/^BENCHMARKS = %w\[(.*)\]/, 1].split
    expect(known).to match_array([*others, "programs"])
  end

  it "are all run here" do
    files = Dir[File.join(directory, "{,micro/}*.rb")].select { |path| File.read(path).include?("if $PROGRAM_NAME == __FILE__") }
    names = files.map { |path| path.delete_prefix("#{directory}/").delete_suffix(".rb") } - ["programs"]
    expect(names).to match_array(others)
  end

  it "give the same in plain Ruby, with Ikra, and in C", slow: true do
    environment = { "IKRA_BENCH_TINY" => "1", "VERSIONS" => "ruby;cpu;cpu, MDArray;c, one thread;c, OpenMP;c, OpenMP, tuned" }
    output, status = Open3.capture2e(environment, RbConfig.ruby, "-I#{File.dirname(directory)}/lib", File.join(directory, "programs.rb"))
    expect(status).to be_success, output
    expect(output.scan(/^  cpu  /).size).to eq(Program.names.size)
    expect(output.scan(/^  c, OpenMP, tuned  /).size).to eq(Dir[File.join(Program::HERE, "*/c_tuned.c")].size)
    expect(output).not_to include("skipped")
  end
end
