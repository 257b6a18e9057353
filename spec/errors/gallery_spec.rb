# frozen_string_literal: true

# The messages of programs that Ikra cannot run: `gallery.txt` holds programs and their messages, word for word.
# UPDATE_SNAPSHOTS=1 writes the messages as they are now; the diff must be reviewed.
module Gallery
  FILE = File.join(__dir__, "gallery.txt")
  LINE = "#{"=" * 100}\n"

  class Board
    attr_accessor :best

    def initialize = @best = 0
  end

  class Named
    attr_reader :name, :size

    def initialize(name, size)
      @name = name
      @size = size
    end
  end

  class Pair
    def to_ary = [1, 2]
  end

  class Text < String
  end

  class Ghost
    def method_missing(*) = 5
    def respond_to_missing?(*) = true
  end

  class Chatty
    def method_missing(name, *) = name.succ
    def respond_to_missing?(*) = true
  end

  SEEN = {}.freeze

  class Lenient
    class << self
      attr_accessor :limit

      def const_missing(_name) = 7
    end
  end

  class Tools
    def all(*list) = list.size
    def options(**list) = list.size
    def down(count, &block) = count.zero? ? yield(count) : down(count - 1, &block)
  end

  class << self
    # Pairs of program and message.
    def entries
      @entries ||= File.read(FILE).split(LINE).drop(1).each_slice(2).to_a
    end

    def message(program)
      board = Board.new
      latin = "text".encode("ISO-8859-1")
      list = [1, 2, 3]
      hash = { a: 1 }
      big = 2**70
      code = proc { |x| x }
      eval(program, binding, "example.rb", 1)
      "no error: #{[board, latin, list, hash, big, code].size}\n"
    rescue Ikra::CompileError => e
      e.message.gsub(/^ +$/, "").gsub("#{Dir.pwd}/", "").chomp + "\n"
    end

    def update
      head = File.read(FILE).split(LINE).first
      File.write(FILE, head + entries.map { |program, _| LINE + program + LINE + message(program) }.join)
      @entries = nil
    end
  end
end

RSpec.describe "The gallery of errors" do
  Gallery.update if ENV["UPDATE_SNAPSHOTS"] == "1"

  it "has a good number of them" do
    expect(Gallery.entries.size).to be >= 100
  end

  it "names the line, the place and what to write instead in each" do
    messages = Gallery.entries.map(&:last)
    expect(messages).to all(match(/\A\S+:\d+:\d+: .+\n\n +\S.*\n +\^+\n/))
    expect(messages).to all(include("\nInstead: "))
  end

  Gallery.entries.each do |program, expected|
    it "says what is wrong with #{program.lines.first.chomp}" do
      expect(Gallery.message(program)).to eq(expected)
    end
  end

  it "is one exception with a line, a caret and a class to rescue" do
    expect { [1].pmap { |x| puts x } }.to raise_error(Ikra::CompileError) do |error|
      expect(error).to be_a(Ikra::Error).and be_a(StandardError)
      expect(error.message.lines.first).to start_with("#{__FILE__}:#{__LINE__ - 2}:")
      expect(error.backtrace.first).to start_with("#{__FILE__}:#{__LINE__ - 3}")
    end
  end

  it "points into the method where the trouble is" do
    expect { [Gallery::Tools.new].pmap { |t| t.options(a: 1) } }
      .to raise_error(Ikra::CompileError, /Gallery::Tools#options has a double-splat parameter/)
  end
end
