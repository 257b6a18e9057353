# frozen_string_literal: true

module Regexps
  # Random patterns of what kernels know, and texts in which they find something.
  class Generator
    ATOMS = [
      "a", "b", "c", "x", "-", "1", "é", "日", ".", '\d', '\w', '\s', '\h', '\W', '\S', '\D', '\n', "[ab]", "[^a]", "[a-cé]",
      '[^\n]', '[\d-]', "[a-c&&[^b]]"
    ].freeze
    LOOKS = ["^", "$", '\A', '\z', '\Z', '\b', '\B'].freeze
    PIECES = ["a", "b", "c", "ab", "\n", "\r\n", "\n\n", "é", "日", "😀", " ", "1", "x", "-", "_", "A", "Σς", "١", "\u0301", "«", "\u3000"].freeze
    # Those that know characters beyond ASCII by Ruby's tables.
    CLASSES = [
      "[[:alpha:]]", "[[:^alpha:]]", "[[:punct:]]", "[^[:space:]]", '\p{L}', '\P{Lower}', '\p{Greek}', '\p{^Alnum}', '\p{Punct}',
      "[[:upper:]é]", '[\p{Han}\d]', "[[:word:]&&[^a]]", "[[:digit:]]", "[[:blank:]]"
    ].freeze
    # Those of a pattern that ignores case.
    CASE_ATOMS = [
      "a", "b", "K", "s", "é", "Σ", "Ж", "1", ".", '\d', '\w', '\W', "[ab]", "[^s]", "[A-K]", '[\dk]', '\n', "[[:^alpha:]]", "[[:punct:]]",
      "[[:space:]]", "[^[:alpha:]]", '\p{Digit}', '\p{Space}'
    ].freeze
    CASE_PIECES = ["a", "b", "k", "S", "ſ", "K", "\u212a", "É", "ς", "ж", "σ", "\n", " ", "1", "-", "ß", "ﬆ", "st", "日"].freeze
    MANY = ["*", "*?", "+", "+?", "{2}", "{1,2}", "{,2}", "{2,}", "{1,3}?", "{0,2}?"].freeze

    def initialize(seed, ignores_case)
      @random = Random.new(seed)
      @ignores_case = ignores_case
    end

    def regexp(groups: false)
      @groups = groups
      options = @ignores_case ? [Regexp::IGNORECASE] : [0, 0, Regexp::MULTILINE]
      Regexp.new("#{alternatives(2).first}é"[0..-2], pick(options)) # in UTF-8
    end

    def texts(count)
      pieces = @ignores_case ? CASE_PIECES : PIECES
      ["", "\n", "a", "a\n"] + Array.new(count) { Array.new(@random.rand(9)) { pick(pieces) }.join }
    end

    private

    def pick(list) = list.sample(random: @random)

    # Each gives a text, and whether it may match nothing. Kernels refuse to repeat that.
    def alternatives(depth)
      all = Array.new(@random.rand(3) == 0 ? 2 : 1) { sequence(depth) }
      [all.map(&:first).join("|"), all.any?(&:last)]
    end

    def sequence(depth)
      all = Array.new(@random.rand(4)) { piece(depth) }
      [all.map(&:first).join, all.all?(&:last)]
    end

    def piece(depth)
      text, empty = atom(depth)
      case @random.rand(8)
      when 0, 1
        return [text, empty] if empty

        many = pick(MANY)
        [text + many, many.match?(/\A(\*|\{[,0])/)]
      when 2 then LOOKS.include?(text) ? [text, true] : ["(?:#{text})" + pick(["?", "??"]), true]
      else [text, empty]
      end
    end

    def atom(depth)
      kind = @random.rand(10)
      return [pick(@ignores_case ? CASE_ATOMS : pick([ATOMS, CLASSES])), false] if kind < 6 || depth == 0
      return [pick(LOOKS), true] if kind == 6

      text, empty = alternatives(depth - 1)
      ["#{@groups && kind == 7 ? "(" : "(?:"}#{text})", empty]
    end
  end

  # Blocks over four regular expressions and one with groups.
  BLOCKS = {
    "match" => lambda { |a, b, c, d, _|
      ->(s) { [s.match?(a), b.match?(s), s =~ c, d === s, s !~ a, s.index(b, 1), s.match?(d, 2), s.start_with?(a), s.index(c, -2)] }
    },
    "take parts" => ->(a, b, c, d, _) { ->(s) { [s[a], s[b], s[c], s[d], s.partition(a), s.partition(b)] } },
    "scan" => ->(a, b, c, _, _) { ->(s) { [s.scan(a), s.scan(b), s.scan(c)] } },
    "split" => ->(a, b, c, d, _) { ->(s) { [s.split(a), s.split(b, -1), s.split(c, 2), s.split(d)] } },
    "replace" => ->(a, b, c, d, _) { ->(s) { [s.sub(a, "é"), s.gsub(b, ""), s.gsub(c, "<>"), s.sub(d, "_")] } },
    "replace by references" => lambda { |a, b, _, _, groups|
      ->(s) { [s.gsub(a, '<\0>'), s.sub(b, "\\`|\\'"), s.gsub(groups, '\2\1\\\x\3'), s.sub(groups, '[\1]')] }
    },
    "replace by a block" => lambda { |a, b, _, _, _|
      lambda do |s|
        n = 0
        kept = s.gsub(b) do |part|
          next "!" if part == "a"

          part
        end
        [s.gsub(a) { |part| "<#{part}#{n += 1}>" }, s.sub(b) { |part| part.size }, kept, n]
      end
    },
    "split by groups" => ->(_, _, _, _, groups) { ->(s) { [s.split(groups), s.split(groups, -1), s.split(groups, 2)] } },
    "capture" => lambda { |_, _, _, _, groups|
      ->(s) { [s[groups, 0], s[groups, 1], s[groups, 2], s[groups, -1], s.scan(groups)] }
    }
  }.freeze

  WORD = /\w+/

  def self.value(text) = text =~ /(\d+)/ ? Integer($1) : -1
end

RSpec.describe "regular expressions" do
  around do |example|
    # Ruby warns of patterns that nobody would write
    verbose, $VERBOSE = $VERBOSE, nil
    example.run
  ensure
    $VERBOSE = verbose
  end

  on_every_backend do
    Regexps::BLOCKS.each do |name, make|
      it "#{name} as Ruby does, for patterns and texts at random" do
        compared = 0
        10.times do |round|
          generator = Regexps::Generator.new(name.sum * 100 + round, round.odd?)
          regexps = Array.new(4) { generator.regexp } << generator.regexp(groups: true)
          block = make.call(*regexps)
          texts = generator.texts(60)
          begin
            got = texts.pmap(backend:, &block)
          rescue Ikra::CompileError => e
            expect(e.message).to match(/one-pass|may be one where case is ignored/)
            next
          end
          texts.zip(got) { |text, value| expect([regexps, text, value]).to eq [regexps, text, block.call(text)] }
          compared += 1
        end
        expect(compared).to be > 5
      end
    end

    it "are known in constants, captured variables and arguments" do
      digits = /\d+/
      expect { |s| [s[Regexps::WORD], s[digits], s.then { |t| t =~ digits }] }
        .to be_same_as_ruby.over("ab 12", "", "-")
      sections = [/a/, /b/, /a/].map { |regexp| %w[a b].pmap(backend:) { |s| s.match?(regexp) } }
      expect(sections).to eq [[true, false], [false, true], [true, false]]
    end

    it "choose in case and in iterators" do
      expect do |s|
        case s
        when /\A\d+\z/ then :number
        when Regexps::WORD then :word
        else s.chars.count { |c| c =~ /[-+]/ }
        end
      end.to be_same_as_ruby.over("12", "ab", "-+", "")
      expect { |s| [s.split("").grep(/[a-c]/), s.chars.any?(/x/)] }.to be_same_as_ruby.over("abcx", "")
      expect { |s| s.is_a?(String) && s.size > 1 ? s.match?(s.size > 2 ? /a/ : /b/) : nil }.to be_same_as_ruby.over("abc", "ab", "a", 1)
      expect { |s| [/a/ === s, s.nil?] }.to be_same_as_ruby.over("a", nil, 1)
    end

    it "give groups to scan's block" do
      expect do |s|
        pairs = ""
        s.scan(/(\w)=(\d)?/) { |key, value| pairs += "#{value}#{key};" }
        words = 0
        s.scan(/\w+/) { |word| words += word.size }
        [pairs, words]
      end.to be_same_as_ruby.over("a=1, b=, c=3", "", "==")
    end

    it "leave $1 and $& behind" do
      texts = ["k=12", "k=", "", "é=7 b=8", "=3k"]
      expect { |s| s =~ /(\w)=(\d)/ ? [$1, $2, $3, $&] : $1 }.to be_same_as_ruby.over(*texts)
      expect { |s| /=(\d)/ =~ s && $1 }.to be_same_as_ruby.over(*texts)
      expect { |s| s !~ /=(\d)/ ? 1 : $1 }.to be_same_as_ruby.over(*texts)
      expect { |s| [s[/=(\d)/], $1, s.sub(/(k)/, "x"), $1, s.size] }.to be_same_as_ruby.over(*texts)
      expect { |s| s =~ /(=)/ or s =~ /(k)/; $1 }.to be_same_as_ruby.over(*texts)
      expect do |s|
        sum = 0
        s.each_char { |c| sum += $1.to_i if c =~ /(\d)/ }
        sum
      end.to be_same_as_ruby.over(*texts)
      expect { |s| Regexps.value(s) }.to be_same_as_ruby.over(*texts)
      expect do |s|
        case s
        when "k=" then 1
        when /=(\d)/ then $1
        when /(k)/ then [$1]
        else 5
        end
      end.to be_same_as_ruby.over(*texts)
      expect do |s|
        sum = 0
        while s =~ /=(\d)/
          sum += $1.to_i
          s = s.sub("=", "")
        end
        sum
      end.to be_same_as_ruby.over(*texts)
    end

    it "give what they have found by match" do
      texts = ["k=12 z", "k=", "", "é=7 b=8", "=3k", "2026-11-30 x", "日本=1", "aaa"]
      date = /(?<year>\d+)-(?<month>\d+)-(?<day>\d+)/
      expect { |s| (m = s.match(/(\w)=(\d+)?/)) ? [m[0], m[1], m[2], m[-1], m[9], m.pre_match, m.post_match, m.to_s, m.to_a, m.captures, m.size] : nil }
        .to be_same_as_ruby.over(*texts)
      expect { |s| (m = s.match(date)) && [m[:year], m[:month].to_i, m.values_at(1, 3), m.offset(2), m.begin(:day), m.end(0)] }.to be_same_as_ruby.over(*texts)
      expect { |s| [date.match(s)&.captures, s.match(/(\d)/, 3)&.to_s, /=/.match(s, -3)&.begin(0), s.match(/x/, 99).nil?, /a/.match(nil)] }.to be_same_as_ruby.over(*texts)
      expect { |s| [s.match(/(\w)=(\d+)/) { |m| m[2].to_i * 2 }, /(\d)(\d)?/.match(s) { |m| m.captures.compact.size }] }.to be_same_as_ruby.over(*texts)
      expect { |s| s.match(/(\d+)/) ? $1.to_i : 0 }.to be_same_as_ruby.over(*texts)
      expect do |s|
        count = at = 0
        while (m = s.match(/[\da]/, at))
          count += 1
          at = m.end(0)
        end
        name, value = s.match(/(\w)=(\d+)/)&.captures
        [count, name, value, s.match(/(x)?=/)&.offset(1), s.match(/(=)|k/).is_a?(MatchData)]
      end.to be_same_as_ruby.over(*texts)
      expect { |s| (m = s.match(/(x)?=/)) ? m.begin(5) : 0 }.to be_same_as_ruby.over("=", "")
    end

    it "do not give or keep what they have found" do
      kept = raise_error(Ikra::CompileError, /keep no MatchData in objects and arrays, and give none/)
      found = nil
      [->(s) { s.match(/a/) }, ->(s) { [s.match(/a/)] }, ->(s) { found = s.match(/a/) }].each { |block| expect { ["a"].pmap(backend:, &block) }.to kept }
      expect { ["a"].pmap_reduce(->(a, _) { a }, backend:) { |s, out| out.emit(s, s.match(/a/)) } }.to kept
      host = "ab".match(/b/)
      expect { ["a"].pmap(backend:) { |s| s + host[0] } }.to raise_error(Ikra::CompileError, /cannot hold a MatchData, which host is/)
      expect { [host].pmap(backend:) { |m| m[0] } }.to raise_error(Ikra::CompileError, /cannot hold a MatchData/)
      expect { ["a"].pmap(backend:) { |s| s.match("a") ? 1 : 0 } }.to raise_error(Ikra::CompileError, /match with a Regexp only/)
      expect { ["ab"].pmap(backend:) { |s| (m = s.match(/(a|ab)(b?)/)) ? m[1] : 0 } }.to raise_error(Ikra::CompileError, /not one-pass/)
      expect { ["a"].pmap(backend:) { |s| (m = s.match(/(?<x>a)/)) ? m[:y] : 0 } }.to raise_error(Ikra::CompileError, /no group of this name/)
      expect { ["a"].pmap(backend:) { |s| (m = s.match(/a/)) ? m.foo : 0 } }.to raise_error(NoMethodError, /undefined method .foo. for .*MatchData/)
      expect { ["a"].pmap(backend:) { |s| s.match(/a/) == s.match(/a/) } }.to raise_error(Ikra::CompileError, /compare no MatchData/)
      expect { |s| (m = s.match(/(a)b?/)) ? [m.frozen?, m.class == MatchData, m.instance_of?(MatchData), m.equal?(m), m.nil?, m == nil, m != nil, m == s] : 0 }
        .to be_same_as_ruby.over("ab", "")
      expect(found).to be_nil
    end

    it "leave $1 to the blocks of gsub and sub, for each match" do
      texts = ["k=12 z=3", "", "é=7 b=8", "  ab cd ", "x1y22z333", "a.b.c", "日本=1, 2"]
      expect { |s| [s.gsub(/(\d+)/) { ($1.to_i + 1).to_s }, s.gsub(/\b(\w)/) { $1.upcase }, s.sub(/(\d)(\d)?/) { "#{$1}-#{$2}" }, s.gsub(/(x*)/) { "[#{$1}]" }] }
        .to be_same_as_ruby.over(*texts)
      expect { |s| [s.gsub(/(\w)=(\d)/) { |m| "#{$2}=#{$1}(#{m})" }, s.gsub(/\B(.)/) { "<#{$1}#{$&}>" }, s.gsub(/^(\s*)(\w)/) { $1 + $2.upcase }, s.gsub(/(\d)/) { _1 + $1 }] }
        .to be_same_as_ruby.over(*texts)
      expect do |s|
        n = 0
        left = s.gsub(/(\d)/) { n += $1.to_i; "" }
        inner = s.gsub(/(\d)/) { x = $1; "a1".gsub(/([a-z])/) { $1 + x } + x }
        t = s + "b2"
        changed = t.gsub(/(\d)/) do |part|
          part = "<" + part
          t = "gone"
          part + $1
        end
        [n, left, inner, changed, t, s.strip.gsub(/(a)|(b)/) { $1 ? "A" : $2 ? "B" : "?" }]
      end.to be_same_as_ruby.over(*texts)
    end

    it "have groups with names" do
      date = /(?<year>\d+)-(?<month>\d\d?)/
      expect { |s| [s[date, :year], s[date, :month], s[/(?<a>é)/, :a], s[date, 2], s.gsub(date, '\2<\0>'), s.scan(date)] }
        .to be_same_as_ruby.over("2026-11", "", "é 1-2 3-4", "-")
    end

    it "replace where groups are not one-pass, but not asked for" do
      expect { |s| [s.gsub(/(a|ab)(b?)/, "x"), s.gsub(/(a|ab)(b?)/, '<\0>')] }.to be_same_as_ruby.over("ab", "b", "")
    end

    it "leave no $1 where kernels do not know the match" do
      refused = raise_error(Ikra::CompileError, /which match this variable means/)
      match = ->(text) { text =~ /(b)/ }
      [
        ->(s) { [$1, s =~ /(a)/] },
        ->(s) { [s.size > 2 ? s =~ /(a)/ : 0, $1] },
        ->(s) { [s =~ /(a)/, s.scan(/b/), $1] },
        ->(s) { [s =~ /(a)/, match.call(s), $1] },
        ->(s) { [s =~ /(a)/, s.then(&match), $1] },
        ->(s) { [s =~ /(a)/, s.scan(/(b)/) { $1 }] },
        ->(s) { [s =~ /(a)/, s.match(/(b)/) { $1 }] },
        ->(s) { [s =~ /(a)/, /(b)/.match(s) { $1 }] },
        ->(s) { [s =~ /(a)/, s.gsub("b") { $1.to_s }] },
        ->(s) { [s.gsub(/(b)/) { $1 }, $1] },
        ->(s) { s.gsub(/(b)/) { s.scan(/(a)/) && $1 } },
        ->(s) { [s =~ /(a)/, s.chars.grep(/(b)/) { $1 }] }
      ].each { |block| expect { ["a"].pmap(backend:, &block) }.to refused }
      expect { ["a"].pmap(backend:) { |s| [s =~ /a/, $`] } }.to raise_error(Ikra::CompileError, /variable of the last match/)
    end

    it "know the classes of characters that Ruby knows" do
      # each two characters are one text, as far as they are in a class or have a case, with some of the others
      codes = (0..0x24ff).to_a + (0xa640..0xa7ff).to_a + (0xfb00..0xffef).to_a + (0x10400..0x104ff).to_a + 0x2500.step(0x10ffff, 4099).to_a
      texts = codes.reject { |code| (0xd800..0xdfff).cover?(code) }.each_slice(2).map { |slice| slice.pack("U*") }
      expect do |s|
        [s.scan(/[[:alpha:]]/).size, s.scan(/[[:punct:]]/).size, s =~ /[[:space:]]/, s =~ /[[:upper:]]/, s =~ /\b/, s[/\p{Lu}|\p{Punct}/], s =~ /\p{Emoji}/]
      end.to be_same_as_ruby.over(*texts)
    end

    it "have options and free spacing" do
      expect do |s|
        [s[/A . B/xi], s[/a # a letter
                          .* b/mx], s[%r{/a|b/}], s[/a\/b/], s[/(?i:A)b/], s[/(?-i:a)B/i], s[/\u{e9}|\x61|\t/]]
      end.to be_same_as_ruby.over("axb", "a\nb", "/a", "a/b", "AB")
    end

    it "raise what Ruby raises for bytes that are no characters" do
      expect { |s| [s.match?(/a/), s =~ /a/] }.to be_same_as_ruby.over("a", "a\xff", "a\xff".dup.force_encoding("US-ASCII"))
    end

    it "are refused where kernels do not know what Ruby answers" do
      refuse = ->(about) { raise_error(Ikra::CompileError, about) }
      expect { ["éss"].pmap(backend:) { |s| s.match?(/ss/i) } }.to refuse[/text in ASCII only, as some of its letters may be one/]
      expect { ["é"].pmap(backend:) { |s| s.match?(/ß/i) } }.to refuse[/a character that stands for several where case is ignored/]
      expect { ["é"].pmap(backend:) { |s| s.match?(/[é]/i) } }.to refuse[/a character beyond ASCII where case is ignored/]
      expect { ["ss"].pmap(backend:) { |s| s.match?(/\A\p{Alpha}\z/i) } }.to refuse[/`\\p{Alpha}` where case is ignored/]
      expect { ["s"].pmap(backend:) { |s| s.match?(/[\W_]/i) } }.to refuse[/stand for several in a set/]
      expect { ["st"].pmap(backend:) { |s| s.match?(/[[:alpha:]]a/i) } }.to refuse[/stand for several in a set/]
      expect { ["ß"].pmap(backend:) { |s| s.match?(/s{2}/i) } }.to refuse[/text in ASCII only/]
      us_ascii = Regexp.new("\\p{Alpha}".encode("US-ASCII"))
      expect { ["é"].pmap(backend:) { |s| s.match?(us_ascii) } }.to refuse[/Regexp/]
      expect { ["\xff".b].pmap(backend:) { |s| s.match?(/a/) } }.to refuse[/UTF-8 or ASCII only/]
      expect { ["a"].pmap(backend:) { |s| s.match?(/a(?=b)/) } }.to refuse[%r{look-ahead in the regular expression /a\(\?=b\)/}]
      expect { ["a"].pmap(backend:) { |s| s[/(a|ab)(b?)/, 1] } }.to refuse[/not one-pass/]
      expect { ["a"].pmap(backend:) { |s| s.match?(/[ab]*a[ab]{20}/) } }.to refuse[/more than 1 MiB/]
      expect { ["a"].pmap(backend:) { |s| s.match?(/#{s}/) } }.to refuse[/interpolation/]
      expect { ["a"].pmap(backend:) { |s| s.gsub(/(a|ab)(b?)/, '\1') } }.to refuse[/groups of a regular expression that is one-pass/]
      expect { ["a"].pmap(backend:) { |s| s.gsub(/(?<x>a)/, '\k<x>') } }.to refuse[/in a replacement/]
      expect { ["a"].pmap(backend:) { |s| s[/(?<x>a)/, "x"] } }.to refuse[/by Symbols only/]
      expect { ["a"].pmap(backend:) { |s| s[/(?<x>a)/, :y] } }.to refuse[/no group of this name/]
      expect { ["a"].pmap(backend:) { |s| s.match?(/(?:\w{1,50}\s?){1,50}!/) } }.to refuse[/takes too long to build/]
      expect { ["a"].pmap(backend:) { |s| s != /a/ } }.to refuse[/by !=/]
      expect { ["a"].pmap(backend:) { |_| /a/ } }.to refuse[/keep no regular expressions/]
      expect { ["a"].pmap(backend:) { |s| /(?<letter>a)/ =~ s ? letter : nil } }.to refuse[/assigns variables/]
      behind = /(?<=a)b/
      expect { ["a"].pmap(backend:) { |s| s.match?(behind) } }.to refuse[/look-behind in the regular expression .*behind is/]
    end
  end
end
