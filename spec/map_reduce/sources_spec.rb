# frozen_string_literal: true

require "pathname"
require "stringio"

RSpec.describe "Ikra.lines, Ikra.bytes" do
  include ReduceAsRuby::Examples

  texts = ["", "\n", "a", "a\n", "a\nb", "a\r\nb\rc\r", "\n\na\n\n\nb\n\n", "ü\nßx\n", "a\xFFb\n\x80\n", "one\0two\nthree"]

  it "gives lines as each_line does" do
    texts.each do |text|
      file(text) do |path|
        ["\n", "", "a", "\n\n", nil].product([false, true]).each do |separator, chomp|
          expected = File.foreach(path, separator, chomp: chomp).to_a
          found = Ikra.lines(path, separator, chomp: chomp).to_a
          expect(found).to eq(expected), "#{text.inspect} by #{separator.inspect}, #{chomp}: #{found.inspect}"
          expect(found.map(&:encoding)).to eq expected.map(&:encoding)
          # Ruby's own method does not end there.
          next if separator == "\n\n"

          expect(Ikra.lines(StringIO.new(text), separator, chomp: chomp).to_a).to eq StringIO.new(text).each_line(separator, chomp: chomp).to_a
        end
      end
    end
  end

  it "gives slices of bytes as each_slice does" do
    texts.each do |text|
      file(text) do |path|
        expect(Ikra.bytes(path).to_a).to eq text.bytes
        (1..4).each { |count| expect(Ikra.bytes(path, count).to_a).to eq text.bytes.each_slice(count).to_a }
      end
    end
  end

  it "ends records with their files" do
    file("a\nb") do |one|
      file("c\nd\n") do |two|
        expect(Ikra.lines([one, two]).to_a).to eq ["a\n", "b", "c\n", "d\n"]
        expect(Ikra.lines([one, StringIO.new("x"), two], chomp: true).to_a).to eq %w[a b x c d]
        expect(Ikra.bytes([one, two], 2).to_a).to eq [[97, 10], [98], [99, 10], [100, 10]]
      end
    end
  end

  it "reads paths, inputs and pipes" do
    file("a\nb\n") do |path|
      expect(Ikra.lines(Pathname(path)).count).to eq 2
      File.open(path) { |input| expect(Ikra.lines(input).to_a).to eq %W[a\n b\n] }
      IO.popen(["cat", path]) { |input| expect(Ikra.lines(input, chomp: true).to_a).to eq %w[a b] }
    end
  end

  it "reads long inputs in pieces" do
    stub_const("Ikra::Source::SLAB", 12)
    stub_const("Ikra::Source::HELD", 0)
    text = Array.new(50) { |i| "#{"x" * (i % 17)}#{i}\n" }.join
    expect(Ikra.lines(text: text).to_a).to eq text.lines
    expect(Ikra.lines(text: text, chomp: true).map_reduce(:+) { |line, out| out.emit(line[0], line.size) })
      .to eq(text.lines(chomp: true).group_by { |line| line[0] }.transform_values { |lines| lines.sum(&:size) })
    expect(Ikra.bytes(nil, 5, text: text).to_a).to eq text.bytes.each_slice(5).to_a
    bytes = Array.new(120) { |i| i * 7 % 256 }
    (1..6).each { |count| expect(Ikra.bytes(nil, count, text: bytes.pack("C*")).map { |slice| slice.sum }.to_a).to eq bytes.each_slice(count).map(&:sum) }
  end

  it "begins chains that count, group and reduce" do
    text = "the cat\nthe dog\na cat\n"
    lines = Ikra.lines(text: text, chomp: true)
    expect(lines.select { |line| line.start_with?("the") }.map_reduce(:+) { |line, out| out.emit(line[4], line.size) }).to eq("c" => 7, "d" => 7)
    expect(lines.flat_map { |line| [line[0], line[1]] }.map_reduce(:+) { |char, out| out.emit(char, 1) }).to eq("t" => 2, "h" => 2, "a" => 1, " " => 1)
    pixels = [1, 2, 3, 1, 5, 6].pack("C*")
    counts = Ikra.bytes(nil, 3, text: pixels).map_reduce(:+, order: :key) do |(r, g, b), out|
      out.emit(r, 1)
      out.emit(256 + g, 1)
      out.emit(512 + b, 1)
    end
    expect(counts.to_a).to eq [[1, 2], [258, 1], [261, 1], [515, 1], [518, 1]]
  end

  it "refuses what kernels do not know" do
    expect { Ikra.lines }.to raise_error(ArgumentError, /a source or text:/)
    expect { Ikra.lines("a", text: "b") }.to raise_error(ArgumentError, /a source or text:/)
    expect { Ikra.lines(text: 1) }.to raise_error(TypeError, /no String/)
    expect { Ikra.lines("/no/such/file") }.to raise_error(Errno::ENOENT)
    expect { Ikra.bytes(nil, 0, text: "a") }.to raise_error(ArgumentError, "invalid slice size")
    expect { Ikra.lines(text: "a\n".encode("UTF-16LE")) }.to raise_error(ArgumentError, /UTF-16LE: kernels know/)
    file("a") { |path| File.open(path, "rb:utf-16le") { |input| expect { Ikra.lines(input) }.to raise_error(ArgumentError, /UTF-16LE/) } }
  end
end
