# frozen_string_literal: true

require "open3"
require "tmpdir"
require_relative "../../benchmark/mapreduce"

RSpec.describe "benchmark/mapreduce" do
  # White space of all kinds, long words, characters beyond ASCII, and no line feed at the end.
  odd = "  a\tb \r\n\n#{"long" * 30} é 日本\f#{"x" * 7} #{"x" * 8} #{"x" * 9} a\v end"
  inputs = { words: [Inputs.words(20_000), odd, "", "one"], histogram: [Inputs.pixels(10_000), "abc" * 50], pages: [Inputs.pages(20_000)], grep: [Inputs.logs(20_000)] }

  def run(command, kind, text, environment = {})
    Dir.mktmpdir do |folder|
      path = File.join(folder, "input")
      File.binwrite(path, text)
      output, status = Open3.capture2e(environment, *command, kind.to_s, path, "1")
      expect(status).to be_success, output
      JSON.parse(output.lines.last, symbolize_names: true).slice(:keys, :sum, :hash)
    end
  end

  def expected(kind, text) = Inputs.checksum(MapReducePrograms.public_send("#{kind}_in_ruby", text))

  it "has inputs that are the same each time, and words that all differ" do
    expect(Inputs.words(5_000)).to eq(Inputs.words(5_000))
    expect(Inputs.cut("ab\ncd\nef", 7)).to eq("ab\ncd\n")
    expect((1..5_000).map { |rank| Inputs.word(rank) }.uniq.size).to eq(5_000)
    expect((1..100).map { |place| Inputs.rank(place, 50, 101) }.minmax).to eq([1, 48])
  end

  it "has a checksum that any other key or number changes, and no other order" do
    counts = { "a" => 1, "b" => 2, 3 => 4 }
    expect(Inputs.checksum(counts)).to eq(Inputs.checksum(counts.to_a.reverse.to_h))
    others = [{ "a" => 2, "b" => 1, 3 => 4 }, { "a" => 1, "c" => 2, 3 => 4 }, { "a" => 1, "b" => 2, 4 => 4 }]
    others.each { |other| expect(Inputs.checksum(other)[:hash]).not_to eq(Inputs.checksum(counts)[:hash]) }
  end

  it "counts in C what Ruby does, with any number of threads", slow: true do
    skip "gcc is not installed" unless system("gcc", "--version", out: File::NULL, err: File::NULL)

    Dir.mktmpdir do |folder|
      built = File.join(folder, "by_hand")
      expect(system(*MapReduceBaselines::C, "-Wall", "-Wextra", "-Werror", File.join(MapReduceBaselines::FOLDER, "by_hand.c"), "-o", built)).to be(true)
      inputs.each do |kind, texts|
        texts.product([1, 2, 5]) { |text, threads| expect(run([built], kind, text, "OMP_NUM_THREADS" => threads.to_s)).to eq(expected(kind, text)), "#{kind}, #{threads} threads" }
      end
    end
  end

  it "counts in Python what Ruby does" do
    skip "Python is not installed" unless system("python3", "--version", out: File::NULL, err: File::NULL)

    command = ["python3", File.join(MapReduceBaselines::FOLDER, "peers.py"), "counter"]
    inputs.each { |kind, texts| expect(run(command, kind, texts.first)).to eq(expected(kind, texts.first)), kind.to_s }
  end
end
