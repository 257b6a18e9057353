# frozen_string_literal: true

module Texts
  # ASCII, letters of two, three and four bytes, and bytes that are no characters.
  PLAIN = ["", "a", "ab", "abc", "hello world", "ż", "zażółć gęślą", "日本語", "a😀b", "\0", "a\0b", "x" * 300].freeze
  BROKEN = ["\xff", "a\x80b", "\xe3\x81", "\xed\xa0\x80", "\xf0\x9f\x98", "\xc0\xaf", "é\xe9", "\xf4\x90\x80\x80", "\xe3\x81\x82\x81"].freeze
  OTHERS = ["abc".b, "\xff\x00é".b, "", "abc".encode("US-ASCII"), "a\xff".dup.force_encoding("US-ASCII").freeze].freeze
  ALL = (PLAIN + BROKEN + OTHERS).freeze

  class Person
    attr_accessor :name, :nick

    def initialize(name, nick = nil)
      @name = name
      @nick = nick
    end

    def greeting = @nick ? @nick : @name
    def initials = @name.empty? ? "?" : @name[0]
  end

end

RSpec.describe "Strings" do
  all = Texts::ALL

  on_every_backend do
    it "come back as the objects that they are" do
      expect do |run|
        strings = all.map(&:dup)
        people = strings.map { |s| Texts::Person.new(s) }
        [run.pmap(strings) { |s| s }, run.pmap(people) { |p| p.name }, people.map(&:name)]
      end.to be_same_as_ruby
    end

    it "have sizes, in characters as Ruby counts them and in bytes" do
      expect { |s| s.size * 1000 + s.length }.to be_same_as_ruby.over(*all)
      expect { |s| s.bytesize }.to be_same_as_ruby.over(*all)
      expect { |s| s.empty? ? 1 : s.ascii_only? ? 2 : s.valid_encoding? ? 3 : 4 }.to be_same_as_ruby.over(*all)
    end

    it "give lists of their bytes and characters" do
      expect { |s| [s.bytes, s.chars.size, s.each_char.map(&:bytesize), s.each_byte.with_index(1).map { |b, i| b * i }] }.to be_same_as_ruby.over(*all)
    end

    it "give bytes" do
      expect { |s| s.getbyte(0) }.to be_same_as_ruby.over(*all)
      expect { |s| s.getbyte(-2) }.to be_same_as_ruby.over(*all)
      expect { |i| "abc".getbyte(i) }.to be_same_as_ruby.over(0, 2, 3, -1, -3, -4, Values::MAX, Values::MIN)
      expect do |s|
        sum = 0
        s.each_byte { |b| sum = (sum * 31 + b) % 1_000_003 }
        sum
      end.to be_same_as_ruby.over(*all)
    end

    it "give characters and parts, as new Strings in the same encoding" do
      [0, 1, -1, 2, -3, 10, -10].each do |i|
        expect { |s| s[i] }.to be_same_as_ruby.over(*all)
        expect { |s| s.byteslice(i) }.to be_same_as_ruby.over(*all)
      end
      [[0, 0], [0, 2], [1, 1], [1, 99], [-2, 1], [2, -1], [5, 1]].each do |i, n|
        expect { |s| s[i, n] }.to be_same_as_ruby.over(*all)
        expect { |s| s.byteslice(i, n) }.to be_same_as_ruby.over(*all)
      end
      [(0..1), (1..-1), (-2..-1), (0...2), (2..1), (5..9), (-9..2), (1...-1)].each do |range|
        expect { |s| s[range] }.to be_same_as_ruby.over(*all)
        expect { |s| s.byteslice(range) }.to be_same_as_ruby.over(*all)
      end
      expect { |s| s.chr }.to be_same_as_ruby.over(*all)
    end

    it "are walked through by character" do
      expect do |s|
        sum = 0
        s.each_char { |c| sum = (sum * 7 + c.bytesize * 5 + (c == "a" ? 1 : 0)) % 1_000_003 }
        sum
      end.to be_same_as_ruby.over(*all)
      expect { |s| n = 0; s.each_char { |c| break n if c == "b"; n += 1 } == n ? n : -1 }.to be_same_as_ruby.over(*Texts::PLAIN)
    end

    it "have the codepoint of their first character" do
      expect { |s| s.ord }.to be_same_as_ruby.over(*all)
    end

    it "are equal by content, and by encoding where that matters" do
      ["abc", "", "\xff", "abc".b, "\xff\x00é".b, "a\xff".dup.force_encoding("US-ASCII"), "日本語"].each do |other|
        expect { |s| (s == other ? 1 : 0) + (s != other ? 2 : 0) + (s.eql?(other) ? 4 : 0) + (other === s ? 8 : 0) }.to be_same_as_ruby.over(*all, nil, :abc, 1, 2.5)
        expect { |s| (s <=> other) * 2 + (s < other ? 1 : 0) }.to be_same_as_ruby.over(*all)
      end
      expect { |s| case s when "abc", "ż" then 1 when "" then 2 else 3 end }.to be_same_as_ruby.over(*all)
      expect { |s| s.between?("a", "b") ? 1 : s.clamp("b", "z").size }.to be_same_as_ruby.over(*Texts::PLAIN)
      same = all[2]
      expect { |s| s.equal?(same) ? 1 : 0 }.to be_same_as_ruby.over(*all, "ab".dup)
    end

    it "are searched" do
      texts = Texts::PLAIN + Texts::BROKEN
      ["", "a", "b", "bc", "ó", "本", "😀", "lo w", "\0"].each do |part|
        expect { |s| s.include?(part) ? 1 : 0 }.to be_same_as_ruby.over(*texts)
        expect { |s| s.index(part) }.to be_same_as_ruby.over(*texts)
        expect { |s| s.rindex(part) }.to be_same_as_ruby.over(*Texts::PLAIN)
        expect { |s| (s.start_with?(part) ? 1 : 0) + (s.end_with?(part) ? 2 : 0) }.to be_same_as_ruby.over(*texts)
        expect { |s| s.delete_prefix(part) }.to be_same_as_ruby.over(*texts)
        expect { |s| s.delete_suffix(part) }.to be_same_as_ruby.over(*texts)
        expect { |s| s[part] }.to be_same_as_ruby.over(*texts)
      end
      expect { |i| "banana".index("an", i) }.to be_same_as_ruby.over(0, 1, 2, 5, 6, 7, -1, -5, -6, -7)
      expect { |i| "bżnżna".rindex("ż", i) }.to be_same_as_ruby.over(0, 1, 2, 3, 6, 7, -1, -4, -6, -7)
      expect { |i| "banana".index("", i) }.to be_same_as_ruby.over(0, 6, 7, -1)
    end

    it "are read as numbers" do
      integers = ["12", " -34x", "", "x", "1_000", "1__2", "_1", "0d15", "0x1f", "+7", "- 1", "0_8", "1_", "\t5", "9223372036854775807", "-9223372036854775808",
                  "9223372036854775808", "99999999999999999999", "1\0002", "٣"]
      expect { |s| s.to_i }.to be_same_as_ruby.over(*integers)
      floats = ["1.5", "-0.25e2", "", "x", "1e3", "1.e3", ".5", "1_0.2_5", "3", " 0.1 ", "-0", "1e-5", "123456.789", "1e22", "5.", "1__0",
                "-.5", "1e", "1e+", "1.2.3", "0.30000000000000004", "e5", "1E2", "0e5"]
      expect { |s| s.to_f }.to be_same_as_ruby.over(*floats)
    end

    it "are literals" do
      expect { |x| x > 1 ? "many" : x == 1 ? "one" : "" }.to be_same_as_ruby.over(0, 1, 2)
      expect { |x| x > 1 ? "żółw".size : "a".ord }.to be_same_as_ruby.over(0, 2)
      expect { |x| "abc"[x] }.to be_same_as_ruby.over(0, 1, 3)
      expect { |x| x == 0 ? "\xff".size : "a\tb\u00e9".bytesize }.to be_same_as_ruby.over(0, 1)
    end

    it "are in objects, arrays, constants and variables, beside other things" do
      expect do |run|
        people = [Texts::Person.new("Ada"), Texts::Person.new("", "Bob"), Texts::Person.new(nil, :eve)]
        words = ["x", "yy", nil, 3]
        run.peach(people) { |p| p.nick ||= p.name ? p.name[0, 2] : words[1] }
        [people, run.pmap(people) { |p| p.greeting }, run.pmap([0, 1, 2, 3]) { |i| w = words[i]; w.is_a?(String) ? w.size : w }, run.pmap([1]) { |x| Texts::PLAIN[3].size + x }]
      end.to be_same_as_ruby
    end

    it "are written to ivars, as they are and in parts" do
      expect do |run|
        ada = Texts::Person.new("Ada Lovelace".dup)
        people = [ada, Texts::Person.new("Bob"), Texts::Person.new("x")]
        run.peach(people) { |p| p.nick = p.name; p.name = p.initials }
        people + [ada.nick.equal?(people[0].nick)]
      end.to be_same_as_ruby
    end

    it "raise what Ruby raises" do
      s = "abc"
      expect { |i| i == 0 ? s[nil] : i == 1 ? s[0, nil] : i == 2 ? s.start_with?(1) : i == 3 ? s.include?(nil) : i == 4 ? s.foo : s < 1 }.to be_same_as_ruby.over(0, 1, 2, 3, 4, 5)
      expect { |x| x + 1 }.to be_same_as_ruby.over(1, nil, :a)
      expect { |x| 1 + x }.to be_same_as_ruby.over(1, "a", nil)
      expect { |x| 1 < x ? 1 : 2 }.to be_same_as_ruby.over(1, "a", nil)
    end
  end

  on_every_backend do
    # Its file has no frozen literals.
    def unfrozen(text) = eval(text, binding, "unfrozen.rb", 1) # rubocop:disable Security/Eval

    it "are frozen as in Ruby, also their copies and parts" do
      shown = lambda do |value|
        value.is_a?(Array) ? value.map(&shown) : [value, value.frozen?]
      end
      texts = -> { [+"abc", -"héq", "\xff".b, -"\xff".b, +"", "é" * 40, ("é" * 40).freeze] }
      bodies = [
        "[x.frozen?, x.dup.frozen?, x.clone.frozen?, x.clone(freeze: true).frozen?, x.clone(freeze: false).frozen?]",
        "[x, x.dup, x.clone, x.clone(freeze: nil), x.clone(freeze: true), x.clone(freeze: false), x[0, 1], x.chars]",
        "['lit', 'lit'.freeze, 'lit'.dup, 'lit'.clone, 'lit'.clone(freeze: true), 'lit'.freeze.dup, 'lit'.freeze.clone]",
        "['lit'.frozen?, 'lit'.freeze.frozen?, 'lit'.freeze.equal?('lit'.freeze), 'lit'.freeze.size, x.to_s.frozen?]",
        "(x.frozen? ? x.freeze : x.clone(freeze: true)).frozen?",
        "[x == x.clone(freeze: true), x.clone(freeze: true) <=> x, x.eql?(x.dup), x.equal?(x)].all?"
      ]
      ["", "# frozen_string_literal: true\n"].product(bodies) do |comment, body|
        block = unfrozen("#{comment}proc { |x| #{body} }")
        expect(shown.(texts.call.pmap(backend:, &block))).to eq(shown.(texts.call.map(&block)))
      end
      interned = unfrozen("[1, 2].pmap(backend: backend) { |_| 'lit'.freeze }")
      expect(interned.map { |text| text.equal?(-"lit") }).to eq [true, true]
      expect { |x| [x.frozen?, x.freeze.frozen?, x.clone, x.clone(freeze: true)] }.to be_same_as_ruby.over(:a, 1, 2.5, nil, true, false)
    end

    it "are asked for their flag anew at each call, in a scope, too" do
      texts = [+"a", +"b"]
      block = proc { |text| text.frozen? }
      seen = [texts.pmap(backend:, &block)]
      texts[1].freeze
      seen << texts.pmap(backend:, &block)
      texts[0] = -"a"
      seen << texts.pmap(backend:, &block)
      expect(seen).to eq [[false, false], [false, true], [true, true]]
      people = Array.new(2) { Texts::Person.new(+"Ada") }
      seen = Ikra.resident(people) do
        sizes = people.pmap(backend:) { |one| one.name.size }
        people[1].name.freeze
        [sizes, people.pmap(backend:) { |one| one.name.size }, people.pmap(backend:) { |one| one.name.frozen? }]
      end
      expect(seen).to eq [[3, 3], [3, 3], [false, true]]
    end

    it "are not frozen where others may hold them" do
      refused = raise_error(Ikra::CompileError, /kernels do not freeze a String that others may hold/)
      expect { [+"a"].pmap(backend:) { |text| text.freeze } }.to refused
      expect { [+"a"].pmap(backend:) { |text| text.dup.freeze } }.to refused
      expect { [-"a"].pmap(backend:) { |text| text.clone(freeze: 1) } }.to raise_error(Ikra::CompileError, /clone with freeze/)
    end
  end

  it "are new each time, where literals are not frozen" do
    results = eval("[1, 2, 3].pmap { |x| x > 1 ? 'new' : 'newer'[0, 3] }", binding, "unfrozen.rb", 1)
    expect(results).to eq %w[new new new]
    expect(results.map(&:frozen?)).to eq [false] * 3
    expect(results.map(&:object_id).uniq.size).to eq 3
  end

  it "of other encodings and classes are refused" do
    name = Class.new(String)
    expect { ["ż".encode("ISO-8859-2")].pmap { |s| s.size } }.to raise_error(Ikra::CompileError, /a String in ISO-8859-2/)
    expect { [name.new("a")].pmap { |s| s.size } }.to raise_error(Ikra::CompileError, /no plain String/)
  end

  it "of two encodings are not mixed" do
    expect { ["é"].pmap { |s| s.include?("\xe9".b) } }.to raise_error(Ikra::CompileError)
    bytes = "\xe9".b
    expect { ["é"].pmap { |s| s.include?(bytes) } }.to raise_error(Ikra::CompileError, /different encodings/)
  end

  it "are iterated with a block only" do
    expect { ["a"].pmap { |s| s.each_char } }.to raise_error(Ikra::CompileError, /String#each_char without a block gives an Enumerator/)
  end
end
