# frozen_string_literal: true

# A chain over lines runs over their words if its first block uses each word by itself, as `split` does.
RSpec.describe "words of lines" do
  include ReduceAsRuby::Examples

  # Expects a thread to end with what another one raises in it, after so many seconds of this work.
  def expect_stop(pause)
    started = Queue.new
    thread = Thread.new do
      Thread.current.report_on_exception = false
      started << true
      yield
    end
    started.pop
    sleep pause
    thread.raise(ArgumentError, "stop")
    expect { thread.value }.to raise_error(ArgumentError, "stop")
  end

  # What a program of both makes of lines.
  reduced = lambda do |lines, block|
    next lines.map_reduce(:+, &block) if lines.is_a?(Ikra::Lazy)

    lines.each_with_object({}) do |line, sums|
      out = Object.new
      out.define_singleton_method(:emit) { |key, value| sums[key] = sums.key?(key) ? sums[key] + value : value }
      block.call(line, out)
    end
  end
  programs = {
    "split and tally" => ->(lines) { lines.flat_map(&:split).tally },
    "split by a space" => ->(lines) { lines.flat_map { |line| line.chomp.split(" ") }.to_a },
    "strip" => ->(lines) { lines.flat_map { |line| line.strip.split }.to_a },
    "downcase" => ->(lines) { lines.flat_map { |line| line.downcase.split }.tally },
    "scan" => ->(lines) { lines.flat_map { |line| line.scan(/\b\w+/) }.tally },
    "scan with captures" => ->(lines) { lines.flat_map { |line| line.scan(/(\w)(\w)/) }.to_a },
    "a scan that looks at spaces" => ->(lines) { lines.flat_map { |line| line.scan(/\w+ \w+/) }.to_a },
    "select" => ->(lines) { lines.flat_map { |line| line.split.select { |word| word.size > 3 } }.uniq },
    "first" => ->(lines) { lines.flat_map(&:split).first(5) },
    "later stages" => ->(lines) { lines.flat_map(&:split).map(&:upcase).reject { |word| word.size < 2 }.group_by(&:size) },
    "count" => ->(lines) { lines.flat_map(&:split).count { |word| word > "d" } },
    "sum" => ->(lines) { lines.flat_map(&:split).sum(&:size) },
    "extremes" => ->(lines) { [lines.flat_map(&:split).min, lines.flat_map(&:split).max_by(&:size)] },
    "sort" => ->(lines) { lines.flat_map(&:split).sort.first(3) },
    "each" => ->(lines) { [].tap { |found| lines.flat_map(&:split).each { |word| found << word } } },
    "positions" => ->(lines) { lines.flat_map(&:split).each_with_index.map { |word, index| [word, index] }.to_a },
    "slices" => ->(lines) { lines.flat_map(&:split).each_slice(2).map(&:size).to_a },
    "pairs" => ->(lines) { reduced.call(lines, proc { |line, out| line.split.each { |word| out.emit(word, 1) } }) },
    "pairs of a named list" => lambda do |lines|
      reduced.call(lines, proc do |line, out|
        words = line.chomp.split
        words.each { |word| out.emit(word[0], word.size) if word != "the" }
      end)
    end,
    "pairs of matches" => ->(lines) { reduced.call(lines, proc { |line, out| line.scan(/[a-z]+/i) { |word| out.emit(word, 1) } }) },
    "pairs beside those of the line" => lambda do |lines|
      reduced.call(lines, proc do |line, out|
        out.emit("lines", 1)
        line.split.each { |word| out.emit(word, line.size) }
      end)
    end,
    "division" => ->(lines) { lines.flat_map(&:split).map { |word| 6 / (word.size - 9) }.to_a },
    "division before pairs" => ->(lines) { reduced.call(lines, proc { |line, out| line.split.each { |word| out.emit(word, 6 / (word.size - 9)) } }) }
  }
  texts = {
    "lines" => "#{"the cat\nThe dog  and\tcat\r\n\n" * 20}one more",
    "nothing" => "",
    "spaces" => " \n\t\n \r\n",
    "UTF-8" => "ä ö\nübung ß e\u0301\n",
    "NUL" => "a\0 b\n\0c \n d\0\0\n",
    "broken bytes" => "a b\xFF c\n\x80\n",
    "one long line" => "#{"x" * 500} #{"the cat " * 300}",
    "a word of nine letters" => "the cat\na difficult one\n"
  }
  # An exception, with the place that it tells.
  answer = lambda do |&program|
    program.call
  rescue StandardError => e
    [e.class, e.message, e.is_a?(Ikra::Located) ? e.ikra.index : nil]
  end

  on_every_backend do
    texts.each do |name, text|
      it "give what lines give: #{name}" do
        programs.each do |program, work|
          expected = answer.call { work.call(text.lines) }
          found = answer.call { work.call(Ikra.lines(text: text, backend: backend)) }
          # Kernels refuse what Ruby raises, or takes a byte at a time.
          next if !text.valid_encoding? && found.is_a?(Array) && found.first == Ikra::CompileError

          # Ruby does not tell the place.
          expected[2] = found[2] if expected.is_a?(Array) && expected.first.is_a?(Class)
          expect(found).to eq(expected), "#{program}: #{found.inspect[0, 200]} in place of #{expected.inspect[0, 200]}"
        end
      end
    end
  end

  counting = {
    "tally" => ->(lines) { lines.flat_map(&:split).tally },
    "pairs" => ->(lines) { lines.map_reduce(:+) { |line, out| line.split.each { |word| out.emit(word, 1) } } },
    "stripped lines" => ->(lines) { lines.flat_map { |line| line.strip.split }.tally }
  }

  describe "that are only counted" do
    counting.each do |name, program|
      it "need no kernel: #{name}" do
        text = "the cat\r\n  the\tdog \u00fc #{"x" * 16} #{"x" * 17} #{"x" * 16}y\n" * 50
        found = nil
        profile = Ikra.profile { found = program.call(Ikra.lines(text: text, backend: :cpu)) }
        expect(found.to_a).to eq text.split.tally.to_a
        expect(profile.sections.map { |section| [section.elements, section.backend.to_s] }).to eq [[text.bytesize, "cpu"]]
        expect(Ikra.explain { program.call(Ikra.lines(text: text, backend: :cpu)) }.to_s).to include("counting over 400 elements of words, on cpu")
        expect(found.keys.map(&:encoding).uniq).to eq [Encoding::UTF_8]
        # as tally and Hash#[]= make them
        expect(found.keys.map(&:frozen?).uniq).to eq [name == "pairs"]
      end

      it "are those of each file and of each slab: #{name}" do
        file("the c") do |one|
          file("at the\n\ncat ") do |two|
            expected = %w[the c at the cat].tally.to_a
            expect(program.call(Ikra.lines([one, two], backend: :cpu)).to_a).to eq expected
            stub_const("Ikra::Source::SLAB", 3)
            expect(program.call(Ikra.lines([one, two], backend: :cpu)).to_a).to eq expected
            File.open(one) { |input| expect(program.call(Ikra.lines([input, two], backend: :cpu)).to_a).to eq expected }
          end
        end
      end
    end

    it "give the most frequent ones without a Hash" do
      text = "a b b c c a d\n" * 3
      top = ->(count, text) { Ikra.lines(text: text, backend: :cpu).flat_map(&:split).top(count) }
      (0..6).each { |count| expect(top.call(count, text)).to eq [["a", 6], ["b", 6], ["c", 6], ["d", 3]].first(count) }
      profile = Ikra.profile { top.call(2, text) }
      expect(profile.sections.map { |section| [section.operation.to_s, section.elements] }).to eq [["top", text.bytesize]]
      expect(top.call(3, "")).to eq []
      # Kernels know these words, but only those of lines.
      zeroes = "a\0 b\n\0a\na\0\n"
      expect(zeroes.lines.flat_map { |line| line.strip.split }.tally).to include("a" => 2)
      expect(Ikra.lines(text: zeroes, backend: :cpu).flat_map { |line| line.strip.split }.top(1)).to eq [["a", 2]]
      expect { top.call(-1, text) }.to raise_error(ArgumentError, /negative/)
      expect { top.call(nil, text) }.to raise_error(ArgumentError, /no number/)
      expect([3, 1, 3, 2, 2].plazy(backend: :cpu).map { |x| x }.top(2)).to eq [[3, 2], [2, 2]]
    end

    it "may be those of a chain, and stay without a Hash in groups" do
      ones = proc { |word, out| out.emit(word, 1) }
      words = -> { Ikra.lines(text: "b a\na c\n", backend: :cpu).flat_map(&:split) }
      expect(words.call.map_reduce(:+, &ones).to_a).to eq [["b", 1], ["a", 2], ["c", 1]]
      expect(words.call.map_reduce(:+) { |word, out| out.emit(word, word.size + 1) }.to_a).to eq [["b", 2], ["a", 4], ["c", 2]]
      groups = words.call.map_reduce(:+, lazy: true, &ones)
      made = 0
      allow(Ikra).to receive(:__paired).and_wrap_original { |method, *lists| method.call(*lists).tap { made += 1 } }
      expect([groups.size, groups.top(2), groups.top(0), groups.inspect]).to eq [3, [["a", 2], ["b", 1]], [], "#<Ikra::Groups of 3>"]
      expect(made).to eq 0
      expect([groups["a"], groups["d"], groups.to_h, groups.to_a]).to eq [2, nil, { "b" => 1, "a" => 2, "c" => 1 }, [["b", 1], ["a", 2], ["c", 1]]]
      expect(made).to eq 1
      expect(groups.freeze.map_reduce(:+) { |(_word, count), out| out.emit(count, 1) }).to eq(1 => 2, 2 => 1)
      expect { groups.top(-1) }.to raise_error(ArgumentError, /negative/)
      expect(words.call.map_reduce(:+, lazy: true, order: :key, &ones).to_a).to eq [["a", 2], ["b", 1], ["c", 1]]
      expect(words.call.map_reduce(:+, lazy: true, reduce: ->(_word, counts) { counts.sum + 1 }, &ones).to_h).to eq("b" => 2, "a" => 3, "c" => 2)
      expect(Ikra.lines(text: "a\0 b\n", backend: :cpu).flat_map { |line| line.strip.split }.map_reduce(:+, lazy: true, &ones).to_a).to eq [["a\0", 1], ["b", 1]]
    end

    it "may be many, and of all lengths" do
      random = Random.new(3)
      words = Array.new(60_000) { |i| ("a".."e").to_a.sample(1 + (i % 5), random: random).join * (1 + (i % 7)) + (i % 3 == 0 ? i.to_s : "") }
      text = words.join(" ")
      counting.each_value { |program| expect(program.call(Ikra.lines(text: text, backend: :cpu)).to_a).to eq words.tally.to_a }
    end

    it "are not where some byte is broken, or strip takes away NUL" do
      broken = Ikra.lines(text: "a \xff b a\n", backend: :cpu)
      expect { counting["tally"].call(broken) }.to raise_error(Ikra::CompileError)
      text = "a\0 b\n\0a\n"
      ["tally", "stripped lines"].each { |name| expect(counting[name].call(Ikra.lines(text: text, backend: :cpu))).to eq counting[name].call(text.lines) }
      expect(counting["pairs"].call(Ikra.lines(text: text, backend: :cpu))).to eq("a\0" => 1, "b" => 1, "\0a" => 1)
    end

    it "give all that map_reduce makes of them" do
      emits = proc { |line, out| line.split.each { |word| out.emit(word, 1) } }
      lines = -> { Ikra.lines(text: "the cat the dog\n", backend: :cpu) }
      expect(lines.call.map_reduce(:+, order: :key, &emits).to_a).to eq [["cat", 1], ["dog", 1], ["the", 2]]
      expect(lines.call.map_reduce(:+, lazy: true, &emits).top(1)).to eq [["the", 2]]
      expect(lines.call.map_reduce(:+, reduce: ->(word, counts) { [word.size, counts] }, &emits)).to eq("the" => [3, [2]], "cat" => [3, [1]], "dog" => [3, [1]])
      expect(lines.call.map_reduce(:max, &emits)).to eq("the" => 1, "cat" => 1, "dog" => 1)
      expect(lines.call.map_reduce(:+, engine: :hash, &emits)).to eq("the" => 2, "cat" => 1, "dog" => 1)
      expect(lines.call.flat_map(&:split).uniq).to eq %w[the cat dog]
    end

    it "can be interrupted" do
      text = "the cat and the dog\n" * 3_000_000
      expect_stop(0.1) { loop { counting["tally"].call(Ikra.lines(text: text, backend: :cpu)) } }
    end
  end

  it "have no jobs that are longer than others" do
    profile = Ikra.profile { Ikra.lines(text: "the cat " * 500, backend: :cpu).flat_map(&:split).map(&:size).to_a }
    expect(profile.sections.map(&:elements)).to eq [1000]
  end

  it "are looked for in slabs only if lines are long" do
    stub_const("Ikra::Source::SLAB", 64)
    stub_const("Ikra::Source::HELD", 0)
    elements = lambda do |text|
      found = nil
      profile = Ikra.profile { found = Ikra.lines(text: text, backend: :cpu).flat_map(&:split).map(&:size).to_a }
      expect(found).to eq text.split.map(&:size)
      profile.sections.sum(&:elements)
    end
    expect(elements.call("the cat\n" * 500)).to eq 500
    expect(elements.call("the cat " * 500)).to eq 1000
  end

  it "end with their files, and with those of slabs" do
    file("the c") do |one|
      file("at the\n\ncat ") do |two|
        expect(Ikra.lines([one, two], backend: :cpu).flat_map(&:split).to_a).to eq %w[the c at the cat]
        stub_const("Ikra::Source::SLAB", 3)
        stub_const("Ikra::Lazy::Words::LONG", 2)
        expect(Ikra.lines([one, two], backend: :cpu).flat_map(&:split).to_a).to eq %w[the c at the cat]
        expect(Ikra.lines([one, two], backend: :cpu).map_reduce(:+) { |line, out| line.split.each { |word| out.emit(word, 1) } }).to eq("the" => 2, "c" => 1, "at" => 1, "cat" => 1)
      end
    end
  end

  it "leave exceptions to the lines, also in slabs and of inputs that are read once" do
    text = "the cat\n\na difficult one\nthe dog\n"
    pairs = ->(lines) { lines.map_reduce(:+) { |line, out| line.split.each { |word| out.emit(word, 6 / (word.size - 9)) } } }
    values = ->(lines) { lines.flat_map { |line| line.split.map { |word| 6 / (word.size - 9) } } }
    check = lambda do
      given = []
      [
        -> { pairs.call(Ikra.lines(text: text, backend: :cpu)) },
        -> { values.call(Ikra.lines(text: text, backend: :cpu)).sum },
        -> { values.call(Ikra.lines(text: text, backend: :cpu)).each { |value| given << value } },
        -> { IO.popen(["printf", text]) { |input| pairs.call(Ikra.lines(input, backend: :cpu)) } }
      ].each { |program| expect(&program).to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq 2 } }
      expect(given).to eq [-1, -1]
    end
    check.call
    stub_const("Ikra::Source::SLAB", 8)
    stub_const("Ikra::Source::HELD", 0)
    [1, 10, 100].each do |least|
      stub_const("Ikra::Lazy::Words::LONG", least)
      check.call
    end
  end

  it "do not hide what another thread raises" do
    text = "the cat\n" * 200_000
    [134_217_728, 0].each do |held|
      stub_const("Ikra::Source::HELD", held)
      chain = Ikra.lines(text: text, backend: :cpu).flat_map(&:split).map { |word| (1..1_000_000).sum { |i| i ^ word.size } }
      expect_stop(0.05) { chain.sum }
    end
  end

  it "are not used where a block asks for its index, draws, or changes something" do
    lines = Ikra.lines(text: "the cat\nthe dog\n", backend: :cpu)
    expect(lines.map_reduce(:+) { |line, out| line.split.each { |word| out.emit(word, Ikra.index) } }).to eq("the" => 1, "cat" => 0, "dog" => 1)
    seen = Ikra::MDArray.new([0, 0])
    expect(lines.flat_map { |line| line.split.map { |word| word.size.tap { seen[Ikra.index] += 1 } } }.to_a).to eq [3, 3, 3, 3]
    expect(seen.to_a).to eq [2, 2]
  end

  it "are not used where split is not Ruby's own" do
    output = run_ruby(<<~RUBY)
      class String
        def split = [self[0], size]
      end
      p Ikra.lines(text: "the cat\\nthe\\n", backend: :cpu).flat_map(&:split).to_a
    RUBY
    expect(output).to eq %(["t", 8, "t", 4]\n)
  end
end
