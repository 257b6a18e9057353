# frozen_string_literal: true

require "tmpdir"

# Where a block's text begins and ends: in files of other encodings, and around heredocs.
module Sources
  def self.second(_, value) = value
  def self.heredoc(x) = <<~TEXT.size + x
    four
  TEXT

  # Loads a file of this encoding.
  def self.load(encoding, text)
    file = File.join(Dir.mktmpdir, "#{encoding}.rb")
    File.binwrite(file, "# encoding: #{encoding}\n".b + text.b)
    Module.new.tap { |around| Kernel.load(file, around) }
  end
end

RSpec.describe "The text of a block" do
  # Ruby 3.3 and later keep no lines of a file, which is read again: in UTF-8.
  let(:read_again) { RUBY_VERSION >= "3.3" }

  def refused(pattern) = raise_error(Ikra::CompileError, pattern)

  { "iso-8859-1" => "\xE9\xE9\xE9\xE9".b, "euc-jp" => "\xA4\xA2\xA4\xA2\xA4\xA2".b, "ascii-8bit" => "\xFF\xFE\xFF\xFE".b,
    "us-ascii" => "eeee".b }.each do |encoding, letters|
    it "is found behind other characters in #{encoding}, whose String literals are refused" do
      skip "such files are refused" if read_again && encoding != "us-ascii"
      within = Sources.load(encoding, <<~RUBY.b.sub("LETTERS".b, letters))
        Z = 5
        ALL = "LETTERS"; ONE = proc { |x| x + 1 }; TWO = proc { |x| x * 100 }; TEXT = proc { |x| x > 1 ? "a" : :b }
        class Inner; Z = 7; def value = Z; end
        OBJECT = Inner.new
      RUBY
      expect([1, 2].pmap(backend: :cpu, &within::ONE)).to eq([2, 3])
      expect([1, 2].pmap(backend: :cpu, &within::TWO)).to eq([100, 200])
      object = within::OBJECT
      expect([1].pmap(backend: :cpu) { |_| object.value }).to eq([7])
      expect { [1].pmap(backend: :cpu, &within::TEXT) }.to refused(/a String literal that is not in UTF-8/)
    end
  end

  it "is refused in files in other encodings where they are read again" do
    skip "Ruby keeps their lines" unless read_again
    within = Sources.load("iso-8859-1", "# \xE9\nNONE = proc { |x| x }\n".b)
    expect { [1].pmap(backend: :cpu, &within::NONE) }.to refused(/is not UTF-8, the only encoding of source that Ikra reads/)
  end

  it "is refused where names in it are not in UTF-8" do
    skip "such files are refused" if read_again
    within = Sources.load("iso-8859-1", "\xE9 = 3; LOCAL = proc { |x| x + \xE9 }; CALL = proc { |x| x.\xE9 }; NONE = proc { |x| x }\n")
    expect([1].pmap(backend: :cpu, &within::NONE)).to eq([1])
    [within::LOCAL, within::CALL].each do |code|
      expect { [1].pmap(backend: :cpu, &code) }.to refused(/what is not ASCII in files in UTF-8 only/)
    end
  end

  it "goes on behind its last line with the bodies of heredocs" do
    expect([1]).to map_same_as_ruby { |x| <<~ONE.size + x }
      one
    ONE
    expect([1]).to map_same_as_ruby { |x| [<<~ONE, <<~TWO.size, x] }
      one
    ONE
      two "quoted"
    TWO
    expect([1]).to map_same_as_ruby { |x| Sources.heredoc(x) }
    expect([1]).to map_same_as_ruby { |x| [<<-ONE, x] }
      #{x + 2} and
      #{x}
    ONE
    expect([1]).to map_same_as_ruby { |x| [<<~ONE, x] }
      #{1 + 2} and
        #{x}
    ONE
  end

  it "leaves out the bodies of heredocs that began before it" do
    answer = Sources.second(<<~ONE, [1].pmap(backend: :cpu) { |x| <<~TWO })
      x + 1000
    ONE
      two
    TWO
    expect(answer).to eq(["two\n"])
    answer = Sources.second(<<~ONE, [1].pmap(backend: :cpu) { |x|
      x + 1000
    ONE
      x + 1
    })
    expect(answer).to eq([2])
  end
end
