# frozen_string_literal: true

require "etc"
require "zlib"

# Input that is larger than a slab: the answers are those of all records at once, and of Ruby.
RSpec.describe "input in slabs" do
  include ReduceAsRuby::Examples

  words = %w[the a cat dog over naïve ÉTÉ 漢字 -]
  texts = {
    "words" => Array.new(60) { |i| "#{words.rotate(i * 7).first(i % 6).join(" ")}\n" }.join,
    "no final newline" => "#{"the cat\na dog\n" * 9}a cat",
    "empty lines" => "\n\n\nthe cat\n\n\n\n\n\n\na dog\n\n\n\n\n",
    "CRLF" => "the cat\r\n\r\na dog\r\n" * 8,
    "broken bytes" => "the\xFF cat\n\x80\nthe\xFF \xE2\x82\n" * 5,
    "a long line" => "a\nb b\n#{"the cat " * 60}\nb\na b\n",
    "one line" => "the cat " * 20,
    "zeros" => "the\0cat\nthe\0cat\n\0\n" * 7
  }
  sizes = [1, 7, 64, 1024]

  # Runs the block with slabs of so many bytes.
  def slabs_of(bytes)
    stub_const("Ikra::Source::SLAB", bytes)
    stub_const("Ikra::Source::HELD", 0)
    yield
  end

  def streamed?(chain) = chain.is_a?(Ikra::Lazy::Streamed)

  # What both mean, with the bits of Floats, encodings and the order of Hashes.
  def shown(value)
    case value
    when Hash then value.map { |pair| shown(pair) }
    when Array then value.map { |one| shown(one) }
    when String then [value.b, value.encoding]
    when Float then [:float, [value].pack("G")]
    else [value.class, value]
    end
  end

  folds = {
    "tally" => ->(lines) { lines.tally },
    "count" => ->(lines) { [lines.count, lines.count { |line| line.bytesize.odd? }, lines.count("a\n")] },
    "sum" => ->(lines) { [lines.map(&:bytesize).sum, lines.sum(5, &:bytesize), lines.map { |line| line.bytesize / 3.0 }.sum] },
    "extremes" => ->(lines) { lines.map(&:bytesize).then { |all| [all.min, all.max, all.minmax, all.select { |size| size > 900 }.min] } },
    "extremes of Floats" => ->(lines) { lines.map { |line| 1.0 / line.bytesize }.then { |all| [all.min, all.max, all.minmax] } },
    "extremes of Strings" => ->(lines) { [lines.min, lines.max, lines.minmax] },
    "reduce" => ->(lines) { lines.map(&:bytesize).then { |all| [all.reduce { |a, b| a + b }, all.reduce(3) { |a, b| a > b ? a : b }, all.reduce(:+), all.reduce(2, :+)] } },
    "uniq" => ->(lines) { [lines.uniq, lines.uniq(&:bytesize), lines.map(&:bytesize).uniq] },
    "group_by" => ->(lines) { [lines.group_by(&:bytesize), lines.map(&:bytesize).group_by(&:odd?)] },
    "first, find" => ->(lines) { [lines.first, lines.first(5), lines.find { |line| line.bytesize > 7 }, lines.any?(&:empty?), lines.select { |line| line.bytesize > 1 }.first(3)] },
    "to_a, each" => ->(lines) { [lines.to_a, lines.each_with_object([]) { |line, list| list << line }, lines.reject { |line| line.bytesize < 3 }.to_a] },
    "stages" => ->(lines) { lines.flat_map { |line| [line.bytesize, 1] }.filter_map { |x| x * 2 if x > 1 }.reject { |x| x > 50 }.tally },
    "positions" => ->(lines) { [lines.with_index.map { |line, i| line.bytesize * i }.tally, lines.select { |line| line.bytesize > 2 }.take(3).to_a, lines.each_slice(4).map(&:size).to_a] },
    "first and last records" => lambda do |lines|
      lengths = lines.map(&:bytesize)
      ends = [lines.take(5), lines.drop(3), lines.take(0), lines.drop(1000), lengths.take(9).drop(2), lines.drop(4).take(5), lengths.drop(2).drop(2).take(4), lines.take(7).take(3)]
      ends.flat_map { |chain| [chain.to_a, chain.tally, chain.count, chain.first(2), chain.map_reduce(:+) { |line, out| out.emit(line, 1) }] }
    end,
    "indices" => lambda do |lines|
      numbered = lines.with_index
      [
        numbered.map { |line, i| line.bytesize * i }.tally, numbered.select { |line, i| (line.bytesize + i).odd? }.map { |_line, i| i }.to_a, numbered.first(9),
        lines.map(&:bytesize).with_index(5).map { |size, i| size + i }.sum, lines.drop(2).with_index.map { |_line, i| i }.to_a, lines.take(6).with_index(-3).to_a,
        numbered.map_reduce(:max) { |(line, i), out| out.emit(line, i) }, numbered.flat_map { |line, i| [line.bytesize, i] }.tally,
        lines.map(&:bytesize).with_index { |size, i| size + i }.tally, lines.with_index.with_index.count, numbered.map { |line, i| line.bytesize * i }.reduce { |a, b| a > b ? a : b }
      ]
    end,
    "the index" => ->(lines) { lines.map { Ikra.index }.uniq },
    "sort" => ->(lines) { [lines.sort, lines.map(&:bytesize).sort, lines.min_by(&:bytesize), lines.max(2)] }
  }
  reductions = {
    "sums" => [:+, {}, ->(line, out) { out.emit(line.byteslice(0, 3), line.bytesize); out.emit("all", 1) }],
    "sums of Floats" => [:+, {}, ->(line, out) { out.emit(line.bytesize % 3, 0.1 * line.bytesize); out.emit(:all, -1e17 / (line.bytesize + 1)) }],
    "sums of mixed numbers" => [:+, {}, ->(line, out) { out.emit(line.bytesize % 3, line.bytesize.even? ? 2**53 + 1 : 0.1) }],
    "joined Strings" => [:+, {}, ->(line, out) { out.emit(line.bytesize % 4, line) }],
    "extremes" => [:max, {}, ->(line, out) { out.emit(line.byteslice(0, 1), line.bytesize) }],
    "extremes of Floats" => [:min, { order: :none }, ->(line, out) { out.emit(line.byteslice(0, 1), line.bytesize * -0.0) }],
    "bits" => [:|, {}, ->(line, out) { out.emit(line.bytesize % 4, line.bytesize) }],
    "a lambda" => [->(a, b) { "#{a}#{b}" }, {}, ->(line, out) { out.emit(line.bytesize % 4, line.bytesize.to_s) }],
    "a lambda that is not associative" => [->(a, b) { a * 0.5 + b }, {}, ->(line, out) { out.emit(line.bytesize % 4, line.bytesize * 1.5) }],
    "lists" => [nil, { reduce: ->(key, list) { [key, list.size, list] } }, ->(line, out) { out.emit(line.bytesize % 4, line.bytesize) }],
    "lists of lines" => [nil, { reduce: ->(_key, list) { list.last } }, ->(line, out) { out.emit(line.bytesize % 4, line) }],
    "both" => [:+, { reduce: ->(key, list) { [key, list] } }, ->(line, out) { out.emit([line.byteslice(0, 1), :key], 1) }],
    "pairs" => [nil, {}, ->(line, out) { out.emit(line, line.bytesize) if line.bytesize > 3 }],
    "no pairs" => [:+, {}, ->(line, out) { out.emit(line, 1) if line.bytesize > 5000 }],
    "keys of several kinds" => [:+, {}, ->(line, out) { out.emit([nil, line.bytesize, line.bytesize / 2.0, [line.bytesize, nil]][line.bytesize % 4], 1) }]
  }

  texts.each do |name, text|
    it "gives what all records at once give: #{name}" do
      file(text) do |path|
        expected = folds.transform_values { |fold| shown(fold.call(Ikra.lines(path, backend: :cpu))) }
        sizes.each do |size|
          slabs_of(size) do
            lines = Ikra.lines(path, backend: :cpu)
            expect(streamed?(lines)).to be(text.bytesize > size)
            folds.each do |fold, run|
              found = shown(run.call(lines))
              expect(found).to eq(expected[fold]), "#{fold} in slabs of #{size}: #{found.inspect[0, 500]} is not #{expected[fold].inspect[0, 500]}"
              lines = Ikra.lines(path, backend: :cpu) unless !streamed?(lines) || lines.in_slabs?
            end
          end
        end
      end
    end

    it "reduces as all records at once: #{name}" do
      file(text) do |path|
        reductions.each do |program, (combine, more, block)|
          expected = shown(ReduceAsRuby.oracle(File.foreach(path), combine, more[:reduce], block))
          (name == "words" ? backends.product([64]) : [[:cpu, 7], [:cpu, 64], [:reference, 64]]).each do |backend, size|
            slabs_of(size) do
              found = Ikra.lines(path, backend: backend).map_reduce(combine, **more, &block)
              expect(shown(found)).to eq(expected), "#{program} on #{backend} in slabs of #{size}: #{found.inspect[0, 500]}"
            end
          end
        end
      end
    end
  end

  it "takes several files, inputs and texts, whose last records end with them" do
    parts = ["a\nb", "", "cc\n", "\n", "d" * 40, "e\r\nf"]
    lines = parts.flat_map { |part| part.each_line.to_a }
    bytes = parts.flat_map { |part| part.bytes.each_slice(3).to_a }
    file(parts[0]) do |one|
      file(parts[4]) do |two|
        [3, 8, 32].each do |size|
          slabs_of(size) do
            sources = -> { [one, StringIO.new(parts[1]), StringIO.new(parts[2]), StringIO.new(parts[3]), two, StringIO.new(parts[5])] }
            expect(Ikra.lines(sources.call).to_a).to eq lines
            expect(Ikra.lines(sources.call, chomp: true).tally.to_a).to eq lines.map(&:chomp).tally.to_a
            expect(Ikra.lines(sources.call).sort).to eq lines.sort
            expect(Ikra.bytes(sources.call, 3).to_a).to eq bytes
            expect(Ikra.bytes(sources.call, 3).tally.to_a).to eq bytes.tally.to_a
            expect(Ikra.bytes(sources.call, 3).sort).to eq bytes.sort
            expect(Ikra.bytes(sources.call).tally.to_a).to eq bytes.flatten.tally.to_a
          end
        end
      end
    end
  end

  it "keeps the encodings of its inputs" do
    slabs_of(4) do
      file("a\nü\nb\n") do |path|
        found = File.open(path, "rb") { |input| Ikra.lines([path, input, path]).to_a }
        expect(shown(found)).to eq shown(File.foreach(path).to_a + File.foreach(path, mode: "rb").to_a + File.foreach(path).to_a)
      end
    end
  end

  it "refuses inputs that Ruby converts to another encoding" do
    file("a\nü\n" * 9) do |path|
      [8, 1 << 20].each do |size|
        slabs_of(size) do
          File.open(path, "r:utf-8:utf-16le") do |input|
            expect { Ikra.lines(input) }.to raise_error(ArgumentError, /is in UTF-8 and converted to UTF-16LE: kernels know/)
          end
          File.open(path, "r:utf-8:utf-8") { |input| expect(Ikra.lines(input).to_a).to eq %W[a\n ü\n] * 9 }
        end
      end
    end
  end

  it "sums exactly what is no number before all slabs are added" do
    great = [2**63 - 1, 2**63 - 1, -(2**63), -(2**63), 5]
    text = great.map { |number| "#{number}\n" }.join
    floats = ["1e308", "1e308", "-1e308", "1e-300", "-1e308", "3", "0.1", "-0.1"]
    slabs_of(8) do
      backends.each do |backend|
        sum = ->(some) { Ikra.lines(text: some, backend: backend).map_reduce(:+) { |line, out| out.emit(1, line.to_i) } }
        expect(sum.call(text)).to eq(1 => great.sum)
        expect { sum.call("#{2**62}\n#{2**62}\n1\n") }.to raise_error(Ikra::IntegerOverflow, "the sum of a group is an Integer beyond 64 bits")
        found = Ikra.lines(text: "#{floats.join("\n")}\n", backend: backend).map_reduce(:+) { |line, out| out.emit(1, line.to_f) }
        expect(found).to eq(1 => floats.sum(0r, &:to_r).to_f)
        signs = ["-0.0\n-0.0\n-0.0\n-0.0\n", "-0.0\n-0.0\n-0.0\n0.0\n", "1.5\n-0.0\n-1.5\n-0.0\n"].map do |some|
          shown(Ikra.lines(text: some, backend: backend).map_reduce(:+) { |line, out| out.emit(1, line.to_f) }[1])
        end
        expect(signs).to eq(shown([-0.0, 0.0, 0.0]))
      end
    end
  end

  it "makes sums shorter that are not rounded" do
    lines = Array.new(300) { |i| "#{10.0**(i * 7 % 300 - 150)}\n" }
    slabs_of(20) do
      found = Ikra.lines(text: lines.join, backend: :cpu).map_reduce(:+) { |line, out| out.emit(1, line.to_f) }
      expect(found).to eq(1 => lines.sum(0r) { |line| line.to_f.to_r }.to_f)
    end
  end

  it "keeps each NaN apart, and finds keys by their own methods" do
    point = Struct.new(:x)
    text = "1\n2\n1\n3\n2\n1\n" * 4
    slabs_of(6) do
      lines = Ikra.lines(text: text, backend: :cpu)
      expect(lines.map_reduce(:+) { |line, out| out.emit(line.to_i == 3 ? 0.0 / 0 : 1.0, 1) }.size).to eq 5
      expect(lines.map_reduce(:+) { |line, out| out.emit(point.new(line.to_i), 1) }).to eq(point.new(1) => 12, point.new(2) => 8, point.new(3) => 4)
    end
  end

  it "gives keys that are frozen copies, and a tally of the very elements" do
    slabs_of(16) do
      lines = Ikra.lines(text: "the cat\nthe dog\n" * 9, chomp: true)
      expect(lines.map_reduce(:+) { |line, out| out.emit(line, 1) }.keys).to all(be_frozen)
      tally = lines.tally
      expect([tally, tally.keys.any?(&:frozen?)]).to eq [{ "the cat" => 9, "the dog" => 9 }, false]
    end
  end

  it "orders, keeps and chooses results" do
    slabs_of(16) do
      lines = Ikra.lines(text: "b b a\nc a\na d\n" * 5, chomp: true)
      block = ->(line, out) { line.split.each { |word| out.emit(word, 1) } }
      expect(lines.map_reduce(:+, order: :key, &block).to_a).to eq [["a", 15], ["b", 10], ["c", 5], ["d", 5]]
      groups = lines.map_reduce(:+, lazy: true, &block)
      expect([groups.size, groups["b"], groups.top(2)]).to eq [4, 10, [["a", 15], ["b", 10]]]
      %i[small hash group].each { |engine| expect(lines.map_reduce(:+, engine: engine, &block)).to eq("b" => 10, "a" => 15, "c" => 5, "d" => 5) }
      count = Class.new(Ikra::MapReduce) do
        def map(line) = line.split.each { |word| emit(word, 1) }
        def combine(one, other) = one + other
        def reduce(_key, values) = values.sum * 2
      end
      expect(count.new.run(lines)).to eq("b" => 20, "a" => 30, "c" => 10, "d" => 10)
      expect { lines.map_reduce(->(a, b) { a - b }, check: :associative) { |line, out| out.emit(1, line.size) } }.to raise_error(ArgumentError, /unknown keyword/)
      checked = Ikra.lines(text: "a\nbb\nccc\n" * 9, check: :associative)
      expect { checked.map_reduce(->(a, b) { a - b }) { |line, out| out.emit(1, line.size) } }.to raise_error(ArgumentError, /not associative/)
    end
  end

  it "raises the first exception, and tells the place among all records" do
    text = "#{"a\n" * 50}bad\n#{"a\n" * 50}worse\n"
    calls = [
      ->(lines) { lines.map { |line| line.size > 2 ? Integer(line) : 1 }.sum },
      ->(lines) { lines.map { |line| line.size > 2 ? Integer(line) : 1 }.tally },
      ->(lines) { lines.map { |line| line.size > 2 ? Integer(line) : 1 }.each { |_one| nil } },
      ->(lines) { lines.map_reduce(:+) { |line, out| out.emit(1, line.size > 2 ? Integer(line) : 1) } },
      ->(lines) { lines.map_reduce(->(a, b) { a + b }) { |line, out| out.emit(1, line.size > 2 ? Integer(line) : 1) } }
    ]
    slabs_of(16) do
      calls.product(backends).each do |call, backend|
        expect { call.call(Ikra.lines(text: text, backend: backend)) }.to raise_error(ArgumentError, /"bad\\n"/) { |error| expect(error.ikra.index).to eq 50 }
      end
      combine = ->(a, b) { b == 3 ? raise(IOError, "#{a} #{b}") : a + b }
      expect { Ikra.lines(text: "a\na\nbb\na\nbb\nccc\n", chomp: true).map_reduce(combine) { |line, out| out.emit(line.size % 2, line.size) } }
        .to raise_error(IOError, "3 3")
    end
  end

  it "gives what is before an exception, also where all records are needed" do
    text = "#{"a\n" * 50}bad\n#{"a\n" * 50}"
    slabs_of(16) do
      [->(line) { line.size > 2 ? Integer(line) : 1 }, ->(line) { line.size > 2 ? Integer(line) : Ikra.index }].each do |block|
        found = []
        expect { Ikra.lines(text: text).map(&block).each { |x| found << x } }.to raise_error(ArgumentError) { |error| expect(error.ikra.index).to eq 50 }
        expect(found.size).to eq 50
      end
    end
  end

  it "leaves exceptions of sections within each as they are" do
    slabs_of(16) do
      lines = Ikra.lines(text: "a\n" * 30)
      found = 0
      expect { lines.each { (found += 1) == 20 && [1, 0].pmap { |x| 1 / x } } }.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq 1 }
      expect(found).to eq 20
    end
  end

  it "changes nothing outside where an element raises" do
    text = "a\nbb\nccc\n" * 20
    slabs_of(16) do
      count = 0
      found = Hash.new(0)
      block = proc do |line, out|
        count += 1
        found[line.size] += 1
        out.emit(1, line.size == 4 ? 1 / (line.size - 4) : 1)
      end
      expect { Ikra.lines(text: text).map_reduce(:+, &block) }.to raise_error(ZeroDivisionError)
      expect([count, found]).to eq [0, {}]
      expect(Ikra.lines(text: text, chomp: true).map_reduce(:+, &block)).to eq(1 => 60)
      expect([count, found]).to eq [60, { 1 => 20, 2 => 20, 3 => 20 }]
    end
  end

  it "runs blocks that cannot be compiled as plain Ruby, where that is asked for" do
    slabs_of(16) do
      lines = Ikra.lines(text: "a\nb\na\n" * 8, unsupported: :ruby)
      allow(Ikra).to receive(:__warn)
      expect(lines.map { |line| eval("line.size") }.tally).to eq(2 => 24)
      expect(lines.map_reduce(:+) { |line, out| out.emit(eval("line"), 1) }).to eq("a\n" => 16, "b\n" => 8)
      expect(lines.map { |line| eval("line.size") }.sum).to eq 48
    end
  end

  it "changes things once, and numbers all records, where blocks run as plain Ruby" do
    slabs_of(16) do
      lines = Ikra.lines(text: "aa\nb\n" * 20, unsupported: :ruby)
      allow(Ikra).to receive(:__warn)
      runs = 0
      expect([lines.map { |line| eval("runs += 1") && line.size * 0.5 }.sum, runs]).to eq [50.0, 40]
      # Results of slabs that do not fit each other.
      expect([lines.map { |line| eval("runs += 1") > 60 ? line.size : 0.5 }.min, runs]).to eq [0.5, 80]
      expect([lines.map { |line| eval("runs += 1") && line }.map_reduce(:max) { |line, out| out.emit(line.size, line) }, runs]).to eq [{ 3 => "aa\n", 2 => "b\n" }, 120]
      expect(lines.group_by { eval("Ikra.index") / 30 }.transform_values(&:size)).to eq(0 => 30, 1 => 10)
      expect(lines.uniq { eval("Ikra.index") / 30 }).to eq %W[aa\n aa\n]
    end
  end

  it "reduces from nil where the first slabs have no values" do
    slabs_of(16) do
      sizes = Ikra.lines(text: "#{"aaa\n" * 20}#{"b\n" * 20}", backend: :cpu).map(&:size).select { |size| size < 3 }
      expect(sizes.reduce(nil) { |a, b| (a || 100) + b }).to eq 140
      expect { sizes.reduce(nil, :+) }.to raise_error(NoMethodError)
      expect(sizes.reduce(1) { |a, b| a + b }).to eq 41
    end
  end

  it "reads paths anew for each result, up to the size that files had" do
    file("a\nb\n" * 20) do |path|
      slabs_of(16) do
        lines = Ikra.lines(path)
        2.times { expect(lines.tally).to eq("a\n" => 20, "b\n" => 20) }
        File.write(path, "c\n", mode: "a")
        expect(lines.tally).to eq("a\n" => 20, "b\n" => 20)
        expect(Ikra.lines(path).tally).to eq("a\n" => 20, "b\n" => 20, "c\n" => 1)
        [30, 2].each { |size| File.write(path, "b\na\n" * size) && (expect { lines.tally }.to raise_error(IOError, /has changed/)) }
        File.write(path, "a\nb\n" * 20)
        File.truncate(path, 30)
        expect { lines.tally }.to raise_error(IOError, /#{File.basename(path)}" has changed since its chain was made/)
        File.delete(path)
        expect { lines.tally }.to raise_error(Errno::ENOENT)
        expect { Ikra.lines(path) }.to raise_error(Errno::ENOENT)
        File.write(path, "a\nb\n" * 20)
        expect { lines.tally }.to raise_error(IOError, /has changed/)
      end
    end
  end

  it "notices a file that is written or cut while it is read" do
    file("a\n" * 500) do |path|
      slabs_of(16) do
        changes = [-> { File.truncate(path, 100) }, -> { File.write(path, "b\n" * 500) }]
        changes.each do |change|
          lines = Ikra.lines(path)
          number = 0
          expect { lines.each { |_line| change.call if (number += 1) == 20 } }.to raise_error(IOError, /has changed/)
          File.write(path, "a\n" * 500)
        end
        # Files that are written at once may have the same time.
        lines = Ikra.lines(path)
        File.write(path, "a\n" * 499, mtime: Time.now) rescue File.write(path, "a\n" * 499)
        expect { lines.count }.to raise_error(IOError, /has changed/)
      end
    end
  end

  it "reads an open file from its position, and leaves it at its end" do
    file("x\na\nb\n" * 20) do |path|
      slabs_of(16) do
        File.open(path) do |input|
          input.gets
          lines = Ikra.lines(input)
          expect(input.eof?).to be true
          2.times { expect(lines.tally).to eq("a\n" => 20, "b\n" => 20, "x\n" => 19) }
        end
        # Its bytes are not those of the file.
        File.open(path) do |input|
          input.ungetbyte("y")
          expect(Ikra.lines(input).tally).to eq("yx\n" => 1, "a\n" => 20, "b\n" => 20, "x\n" => 19)
        end
        lines = File.open(path) { |input| Ikra.lines(input) }
        expect(lines.count).to eq 60
        File.open(path) do |input|
          File.delete(path)
          lines = Ikra.lines(input)
          expect(lines.tally).to eq("x\n" => 20, "a\n" => 20, "b\n" => 20)
          expect { lines.tally }.to raise_error(IOError, /read for an earlier result/)
          File.write(path, "")
        end
      end
    end
  end

  it "reads a pipe once, for one result" do
    piped = lambda do |text, &block|
      input, output = IO.pipe
      writer = Thread.new { output.write(text) && output.close }
      block.call(input)
    ensure
      writer.join
      [input, output].each(&:close)
    end
    text = "the cat\n" * 50
    slabs_of(16) do
      piped.call(text) do |input|
        lines = Ikra.lines(input, chomp: true)
        words = lines.flat_map(&:split)
        expect(words.tally).to eq("the" => 50, "cat" => 50)
        [-> { words.tally }, -> { lines.sort }].each { |again| expect(&again).to raise_error(IOError, /read for an earlier result/) }
      end
      # What needs all records keeps them.
      piped.call(text) do |input|
        lines = Ikra.lines(input, chomp: true)
        2.times { expect(lines.map(&:size).sum).to eq 350 }
        expect(lines.with_index.count).to eq 50
      end
      piped.call(text) { |input| expect(Ikra.lines(input).map { Ikra.index }.tally.size).to eq 50 }
      piped.call("a\n" * 8) { |input| 2.times { lines = Ikra.lines(input) and expect([lines.count, lines.count]).to eq([lines.count] * 2) } }
      piped.call(Zlib.gzip(text)) { |input| expect(Zlib::GzipReader.wrap(input) { |gzip| Ikra.lines(gzip).count }).to eq 50 }
      piped.call(text) { |input| expect(Ikra.lines(input).first(3)).to eq ["the cat\n"] * 3 }
      closed = piped.call(text) { |input| Ikra.lines(input) }
      expect { closed.count }.to raise_error(IOError, /closed stream/)
    end
  end

  it "reads pipes behind other inputs, and several of them" do
    text = "a\nb\n" * 20
    file(text) do |path|
      slabs_of(16) do
        pipes = Array.new(2) { IO.pipe }
        pipes.each { |_input, output| output.write(text) && output.close }
        lines = Ikra.lines([path, *pipes.map(&:first), path], backend: :cpu)
        expect([lines.first, lines.first(30)]).to eq ["a\n", text.lines.first(30)]
        expect(lines.to_a).to eq text.lines * 4
        expect { lines.count }.to raise_error(IOError, /read for an earlier result/)
        pipes.each { |input, _output| input.close }
      end
    end
  end

  it "refuses a second result of a pipe while it is read for the first one" do
    text = "the cat\n" * 50
    slabs_of(16) do
      [->(lines) { lines.first }, ->(lines) { lines.count }, ->(lines) { lines.sort }].each do |second|
        input, output = IO.pipe
        writer = Thread.new { output.write(text) && output.close }
        lines = Ikra.lines(input)
        found = lines.each_with_object([]) do |line, all|
          expect { second.call(lines) }.to raise_error(IOError, "the input is being read for another result") if all.empty?
          all << line
        end
        expect(found).to eq text.lines
        writer.join
        input.close
      end
    end
  end

  it "refuses a record that is too long, with its number and size" do
    stub_const("Ikra::Source::MAX_BYTES", 50)
    slabs_of(16) do
      [["a\nb\n#{"x" * 50}\nc\n", 51], ["a\nb\n#{"x" * 300}", 300], ["a\nb\n#{"x" * 9000}\n\n", 9001]].each do |text, bytes|
        lines = Ikra.lines(text: text)
        expect { lines.count }.to raise_error(ArgumentError, "a record after record 2 has #{bytes} bytes: at most 50 are possible")
        expect(lines.first(2)).to eq %W[a\n b\n]
      end
      text = "a\nb\n#{"x" * 49}\nc\n#{"x" * 49}\n"
      expect(Ikra.lines(text: text).to_a).to eq text.lines
    end
  end

  it "reads no more than first records need" do
    slabs_of(16) do
      file("a\n" * 30) do |path|
        File.open(path, "a") { |output| output.write("1 2\n" * 500) }
        wrong = ->(line) { line.size > 2 ? Integer(line) : 1 }
        lines = Ikra.lines(path, backend: :cpu).map(&wrong)
        expect([lines.take(30).sum, lines.first(30).size, lines.find { |x| x == 1 }, lines.take(28).drop(20).count]).to eq [30, 30, 1, 8]
        expect { lines.take(31).sum }.to raise_error(ArgumentError) { |error| expect(error.ikra.index).to eq 30 }
      end
    end
  end

  it "takes slabs of a part of the memory limit" do
    Ikra.config.memory_limit = 8 << 10
    file("a\nb\n" * 1000) do |path|
      lines = Ikra.lines(path, backend: :cpu)
      expect([streamed?(lines), lines.tally]).to eq [true, { "a\n" => 1000, "b\n" => 1000 }]
    end
  ensure
    Ikra.config.memory_limit = nil
  end

  describe "resources" do
    # How many descriptors of a file are open.
    descriptors = lambda do |path|
      Dir.children("/proc/self/fd").count { |number| File.readlink("/proc/self/fd/#{number}") == path rescue false }
    end

    it "reads the next slab while kernels run" do
      reads = []
      allow(Ikra).to receive(:__lines).and_wrap_original { |real, *args| reads << Thread.current && real.call(*args) }
      slabs_of(16) { Ikra.lines(text: "a\nb\n" * 40, backend: :cpu).tally }
      expect(reads.uniq.size).to be > 5
      expect(reads.count(Thread.main)).to eq 1
    end

    it "keeps no descriptor and no thread, whatever ends a call" do
      file("a\nb\n" * 5000) do |path|
        slabs_of(64) do
          before = [descriptors.call(path), Thread.list.size]
          lines = Ikra.lines(path, backend: :cpu)
          lines.tally
          lines.first(2)
          lines.each { |_line| break }
          expect { lines.each { |_line| raise IOError, "enough" } }.to raise_error(IOError, "enough")
          expect { lines.map { |line| Integer(line) }.tally }.to raise_error(ArgumentError)
          expect([descriptors.call(path), Thread.list.size]).to eq before
        end
      end
    end

    it "ends soon when it is interrupted" do
      file("the cat and the dog\n" * 2_000_000) do |path|
        slabs_of(1 << 16) do
          lines = Ikra.lines(path, backend: :cpu).flat_map(&:split)
          lines.first
          before = [descriptors.call(path), Thread.list.size]
          took = Array.new(4) do |i|
            call = Thread.new do
              Thread.current.report_on_exception = false
              lines.map_reduce(->(a, b) { a + b }) { |word, out| out.emit(word, 1) }
            end
            sleep(0.05 + 0.03 * i)
            start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
            call.raise(Interrupt)
            expect { call.value }.to raise_error(Interrupt)
            Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
          end
          expect(took.min).to be < 0.1
          expect([descriptors.call(path), Thread.list.size]).to eq before
        end
      end
    end

    it "takes the memory of some slabs, and ends soon by a signal" do
      file("the cat and the dog of the house\n" * 1_500_000) do |path|
        grown, *took = run_ruby(<<~RUBY, path).lines.map(&:to_i)
          Ikra.const_get(:Source).tap { |source| source.send(:remove_const, :SLAB) }.const_set(:SLAB, 1 << 20)
          most = -> { File.read("/proc/self/status")[/VmHWM:\\s+(\\d+)/, 1].to_i }
          now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) }
          Ikra.lines(text: "a b\\n" * 9, backend: :cpu).flat_map(&:split).tally
          before = most.call
          words = Ikra.lines(ARGV.first, backend: :cpu).flat_map(&:split)
          abort unless words.tally == { "the" => 4_500_000, "cat" => 1_500_000, "and" => 1_500_000, "dog" => 1_500_000, "of" => 1_500_000, "house" => 1_500_000 }
          puts most.call - before
          [0.05, 0.1, 0.15].each do |pause|
            sent = nil
            sender = Thread.new { sleep(pause) && (sent = now.call) && Process.kill(:INT, Process.pid) }
            loop { words.tally }
          rescue Interrupt
            sender.join
            puts now.call - sent
          end
        RUBY
        # kilobytes: less than the text
        expect(grown).to be < 40_000
        expect([took.size, took.min < 100]).to eq [3, true]
      end
    end

    it "keeps nothing of a pipe behind the first slab" do
      slabs_of(1024) do
        input, output = IO.pipe
        writer = Thread.new { 20_000.times { output.write("a pipe\n") } && output.close }
        kept = 0
        Ikra.lines(input).each_with_index { |_line, at| kept = ObjectSpace.each_object(String).count { |text| text.bytesize > 50_000 && text.start_with?("a pipe\n") } if at == 19_000 }
        expect(kept).to eq 0
        writer.join
        input.close
      end
    end

    it "tells that the thread which reads ahead was killed" do
      slabs_of(16) do
        lines = Ikra.lines(text: "a\nb\n" * 5000, backend: :cpu)
        allow(Ikra).to receive(:__lines).and_wrap_original { |real, *args| Thread.current == Thread.main ? real.call(*args) : Thread.current.kill }
        expect { lines.count }.to raise_error(IOError, "the thread that read the next records was killed")
      end
    end

    it "shares no position of a file with processes that are forked" do
      file("a\nb\n" * 5000) do |path|
        slabs_of(1024) do
          found = 0
          Ikra.lines(path).each do
            next unless (found += 1) == 10

            child = fork do
              ObjectSpace.each_object(File) { |file| file.seek(0, IO::SEEK_END) if !file.closed? && file.path == path }
            ensure
              exit!(true)
            end
            Process.wait(child)
          end
          expect(found).to eq 10_000
        end
      end
    end

    it "works in several threads" do
      file("a\nb\nc\n" * 500) do |path|
        slabs_of(64) do
          lines = Ikra.lines(path, backend: :cpu)
          threads = Array.new(4) { Thread.new { lines.tally } }
          expect(threads.map(&:value)).to all(eq("a\n" => 500, "b\n" => 500, "c\n" => 500))
        end
      end
    end
  end
end
