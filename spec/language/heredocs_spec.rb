# frozen_string_literal: true

require "tempfile"

# Methods with random heredocs, made anew for each seed.
module Heredocs
  PIECES = ["a", " ", "  ", "\t", "\n", "\n", "\n    ", "\n  ", "\n\t", "\#{x}", "\#{x + 1}", "\\t", "\\n", "\\s", "é", "\\\\", "#", "\\u00e9", "\#{[x, 2].sum}", "\#@y", "\"", "'"].freeze
  REFUSED = /kernels do not know an indented heredoc with interpolation and a line of blanks alone/

  class Note
    def initialize = @y = 7

    def to(x)
      <<~TEXT
        Dear #{x},
          we owe you #{x * 2}   Euros\tor so.

        #{@y} #{x.even? ? "even" : "odd"}
      TEXT
    end
  end

  # The text of a class whose methods m0, m1, … each have a heredoc.
  def self.text(count, random)
    methods = Array.new(count) do |i|
      pieces = Array.new(random.rand(1..14)) { PIECES.sample(random:) }.join
      "    def m#{i}(x)\n      <<~E\n#{" " * random.rand(5)}#{pieces}\n#{"  " * random.rand(4)}\#{x}#{PIECES.sample(random:)}\n      E\n    end\n"
    end
    "module Heredocs\n  class Made\n    def initialize = @y = 7\n\n#{methods.join("\n")}  end\nend\n"
  end
end

RSpec.describe "Heredocs" do
  on_every_backend do
    it "lose their indentation" do
      letter = Heredocs::Note.new
      expect([1, 22].pmap(backend:) { |x| letter.to(x) }).to eq([1, 22].map { |x| letter.to(x) })
    end
  end

  it "are Ruby's, whatever stands in them" do
    count = 60
    file = Tempfile.create(["heredocs", ".rb"])
    file.write(Heredocs.text(count, Random.new(5)))
    calls = Array.new(count) { |i| "->(made, list) { list.pmap(backend: :reference) { |x| made.m#{i}(x) } }" }
    file.write("Heredocs::CALLS = [\n#{calls.join(",\n")}\n].freeze\n")
    file.close
    load file.path
    made = Heredocs::Made.new
    refused = Heredocs::CALLS.each_with_index.count do |call, i|
      expect(call.(made, [1, 22])).to eq([1, 22].map { |x| made.public_send(:"m#{i}", x) })
      false
    rescue Ikra::CompileError => e
      expect(e.message).to match(Heredocs::REFUSED)
      true
    end
    expect(refused).to be < count / 2
  ensure
    File.unlink(file.path) if file
  end
end
