# frozen_string_literal: true

RSpec.describe "The libraries of a simulated GPU" do
  before { skip "no g++ on the PATH" unless system("g++", "--version", out: File::NULL, err: File::NULL) }

  it "stay where a child of fork ends" do
    files = -> { Dir.children(StandIn.libraries).sort }
    before = files.call
    Process.wait(fork { exit })
    expect(files.call).to eq(before).and include("libcuda.so.1")
  end
end
