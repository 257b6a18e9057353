# frozen_string_literal: true

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
