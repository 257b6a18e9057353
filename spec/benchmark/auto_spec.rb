# frozen_string_literal: true

require "tmpdir"
require_relative "../../benchmark/auto"

RSpec.describe AutoBenchmark::Choice do
  def choice(cpu, cuda, auto, *backends) = described_class.new("map", 100, cpu, cuda, auto, backends)

  it "is right where it ended with the faster backend, whatever the run in which it chose took" do
    expect(choice(1.0, 3.0, 1.4, "cpu")).to be_right
    expect(choice(3.0, 1.0, 1.4, "cuda")).to be_right
  end

  it "is wrong where the other backend is faster by more than runs differ" do
    expect(choice(1.0, 1.2, 1.2, "cuda")).not_to be_right
    expect(choice(1.0, 1.05, 1.2, "cuda")).to be_right
    expect(choice(1.0, 1.2, 1.2, "cuda").to_s).to eq("map, 100: cpu is faster (cpu 1.000 s, cuda 1.200 s), auto ended with cuda (1.200 s)")
  end

  it "is judged by what it took where blocks of a program ended on different ones" do
    expect(choice(1.0, 3.0, 1.4, "cpu", "cuda")).not_to be_right
    expect(choice(1.0, 3.0, 0.7, "cpu", "cuda")).to be_right
  end
end

RSpec.describe AutoBenchmark do
  # For each size the seconds on either backend and of +auto+, of which the host takes a quarter of a second, and the
  # last backend of +auto+.
  def measured(cpu, cuda, auto, *backends)
    versions = { "cpu" => [cpu], "cuda" => [cuda], "auto" => [auto, { backends: backends }] }
    { versions: versions.compact.transform_values { |time, more| { median: time, marshalling: 0.25 }.merge(more || {}) if time }.compact }
  end

  # The record of these measurements of a program's sizes.
  def record(program, *measurements)
    environment = ENV.to_h
    ENV.update("PROGRAMS" => program, "BUDGET" => "100")
    ENV.delete("IKRA_BENCH_TINY")
    ENV.delete("SIZE")
    allow_any_instance_of(Suite).to receive(:measure) { measurements.shift || { versions: {} } }
    Dir.mktmpdir do |there|
      stub_const("Harness::RESULTS", there)
      expect { described_class.new.run }.to output(/Targets|json/).to_stdout
      return JSON.parse(File.read(Dir[File.join(there, "auto-*.json")].first), symbolize_names: true)
    end
  ensure
    ENV.replace(environment)
  end

  it "counts the sizes at which auto was right, and what it lost by being wrong at the others" do
    found = record("map", measured(1.0, 2.0, 1.0, "cpu"), measured(2.0, 1.0, 1.0, "cuda"), measured(1.0, 2.0, 2.0, "cuda"), measured(2.0, 1.0, 2.0, "cpu"))
    target = found[:targets].fetch(0)
    expect(target).to include(name: "auto picks the faster backend", value: 50.0, at_least: 95, met: false)
    expect(found[:choices][:all].map { |choice| choice.values_at(:size, :right) }).to eq([[100, true], [1_000, true], [10_000, false], [100_000, false]])
    expect(found[:values][:"time lost where it was wrong, of all"][:value]).to be_within(1e-9).of(50.0)
    expect(found[:notes].grep(/auto ended with/).size).to eq(2)
  end

  it "meets the target where one of twenty is wrong" do
    sizes = Program.find("nbody").sizes.fetch(:scaling).size + Program.find("boids").sizes.fetch(:scaling).size + Program.find("map").sizes.fetch(:scaling).size
    right = Array.new(sizes - 1) { measured(1.0, 2.0, 1.0, "cpu") }
    expect(record("nbody,boids,map", *right, measured(2.0, 1.0, 2.0, "cpu"))[:targets].first).to include(met: true, value: (sizes - 1) * 100.0 / sizes)
  end

  it "gives all three the same time for what is the host's" do
    slow = measured(1.0, 2.0, 1.0, "cpu")
    slow[:versions]["auto"].update(median: 1.5, marshalling: 0.75)
    expect(record("map", slow)[:choices][:all].first).to include(cpu: 1.0, cuda: 2.0, auto: 1.0, right: true)
  end

  it "concludes nothing of sizes at which a backend is missing" do
    found = record("map", measured(1.0, nil, 1.0, "cpu"))
    expect([found[:targets], found[:choices]]).to eq([[], nil])
  end
end
