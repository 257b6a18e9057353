# frozen_string_literal: true

module MadeTexts
  # Pieces of random Strings: ASCII, letters of two, three and four bytes, spaces, line ends, NUL, parts of characters.
  PIECES = ["a", "b", "Xy", "aa", " ", "  ", "\t", "\n", "\r\n", "\0", "é", "ż", "日", "😀", "-", "x" * 40].freeze
  ALL = [
    "", "a", "Abc", "hello world", "zażółć gęślą", "日本語", "a😀b", "a\0b", "x" * 300, "\t\n x\r\n", "a\nb\n", "abc\r", "\0 a \0",
    "\n\n", "\xff", "a\x80b", "\xe3\x81", "é\xe9", "abc".b, "\xff\x00é".b, " \xff ".b, "abc".encode("US-ASCII"),
    "a\xff".dup.force_encoding("US-ASCII")
  ].map(&:freeze).freeze
  PARTS = ["\xff", "\xe3\x81", "\x80"].freeze

  class Tag
    attr_accessor :name, :label

    def initialize(name)
      @name = name
      @label = nil
    end

    def mark(x) = @label = "#{@name}:#{x}"
    def to_s = "<#{@name}>"
  end

  class Pair
    attr_reader :first, :all

    def initialize(first, all)
      @first = first
      @all = all
    end
  end

  # One operation a line, as kernels read their text.
  OPERATIONS = {
    "+" => ->(s) { [s + "é", s + s, "-" + s] },
    "*" => ->(s) { [s * 3, s * 0] },
    "interpolation" => ->(s) { ["#{s}", "<#{s}|#{s.size}>", "#{s}#{s}#{1}#{s}#{nil}é#{s}", "#{12}#{s}"] },
    "interpolation without literals" => ->(s) { ["#{1}#{2}", "#{s}#{true}", "#{nil}#{s}", "#{1.5}#{1}#{false}", "#{s}#{s} ", "#{1}#{s} #{2}"] },
    "interpolation in parts" => ->(s) { ["" "#{1}#{2}", "#{1}#{2}" "", "#{1}" "#{s}", "" "#{s} ", "#{s}" " ", "#{s}" "#{1} ", "#{s} " "#{1}", "#{s}#{1}" ""] },
    "interpolation of values beside others" => ->(s) { ["#{s}" "#{1}", "#{1}#{2}" "#{3}", "#{1}" "#{2}#{s}", "#{s}#{1}" "#{2}", "#{s}#{"a"}", "#{s}\n#{1}"] },
    "upcase" => ->(s) { [s.upcase, s.downcase, s.swapcase, s.capitalize] },
    "reverse" => ->(s) { s.reverse },
    "strip" => ->(s) { [s.strip, s.lstrip, s.rstrip] },
    "chomp" => ->(s) { [s.chomp, s.chomp(""), s.chomp("\n"), s.chomp(nil), s.chomp("a"), s.chomp("é")] },
    "chop" => ->(s) { s.chop },
    "ljust" => ->(s) { [s.ljust(7), s.ljust(8, "é-"), s.rjust(7), s.rjust(8, "é-"), s.center(7), s.center(9, "12é")] },
    "sub" => ->(s) { [s.sub("a", "é"), s.sub("", "_"), s.sub("é", "e"), s.sub("Xy", "")] },
    "gsub with references" => ->(s) { [s.gsub("a", "<\\0>"), s.sub("é", "\\&\\\\\\1"), s.gsub("b", "\\`\\'"), s.gsub("", "\\0\\z-\\")] },
    "gsub with a block" => ->(s) { [s.gsub("a") { |x| x * 2 }, s.sub("") { 1 }, s.gsub(" ") { nil }, s.gsub("é") { "\\0" }] },
    "gsub" => ->(s) { [s.gsub("a", "é"), s.gsub("", "_"), s.gsub("é", "e"), s.gsub("aa", ""), s.gsub(" ", "  ")] },
    "split" => ->(s) { [s.split, s.split(" "), s.split("a"), s.split("é"), s.split("")] },
    "split with a limit" => ->(s) { [s.split(nil, 2), s.split("a", -1), s.split(" ", -1), s.split("", 2), s.split("b", 1)] },
    "lines" => ->(s) { [s.lines, s.lines(chomp: true)] },
    "tr" => ->(s) { [s.tr("a-y", "b-z"), s.tr("^a-c", "*"), s.tr("ab", ""), s.tr("-x", "12"), s.tr("^", "!"), s.tr("aab", "123"), s.tr("", "x")] },
    "tr beyond ASCII" => ->(s) { [s.tr("é日a", "e本"), s.tr("a-cżé", "ż-žA"), s.tr("^a-é", "*"), s.tr("é-日", "-"), s.tr("\\^a\\-\\\\", "1-4"), s.tr("x😀", "😀-😂x")] },
    "delete" => ->(s) { [s.delete("a-m"), s.delete("^a-z"), s.delete("-"), s.delete(" "), s.delete("a-é", "^b-y"), s.delete("^\0-é"), s.delete("é", "ż")] },
    "squeeze" => ->(s) { [s.squeeze, s.squeeze("a"), s.squeeze("^a"), s.squeeze(" \n"), s.squeeze("é日", "é"), s.squeeze("^é")] },
    "count" => ->(s) { [s.count("a-z"), s.count("^a"), s.count(""), s.count("é-日"), s.count("a-ÿ", "^é"), s.count("\\a\\^")] },
    "partition" => ->(s) { [s.partition("a"), s.partition("é")] },
    "rpartition" => ->(s) { [s.rpartition("a"), s.rpartition("é"), s.rpartition("")] },
    "casecmp" => ->(s) { [s.casecmp("ABC"), s.casecmp("hello_world"), s.casecmp("É"), s.casecmp(s), s.casecmp(1)] },
    "casecmp?" => ->(s) { [s.casecmp?("aBC"), s.casecmp?("hello worlD"), s.casecmp?(:a), s.casecmp?("É"), s.casecmp?(s.upcase), s.casecmp?("SS")] },
    "gsub with a Hash" => ->(s) { [s.gsub("a", { "a" => 1 }), s.sub("é", "é" => "e"), s.gsub(/[ab]/, "a" => "<é>", "b" => nil), s.gsub("", {})] },
    "each_line" => ->(s) { [s.each_line.map { |line| line + "!" }, s.each_line(chomp: true).to_a] },
    "join" => ->(s) { [[s, "b"].join, [s, 1, "é"].join(","), [1, s].join("-"), [nil, true, s] * ":", [].join] }
  }.freeze

  # Floats that are near what tells apart their forms, and of random bits.
  def self.floats(count, random)
    bits = ->(limit) { Array.new(count) { [random.rand(limit)].pack("Q").unpack1("D") } }
    steps = (-1074..1023).map { |power| Math.ldexp(1.0, power) } + (-323..308).map { |power| "1e#{power}".to_f }
    near = steps.flat_map { |x| [x.prev_float, x, -x.next_float] }
    near += [0.0, -0.0, Float::NAN, Float::INFINITY, -Float::INFINITY, Float::MAX, 123_456_789_012_345.6, 9e15, 1_234_567_890_123_456.8, 2e23]
    decimals = Array.new(count) { random.rand(-10**6..10**6) / 10.0**random.rand(0..9) } + Array.new(count) { random.rand }
    near + (1..200).map { |n| n * 5e-324 } + bits.call(2**64) + bits.call(2**52) + decimals
  end

  def self.random(count, random)
    Array.new(count) do
      pieces = random.rand(4) == 0 ? PIECES + PARTS : PIECES
      text = Array.new(random.rand(9)) { pieces.sample(random:) }.join
      case random.rand(8)
      when 0 then text.b
      when 1 then text.dup.force_encoding("US-ASCII")
      else text
      end
    end
  end

  # What tells Strings apart, besides their identity.
  def self.form(value)
    case value
    when Array then value.map { |x| form(x) }
    when String then [value.b, value.encoding, value.frozen?]
    else value
    end
  end

  def self.kernel(text, backend, operation)
    form([text].pmap(backend:, &operation).first)
  rescue StandardError, Ikra::CompileError => e
    e.class
  end

  def self.ruby(text, operation)
    form(operation.call(text))
  rescue StandardError => e
    e.class
  end
end

RSpec.describe "Strings that a block makes" do
  on_every_backend do
    MadeTexts::OPERATIONS.each do |name, operation|
      it "by #{name} are Ruby's, or refused" do
        texts = MadeTexts::ALL + MadeTexts.random(40, Random.new(name.sum))
        # kernels know every String of ASCII
        ascii, others = texts.partition { |text| text.ascii_only? && text.encoding != Encoding::BINARY }
        expect(MadeTexts.form(ascii.pmap(backend:, &operation))).to eq(ascii.map { |text| MadeTexts.ruby(text, operation) })
        got = others.each_slice(3).flat_map do |slice|
          MadeTexts.form(slice.pmap(backend:, &operation))
        rescue StandardError, Ikra::CompileError
          slice.map { |text| MadeTexts.kernel(text, backend, operation) }
        end
        others.zip(got) do |text, form|
          expect([text, form]).to eq [text, MadeTexts.ruby(text, operation)] unless form == Ikra::CompileError
        end
      end
    end

    it "by tr, delete, squeeze and count with characters beyond ASCII" do
      texts = ["", "naïve café", "aé日😀aé", "ééé日日aa", "\u{d7ff}\u{e000}\u{e001}", "^-\\^", "zażółć gęślą jaźń"]
      expect { |s| [s.tr("ąćęłńóśźż", "acelnoszz"), s.tr("a-zé", "A-Z😀"), s.tr("^a-zé", "12"), s.tr("é", ""), s.tr("\u{d7fe}-\u{e001}", "a-z")] }
        .to be_same_as_ruby.over(*texts)
      expect { |s| [s.delete("^a-zé"), s.delete("é日", "é"), s.squeeze, s.squeeze("é"), s.squeeze("^é")] }
        .to be_same_as_ruby.over(*texts)
      expect { |s| [s.count("é日"), s.count("^a-z"), s.count("à-ÿ", "^é"), s.tr("\\-^", "12"), s.tr("\\^\\\\", "é"), s.tr("é-", "x")] }
        .to be_same_as_ruby.over(*texts)
    end

    it "by changes of case have the cases of all characters" do
      codes = (0..0x24ff).to_a + (0x2c00..0x2dff).to_a + (0xa640..0xa7ff).to_a + (0xab30..0xabbf).to_a + (0xfb00..0xff5f).to_a + (0x10400..0x1057f).to_a
      codes += (0x1e900..0x1e95f).to_a + 0x2500.step(0x10ffff, 1009).to_a
      codes = 0..0x10ffff if backend == :cpu
      # three of them in each text, so that each is the first, the last, and within others
      texts = codes.reject { |code| (0xd800..0xdfff).cover?(code) }.each_slice(3).map { |slice| slice.pack("U*") }
      expect { |s| [s.upcase, s.downcase, s.swapcase, s.capitalize] }.to be_same_as_ruby.over(*texts)
      expect { |s| [s.casecmp?(s.swapcase), s.casecmp?("\u00df\u0130k"), s.casecmp?(s.upcase), s.downcase == s] }.to be_same_as_ruby.over(*texts.first(4000))
      long = ["ß" * 300, "ΐﬃ" * 90, "a" * 70 + "É", "İ", "ǆǅǄ", "\u0149x"]
      expect { |s| [s.upcase, s.capitalize, s.swapcase.downcase, s.upcase.size, s.upcase.ascii_only?] }.to be_same_as_ruby.over(*long)
      broken = ["é\xff", "\xe3\x81", "\xff", "a\x80B", "\xc3"]
      [:upcase, :downcase, :swapcase, :capitalize].each do |change|
        broken.each do |text|
          expect { [text].pmap(backend:, &change) }.to raise_error(ArgumentError, "input string invalid")
        end
      end
    end

    it "by to_s of Integers" do
      numbers = [0, 1, -1, 9, 10, 99, 100, -100, 12_345, 2**31, 2**62, 2**63 - 1, -2**63]
      expect { |x| [x.to_s, x.inspect, x.to_s(2), x.to_s(16), x.to_s(36), x.to_s(7)] }.to be_same_as_ruby.over(*numbers)
      expect { |x| 5.to_s(x) }.to be_same_as_ruby.over(2, 36, 1, 0, 37, -2)
      expect(MadeTexts.form([5].pmap(backend:) { |x| [x.to_s, "#{x}"] })).to eq MadeTexts.form([5].map { |x| [x.to_s, "#{x}"] })
      expect { |x| [x.chr, x.chr.valid_encoding?] }.to be_same_as_ruby.over(0, 65, 127, 128, 255, 256, -1, 2**62 - 1, 2**62, -(2**62), -(2**62) - 1)
    end

    it "by to_s of Floats" do
      count = { cpu: 30_000, reference: 30 }.fetch(backend, 3000)
      floats = MadeTexts.floats(count, Random.new(RSpec.configuration.seed))
      floats = floats.each_slice(97).map(&:first) if backend == :reference
      expect(floats.pmap(backend:) { |x| x.to_s }).to eq(floats.map { |x| x.to_s })
      few = [1.5, -0.0, 1e100, 1e-5, Float::NAN, Float::INFINITY]
      expect(MadeTexts.form(few.pmap(backend:) { |x| [x.to_s, x.inspect, "#{x} m"] })).to eq MadeTexts.form(few.map { |x| [x.to_s, x.inspect, "#{x} m"] })
      expect { |x| [x, 1.25, 3].join(";") + x.round(2).to_s }.to be_same_as_ruby.over(1.5, 2.675, -1e20, 7)
    end

    it "by to_s of millions of Floats", :exhaustive do
      next unless backend == :cpu

      floats = MadeTexts.floats(2_000_000, Random.new(RSpec.configuration.seed))
      expect(floats.pmap(backend:) { |x| x.to_s }).to eq(floats.map { |x| x.to_s })
    end

    it "by format" do
      numbers = [0, 1, -1, 5, -255, 12_345, 2**62, -2**63, 2**63 - 1]
      expect { |x| format("%d|%5d|%-5d|%05d|%+d|% d|%+05d|%-05d|%i%%%u", x, x, x, x, x, x, x, x, x, x) }.to be_same_as_ruby.over(*numbers)
      expect { |x| ["%+x|%+08b|% o|%+X" % [x, x, x, x], "%.2f %f %09.1f %-12.0f|% f" % [x, x, x, x, x]] }.to be_same_as_ruby.over(*numbers)
      expect { |x| sprintf("%x|%08b|%o|%-6x|%06X", x, x, x, x, x) }.to be_same_as_ruby.over(*numbers.grep(0..))
      expect { |x| format("<%s|%5s|%-5s|%.1s|%05s>", x, x, x, x, x) }.to be_same_as_ruby.over("", "a", "bc", "é", nil, true, 2.5, -7)
      expect { |x| format("%s é %c %3c|", x, x, 65) }.to be_same_as_ruby.over("a", "é", 98)
      expect { |x| ["%d" % x, "100%%" % [], format("")] }.to be_same_as_ruby.over(1.9, -1.9, "0x1f", "x", nil, Float::NAN)
      expect { |x| "%.1f" % x }.to be_same_as_ruby.over("1.25", "x", nil, 3)
      expect do |x|
        n = 0
        "%d-%d-%d" % [n += x, n += x, n]
      end.to be_same_as_ruby.over(1, 5)
      few = [["a", 1], ["é", 2], ["\xff".b, 3]]
      expect(MadeTexts.form(few.pmap(backend:) { |s, x| ["%s" % s, format("%d", x)] })).to eq MadeTexts.form(few.map { |s, x| ["%s" % s, format("%d", x)] })
    end

    it "by format with names" do
      expect { |x| [format("%<a>5d|%-5<b>s|%{b}|%5{a}|%<a>05.1f%%", a: x, b: "é"), "%{a}-%<a>x" % { a: x }] }.to be_same_as_ruby.over(0, 1, 77)
      expect do |x|
        n = 0
        format("%<b>d-%<a>d-%<b>d", a: n += x, b: n += x, c: n)
      end.to be_same_as_ruby.over(1, 5)
    end

    it "by format of what inspect gives" do
      expect { |x| format("%p|%8p|%-8p|%.2p", x, x, x, x) }.to be_same_as_ruby.over(1, -2.5, nil, true, false, :a, :"a b")
      expect { |x| [x.inspect, "#{x.inspect}"] }.to be_same_as_ruby.over(1, 2.5, nil, true, false, :é)
    end

    it "by format of Floats" do
      random = Random.new(RSpec.configuration.seed)
      count = { cpu: 20_000, reference: 20 }.fetch(backend, 2000)
      floats = MadeTexts.floats(count, random)
      floats += Array.new(count) { (random.rand(10**7) * 10 + 5) / 10.0**random.rand(1..14) } + Array.new(count) { random.rand * 10**random.rand(-12..22) }
      floats += (0..99).flat_map { |n| [n / 8.0, n / -1024.0, n + 0.5] }
      floats = floats.each_slice(197).map(&:first) if backend == :reference
      block = ->(x) { format("%.2f|%f|%.0f|%.1f|%.12f|%.15f|%.60f", x, x, x, x, x, x, x) }
      expect(floats.pmap(backend:, &block)).to eq floats.map(&block)
      few = floats.sample(40, random:) + [0.0, -0.0, 9.995, -999.5, Float::NAN, Float::INFINITY, -Float::INFINITY]
      expect { |x| format("%10.3f|%-10.3f|%010.3f|%+.2f|% .4f|%+09.1f|%-+9.0f|", x, x, x, x, x, x, x) }.to be_same_as_ruby.over(*few)
    end

    it "by a format of the program's own" do
      own = Class.new do
        def format(text, value) = "#{text}: #{value}"
        def to(value) = format("%d", value)
      end
      expect { |run| run.pmap([own.new]) { |it| it.to(5) } }.to be_same_as_ruby
    end

    it "by to_s of nil, true and false" do
      got = [nil, true, false].pmap(backend:) { |x| [x.to_s, "#{x}."] }
      expect(MadeTexts.form(got)).to eq(MadeTexts.form([nil, true, false].map { |x| [x.to_s, "#{x}."] }))
    end

    it "by to_s of a class of the program" do
      expect { |run| run.pmap([MadeTexts::Tag.new("é"), MadeTexts::Tag.new("")]) { |tag| "#{tag}!" } }.to be_same_as_ruby
    end

    it "in a loop" do
      expect do |n|
        text = ""
        n.times { |i| text += "#{i}," }
        text
      end.to be_same_as_ruby.over(0, 1, 10, 200)
    end

    it "of several kinds" do
      expect { |x| x.is_a?(Integer) ? "#{x}" : x }.to be_same_as_ruby.over(1, nil, 2.5, "a")
    end

    it "are compared, measured and read as others" do
      expect do |x|
        text = "é#{x}"
        [text == "é1", text <=> "é2", text.size, text.bytesize, text[1], text.getbyte(0), text.start_with?("é")]
      end.to be_same_as_ruby.over(1, 2, 33)
    end

    it "are fields of objects, old and new ones" do
      expect do |run|
        tags = %w[a é].map { |name| MadeTexts::Tag.new(name) }
        run.peach(tags) { |tag| tag.mark(7) }
        [tags.map(&:label), tags.map { |tag| tag.label.encoding }]
      end.to be_same_as_ruby
      expect do |run|
        pairs = run.pmap([1, 2]) { |x| MadeTexts::Pair.new("#{x}", ["a#{x}", "b" * x]) }
        pairs.map { |pair| [pair.first, pair.all] }
      end.to be_same_as_ruby
    end

    it "are messages of exceptions" do
      expect do |x|
        text = "no #{x}"
        raise ArgumentError, text
      end.to be_same_as_ruby.over(1, "é")
      expect { |x| raise ArgumentError, "no " + "#{x}" }.to be_same_as_ruby.over(1, "é")
      expect do |x|
        text = "no #{x}"
        raise ArgumentError, text if x > 1
        text
      rescue ArgumentError => e
        "#{e.message}!"
      end.to be_same_as_ruby.over(1, 2)
    end

    it "grow in the variable that alone holds them" do
      expect do |text|
        made = +""
        copy = text.dup
        empty = String.new
        sum = "é" + text
        text.each_char do |c|
          made << c << "-" if c != "b"
          made.concat("é") unless made.size > 5 || made.end_with?("x")
          empty << c
        end
        sum << text << 33 << "#{made}|"
        copy << sum.reverse if copy.empty? || copy.start_with?("z")
        n = 0
        while n < 3
          line = n.to_s
          line << ":" << text
          made << line
          n += 1
        end
        [made, copy, empty, sum, text, text.each_char.with_object(+"") { |c, s| s << c << c }, String.new(text)]
      end.to be_same_as_ruby.over("abc", "", "é", "aé日")
      expect { |x| s = +"a"; s << x }.to be_same_as_ruby.over("b", nil, :c, 2.5)
    end

    it "are compared with the ends of Ranges" do
      expect do |x|
        kind =
          case x
          when "a".."f" then 1
          when "g"..."p", "x".."zz" then 2
          when 3, nil then 3
          else 4
          end
        [kind, ("a".."f") === x, ("ab"..."b").cover?(x), ("a".."f").include?(x), ("a"..."f").member?(x)]
      end.to be_same_as_ruby.over("a", "f", "ff", "p", "o", "é", "", "zz", "abc", "b", nil, 3, 2.5, :a)
      expect { |x| [("a".."e").to_a, ("X".."b").map { |c| c + x }, ("a"..."c").each_with_object([]) { |c, l| l << c }, ("b".."a").to_a, ("a".."d").zip(1..4).to_h] }.to be_same_as_ruby.over("x")
    end

    it "are keys of groups" do
      numbers = (1..30).to_a
      expect(numbers.pgroup_by(backend:) { |x| "k#{x % 3}" }).to eq(numbers.group_by { |x| "k#{x % 3}" })
      expect(numbers.puniq(backend:) { |x| "k#{x % 3}" }).to eq(numbers.uniq { |x| "k#{x % 3}" })
    end

    it "look Hashes up, and are what captured variables have last" do
      prices = { "k1" => 10, "k2" => 20 }
      expect { |run| run.pmap([1, 2, 3]) { |x| prices["k#{x}"] } }.to be_same_as_ruby
      expect do |run|
        last = nil
        run.peach([1, 2, 3]) { |x| last = "#{x}!" }
        last
      end.to be_same_as_ruby
    end

    it "are reduced and scanned" do
      words = %w[x é z]
      expect(words.preduce(backend:) { |a, b| a + b }).to eq "xéz"
      expect(words.psum("", backend:) { |a| a + "1" }).to eq "x1é1z1"
    end

    it "grow with what elements make" do
      numbers = (1..300).to_a
      expect(numbers.pmap(backend:) { |x| "ab" * x }).to eq(numbers.map { |x| "ab" * x })
      expect(numbers.pmap(backend:) { |x| x == 300 ? "ab" * 3000 : "" }).to eq(numbers.map { |x| x == 300 ? "ab" * 3000 : "" })
    end

    it "are another kind of error where their encodings disagree" do
      bytes = "\xff".b
      expect { ["é"].pmap(backend:) { |s| s + bytes } }.to raise_error(Ikra::CompileError, /different encodings/)
      expect { ["é"].pmap(backend:) { |s| "#{bytes}#{s}" } }.to raise_error(Ikra::CompileError, /different encodings/)
    end
  end

  it "have no identity" do
    expect { [1].pmap { |x| s = "#{x}"; s.equal?(s) } }.to raise_error(Ikra::CompileError, /identity of Strings/)
  end

  it "survive a GC at each allocation" do
    found = run_under_gc_stress('(1..20).to_a.pmap(backend: :cpu) { |x| ["#{x} m", "é" * x] }')
    expect(found).to eq("#{(1..20).map { |x| ["#{x} m", "é" * x] }}\n")
  end

  it "stay on the device in a scope" do
    tags = %w[a é].map { |name| MadeTexts::Tag.new(name) }
    Ikra.resident(tags) do
      2.times { tags.peach { |tag| tag.label = "#{tag.name}#{tag.label}" } }
      expect(tags.pmap { |tag| tag.label + "?" }).to eq %w[aa? éé?]
      tags[0].label = "changed"
      tags.peach { |tag| tag.mark(tag.label.size) }
    end
    expect(tags.map(&:label)).to eq %w[a:7 é:2]
  end

  it "may be a million" do
    results = (0...1_000_000).to_a.pmap(backend: :cpu) { |x| "#{x} m" }
    expect(results.size).to eq 1_000_000
    expect(results.each_with_index.all? { |text, i| text == "#{i} m" }).to be true
  end

  it "are not changed where others may hold them" do
    expect { ["a"].pmap { |s| s << "b" } }.to raise_error(Ikra::CompileError, /String#<<.*make a new one with \+/m)
    expect { ["a"].pmap { |s| t = s.dup; u = t; t << "b"; u } }.to raise_error(Ikra::CompileError, /String#<</)
    expect { ["a"].pmap { |s| t = +""; t << (s + (u = t; "")); u } }.to raise_error(Ikra::CompileError, /a String that others may hold/)
    expect { ["a"].pmap { |s| t = +"x"; t.each_char { |c| t << c } } }.to raise_error(Ikra::CompileError, /String#<</)
    expect { ["a"].pmap { |s| t = s.dup; t << 233 } }.to raise_error(Ikra::CompileError, /characters of ASCII by their numbers/)
    expect { ["a"].pmap { |s| s.upcase! } }.to raise_error(Ikra::CompileError, /without ! gives/)
  end

  it "are not raised alone" do
    expect { [1].pmap { |x| raise(x > 1 ? "no #{x}" : "yes") } }
      .to raise_error(Ikra::CompileError, /kernels do not raise a String that is in a variable/)
  end

  it "follow a to_s that a program defines" do
    tag = Class.new { def to_s = 1 }
    stub_const("MadeTexts::Odd", tag)
    expect { [MadeTexts::Odd.new].pmap { |x| "#{x}" } }.to raise_error(Ikra::CompileError, /to_s gives as a String/)
  end

  it "are refused in forms that kernels do not know" do
    expect { ["a"].pmap { |s| s.upcase(:ascii) } }.to raise_error(Ikra::CompileError, /option of a change of case/)
    expect { ["a"].pmap { |s| s.gsub("a") } }.to raise_error(Ikra::CompileError, /by a String, or by what a block gives/)
    expect { ["a"].pmap { |s| s.gsub("a", "\\k<x>") } }.to raise_error(Ikra::CompileError, /in a replacement/)
    expect { ["a"].pmap { |s| s.tr("z-a", "e") } }.to raise_error(Ikra::CompileError, /one or two sets of characters here, whose ranges ascend/)
    expect { ["a"].pmap { |s| s.delete("ab", "b", "b") } }.to raise_error(Ikra::CompileError, /one or two sets of characters/)
    expect { ["a"].pmap { |s| s.tr("a", "^-A") } }.to raise_error(Ikra::CompileError, /whose ranges ascend/)
    expect { ["a"].pmap { |s| s.tr("abc", "x-xyz") } }.to raise_error(Ikra::CompileError, /whose ranges ascend/)
    expect { ["a"].pmap { |s| s.delete("^a-z", "日") } }.to raise_error(Ikra::CompileError, /one or two sets of characters/)
    expect { ["a"].pmap { |s| s.tr("^b", "é") } }.to raise_error(Ikra::CompileError, /a text in ASCII takes tr/)
    expect { ["é"].pmap { |s| s.tr("^b", "é日") } }.not_to raise_error
    expect { ["\xff".b].pmap { |s| s.count("é") } }.to raise_error(Ikra::CompileError, /have the text's encoding/)
    expect { [65].pmap { |x| x.chr("UTF-8") } }.to raise_error(Ikra::CompileError, /chr of bytes only/)
    expect { ["a"].pmap { |s| s.lines("a") } }.to raise_error(Ikra::CompileError, /lines that end with a newline/)
    expect { ["a"].pmap { |s| s.split("a") { |m| m } } }.to raise_error(Ikra::CompileError, /split with a block/)
    expect { [1].pmap { |x| [[x]].join } }.to raise_error(Ikra::CompileError, /no Arrays of Arrays/)
    expect { [1].pmap { |x| format("%<a>d %<b>d", a: x) } }.to raise_error(Ikra::CompileError, /Kernel#format/)
    expect { [1].pmap { |x| format("%<a>d %d", a: x) } }.to raise_error(Ikra::CompileError, /Kernel#format/)
    ["%g", "%5%", "%#x", "%*d", "%.3d", "%1$d", "%<a>d", "%", "%d %d"].each do |text|
      block = eval("->(x) { format(#{text.inspect}, x) }") # rubocop:disable Security/Eval
      expect { [1].pmap(&block) }.to raise_error(Ikra::CompileError, /Kernel#format/)
    end
    expect { [[1]].pmap { |x| "%d" % x } }.to raise_error(Ikra::CompileError, /kernels format numbers/)
    expect { [-1].pmap { |x| "%x" % x } }.to raise_error(Ikra::CompileError, /no negative numbers by %x/)
    expect { [200].pmap { |x| "%c" % x } }.to raise_error(Ikra::CompileError, /kernels format/)
  end
end
