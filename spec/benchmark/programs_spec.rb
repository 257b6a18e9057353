# frozen_string_literal: true

require "open3"
require File.expand_path("../../benchmark/suite/suite", __dir__)

# The benchmark programs at a size at which their numbers mean nothing, so that none of them rots.
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

  it "give the same in plain Ruby, with Ikra, and in C", slow: true do
    environment = { "IKRA_BENCH_TINY" => "1", "VERSIONS" => "ruby;cpu;c, one thread;c, OpenMP" }
    output, status = Open3.capture2e(environment, RbConfig.ruby, "-I#{File.dirname(directory)}/lib", File.join(directory, "programs.rb"))
    expect(status).to be_success, output
    expect(output.scan(/^  cpu  /).size).to eq(Program.names.size)
    expect(output).not_to include("skipped")
  end
end
