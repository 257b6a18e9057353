# frozen_string_literal: true

RSpec.describe "backend: :auto" do
  before { skip "no g++ on the PATH" unless system("g++", "--version", out: File::NULL, err: File::NULL) }

  around { |example| Dir.mktmpdir("ikra-auto") { |folder| (@folder = folder) && example.run } }

  # Runs a program on a machine with a simulated GPU: one thread of the host.
  def on_a_device(program) = run_ruby(<<~RUBY + program, environment: StandIn.environment(@folder), folder: @folder)
    Ikra.config.backend = :auto
    LIST = Array.new(512) { |i| i * 0.5 }

    def work(list, turns)
      list.pmap do |x|
        turns.times { |i| x = x * 0.75 + i }
        x
      end
    end

    def backend(turns) = Ikra.profile { work(LIST, turns) }.sections.last.backend
  RUBY

  it "tries the GPU once a block has cost enough on the CPU, and says what it goes by" do
    expect(on_a_device(<<~RUBY)).to eq ""
      tried = Array.new(60) { backend(100_000) }
      puts "the first call ran on \#{tried[0]}" unless tried[0] == :cpu
      puts "the GPU was never tried" unless tried.include?(:cuda)
      reason = Ikra.explain { work(LIST, 100_000) }.to_s
      puts reason unless reason.match?(/going by calls before, about \\d+\\.\\d+ ms on the CPU and \\d+\\.\\d+ ms on the GPU/)
    RUBY
  end

  it "leaves a block that costs nothing on the CPU" do
    expect(on_a_device(<<~RUBY)).to eq ""
      tried = Array.new(200) { backend(3) }.uniq
      puts tried.inspect unless tried == [:cpu]
    RUBY
  end
end
