# frozen_string_literal: true

require "open3"
require "tmpdir"
require File.expand_path("../../benchmark/suite/suite", __dir__)

RSpec.describe Harness do
  around do |example|
    before = ENV.to_h
    example.run
  ensure
    ENV.replace(before)
  end

  before { %w[IKRA_BENCH_TINY SIZE PROGRAMS VERSIONS BUDGET THINGS].each { |name| ENV.delete(name) } }

  def harness(**options) = described_class.new("some", out: @out = StringIO.new, **options)

  def written(bench)
    Dir.mktmpdir do |there|
      stub_const("Harness::RESULTS", there)
      path = bench.finish
      return path && [File.basename(path), JSON.parse(File.read(path))]
    end
  end

  describe ".scale" do
    it "is tiny by either variable, and then nothing is kept, and no target is missed" do
      [%w[SIZE tiny], %w[IKRA_BENCH_TINY 1]].each do |name, value|
        ENV[name] = value
        bench = harness
        bench.target("as fast as light", 0.5, at_least: 1.0)
        expect([bench.tiny?, bench.size(:things, 1000, tiny: 3), written(bench)]).to eq([true, 3, nil])
        expect(@out.string).to include("the numbers mean nothing")
        expect(@out.string).not_to include("MISSED")
        ENV.delete(name)
      end
    end

    it "is small for the benchmarks that have such sizes, whose results say so" do
      ENV["SIZE"] = "small"
      name, record = written(harness(small: true))
      expect([name, record["size"]]).to match([/\Asome-small-\d/, "small"])
      name, record = written(harness)
      expect([name, record["size"]]).to match([/\Asome-\d/, "normal"])
      expect(@out.string).to include("no sizes for SIZE=small")
    end

    it "is nothing else" do
      ENV["SIZE"] = "big"
      expect { described_class.scale }.to raise_error(SystemExit).and output("SIZE: no big: there are tiny, small, normal\n").to_stderr
    end
  end

  it "says when the budget is spent" do
    expect(harness).not_to be_spent
    ENV["BUDGET"] = "0"
    expect(harness).to be_spent
  end

  describe ".chosen" do
    it "is all where the environment names none, and the named ones in their order" do
      expect(Program.chosen).to eq(Program.names)
      ENV["PROGRAMS"] = "sum, map"
      expect(Program.chosen).to eq(%w[sum map])
      expect(Version.chosen).to eq(Version.all)
      ENV["VERSIONS"] = "cpu, MDArray; ruby"
      expect(Version.chosen.map(&:name)).to eq(["cpu, MDArray", "ruby"])
    end

    it "says in one line what there is where it names others" do
      ENV["PROGRAMS"] = "map,foo"
      expect { Program.chosen }.to raise_error(SystemExit).and output(/\APROGRAMS: no "foo": there are "black_scholes" .*"traffic"[^\n]*,[^\n]*\n\z/).to_stderr
      ENV["VERSIONS"] = "cpi"
      expect { Version.chosen }.to raise_error(SystemExit).and output(/\AVERSIONS: no "cpi": there are "ruby" .*"c, one thread" [^\n]*;[^\n]*\n\z/).to_stderr
    end

    it "goes for every benchmark of programs" do
      %w[programs scaling auto].each do |name|
        output, status = Open3.capture2e({ "PROGRAMS" => "foo" }, RbConfig.ruby, File.expand_path("../../benchmark/#{name}.rb", __dir__))
        expect([status.success?, output.lines.size]).to eq([false, 1]), output
      end
    end
  end
end
