# frozen_string_literal: true

require "zlib"

# What goes wrong with MapReduce: Ruby's answer or its exception, or an error that says why.
RSpec.describe "MapReduce of bad input" do
  include ReduceAsRuby::Examples

  words = ->(line, out) { line.split.each { |word| out.emit(word, 1) } }

  it "gives nothing where nothing is emitted, in each form" do
    [[:+, nil], [nil, ->(_key, values) { values.size }], [:+, ->(_key, _values) { 1 }], [->(a, _b) { a }, nil], [nil, nil]].each do |combine, reduce|
      expect(1..5).to(reduce_as_ruby(combine, reduce: reduce) { |x, out| out.emit(x, 1) if x > 9 })
    end
    groups = (1..5).pmap_reduce(:+, lazy: true) { |x, out| out.emit(x, 1) if x > 9 }
    expect([groups.size, groups.top(3), groups[1], groups.to_h]).to eq [0, [], nil, {}]
    expect(groups.map_reduce(:+) { |(key, value), out| out.emit(key, value) }).to eq({})
  end

  it "takes empty files, and no files" do
    file("") do |path|
      [path, [path, path], []].each do |source|
        expect(Ikra.lines(source).map_reduce(:+, &words)).to eq({})
        expect(Ikra.lines(source).flat_map(&:split).tally).to eq({})
        expect(Ikra.bytes(source, 3).map_reduce(:+) { |(r, _g, _b), out| out.emit(r, 1) }).to eq({})
        expect(Ikra.bytes(source).tally).to eq({})
      end
    end
  end

  it "has read a file that shrinks afterwards" do
    file("the cat\n" * 500) do |path|
      lines = Ikra.lines(path).flat_map(&:split)
      slices = Ikra.bytes(path, 4)
      File.truncate(path, 3)
      expect(lines.tally).to eq("the" => 500, "cat" => 500)
      expect(slices.tally).to eq("the ".bytes => 500, "cat\n".bytes => 500)
    end
  end

  it "reads pipes to their end, also those that another thread fills" do
    input, output = IO.pipe
    writer = Thread.new do
      200.times { |i| output << "the cat #{i % 3}\n" }
      output.close
    end
    expect(Ikra.lines(input).map_reduce(:+, &words)).to eq("the" => 200, "cat" => 200, "0" => 67, "1" => 67, "2" => 66)
    writer.join
    input, output = IO.pipe
    output << "abcabd"
    output.close
    expect(Ikra.bytes(input, 3).map_reduce(:+) { |(_a, _b, c), out| out.emit(c, 1) }).to eq(99 => 1, 100 => 1)
  end

  it "refuses what is no source, as Ruby does" do
    reader, writer = IO.pipe
    [-> { Ikra.lines(writer) }, -> { Ikra.bytes(writer, 1) }].each { |call| expect(&call).to raise_error(IOError, /not opened for reading/) }
    reader.close
    expect { Ikra.lines(reader) }.to raise_error(IOError, "closed stream")
    expect { Ikra.lines([nil]) }.to raise_error(TypeError)
    expect { Ikra.lines("/") }.to raise_error(Errno::EISDIR)
    expect { Ikra.bytes(nil, "3", text: "abc") }.to raise_error(TypeError)
  ensure
    writer.close
  end

  it "opens no descriptor whose number it is given" do
    file("the cat") do |path|
      File.open(path) do |input|
        expect { Ikra.lines(input.fileno) }.to raise_error(TypeError, /Integer is neither a path nor an input/)
        expect { Ikra.bytes([input.fileno]) }.to raise_error(TypeError, /Integer is neither a path nor an input/)
        expect(input.read).to eq "the cat"
      end
    end
  end

  it "takes the bytes of gzip and of UTF-16 for bytes" do
    [Zlib.gzip((1..300).to_a.join(" the cat\n")), "a b\nüc\n".encode("UTF-16LE").b].each do |bytes|
      file(bytes) do |path|
        expected = File.foreach(path).to_a
        backends.each do |backend|
          lines = Ikra.lines(path, backend: backend)
          expect(lines.to_a).to eq expected
          expect(lines.map_reduce(:+) { |line, out| line.each_byte { |byte| out.emit(byte, 1) } }.to_a).to eq expected.flat_map(&:bytes).tally.to_a
        end
      end
    end
    # As in Ruby, words are not found in it.
    file(Zlib.gzip("the cat\n" * 9)) do |path|
      expect { File.foreach(path).flat_map(&:split) }.to raise_error(ArgumentError)
      expect { Ikra.lines(path, backend: :cpu).map_reduce(:+, &words) }.to raise_error(Ikra::CompileError, /parts of characters/)
    end
    expect { Ikra.lines(text: "a\n".encode("ISO-8859-1")) }.to raise_error(ArgumentError, /ISO-8859-1: kernels know/)
  end

  it "keeps a byte order mark, but where the input leaves it out" do
    file("\uFEFFthe cat\nthe") do |path|
      expect(Ikra.lines(path).map_reduce(:+, &words)).to eq("\uFEFFthe" => 1, "cat" => 1, "the" => 1)
      File.open(path, "r:BOM|UTF-8") { |input| expect(Ikra.lines(input).map_reduce(:+, &words)).to eq("the" => 2, "cat" => 1) }
    end
  end

  it "raises what the hash of a key raises" do
    unhashable = Class.new { def hash = raise(ArgumentError, "has no hash") }
    held = unhashable.new
    expect([1, 2]).to(reduce_as_ruby(:+) { |x, out| out.emit(held, x) })
    expect([1, 2]).to(reduce_as_ruby(->(a, b) { a - b }) { |x, out| out.emit(unhashable.new, x) })
    expect { [1].pmap_reduce(:+) { |x, out| out.emit(held, x) } }.to raise_error(ArgumentError, "has no hash")
    nothing = BasicObject.new
    expect { [1].pmap_reduce(:+, backend: :cpu) { |x, out| out.emit(nothing, x) } }.to raise_error(NoMethodError, /hash/)
  end

  it "combines to values of other types" do
    [->(a, b) { "#{a}#{b}" }, ->(a, b) { a == 1 ? 1.5 : a + b }, ->(_a, _b) {}, ->(a, b) { [a, b].flatten }, ->(a, b) { a ? nil : b }].each do |combine|
      expect(1..6).to(reduce_as_ruby(combine) { |x, out| out.emit(x % 2, x) })
    end
  end

  it "raises what combining raises in Ruby" do
    expect(1..6).to(reduce_as_ruby(:+) { |x, out| out.emit(0, x.odd? ? 1 : "a") })
    expect(1..6).to(reduce_as_ruby(:+) { |x, out| out.emit(0, x == 3 ? nil : x) })
    expect { (1..6).pmap_reduce(:max, backend: :cpu) { |x, out| out.emit(x % 2, x == 3 ? nil : x) } }
      .to raise_error(ArgumentError, "comparison of NilClass with 1 failed") # that of [1, nil].max
    expect(1..6).to(reduce_as_ruby(->(a) { a }) { |x, out| out.emit(x % 2, x) })
    raising = lambda do |a, b|
      raise IOError, "pair #{a} #{b}" if b == 4

      a + b
    end
    expect(1..6).to(reduce_as_ruby(raising) { |x, out| out.emit(x % 2, x) })
    backends.each do |backend|
      expect { (1..6).pmap_reduce(raising, backend: backend) { |x, out| out.emit(x % 2, x) } }
        .to(raise_error(IOError, "pair 2 4") { |error| expect(error.backtrace.first).to start_with("#{__FILE__}:#{raising.source_location[1] + 1}") })
    end
    expect { (1..6).pmap_reduce(:no_method, backend: :cpu) { |x, out| out.emit(0, x) } }.to raise_error(NoMethodError, /no_method/)
  end

  it "combines from left to right where the order matters" do
    expect(1..60).to(reduce_as_ruby(->(a, b) { a - b }) { |x, out| out.emit(x % 3, x) })
    expect(1..60).to(reduce_as_ruby(->(a, b) { a * 0.5 + b }) { |x, out| out.emit(x % 3, x.to_f) })
  end

  it "finds a combine that is not associative on demand" do
    backends.each do |backend|
      run = ->(combine, **more) { (1..9).pmap_reduce(combine, check: :associative, backend: backend, **more) { |x, out| out.emit(x % 2, x) } }
      expect { run.call(->(a, b) { a - b }) }.to raise_error(ArgumentError, /combine is not associative: of 1, 3, 5 it makes -7 from the left and 3 from the right/)
      expect { run.call(:-) }.to raise_error(ArgumentError, /combine is not associative/)
      expect(run.call(->(a, b) { a + b })).to eq(1 => 25, 0 => 20)
      expect(run.call(:max)).to eq(1 => 9, 0 => 8)
      expect(run.call(->(a, b) { a + b }, reduce: ->(key, sums) { [key, sums] })).to eq(1 => [1, [25]], 0 => [0, [20]])
    end
    expect((1..4).pmap_reduce(->(a, b) { a - b }, check: :associative) { |x, out| out.emit(x % 2, x) }).to eq(1 => -2, 0 => -2)
  end

  it "refuses emit where no element is mapped" do
    emitting = Class.new(Ikra::MapReduce) do
      def map(x) = emit(x % 2, x)
      def reduce(key, _values) = emit(key, 1)
    end
    escaped = lambda do
      later = nil
      (1..6).pmap_reduce(reduce: ->(key, _values) { later.emit(key, 1) }) { |x, out| later = out; out.emit(x % 2, x) }
    end
    combining = Class.new(Ikra::MapReduce) do
      def map(x) = emit(x % 2, x)

      def combine(one, other)
        self.emit(one, 1) # rubocop:disable Style/RedundantSelf
        one + other
      end
    end
    through = Class.new(Ikra::MapReduce) do
      def map(x) = emit(x % 2, x)
      def reduce(key, _values) = again(key)
      def again(key) = emit(key, 1)
    end
    line = emitting.instance_method(:reduce).source_location.last
    expect { emitting.new.run(1..6) }.to raise_error(Ikra::CompileError, /bad_input_spec.rb:#{line}:\d+: emit is called in a method that combines or reduces/)
    line = combining.instance_method(:combine).source_location.last + 1
    expect { combining.new.run([1]) }.to raise_error(Ikra::CompileError, /bad_input_spec.rb:#{line}:/)
    expect { through.new.run(1..6) }.to raise_error(ArgumentError, "emit is called outside of map")
    expect(&escaped).to raise_error(Ikra::CompileError, /emit/)
    kept = lambda do
      later = nil
      (1..6).pmap_reduce(:+) { |x, out| later = -> { out.emit(x, 1) }; out.emit(1, 1) }
      later.call
    end
    expect(&kept).to raise_error(Ikra::CompileError, /keep no blocks or lambdas/)
    backends.each do |backend|
      later = nil
      (1..6).pmap_reduce(:+, backend: backend) { |x, out| later = out; out.emit(x, 1) }
      expect { later.emit(1, 1) }.to raise_error(ArgumentError, "emit is called outside of the block")
    end
  end

  it "counts arguments of emit, and what an emitter can do" do
    backends.each do |backend|
      expect { (1..6).pmap_reduce(:+, backend: backend) { |x, out| out.emit(x) } }.to raise_error(ArgumentError, /given 1, expected 2/)
      expect { (1..6).pmap_reduce(:+, backend: backend) { |x, out| out.send_pair(x, 1) } }.to raise_error(NoMethodError, /send_pair/)
    end
  end

  it "works in several threads, and in a child of fork" do
    threads = Array.new(4) { |i| Thread.new { (1..500).pmap_reduce(:+, backend: :cpu) { |x, out| out.emit(x % (i + 1), x) } } }
    threads.map(&:value).each_with_index { |found, i| expect(found).to eq((1..500).group_by { |x| x % (i + 1) }.transform_values(&:sum)) }
    block = proc { |x, out| out.emit([x % 3, "key"], x) }
    here = (1..500).pmap_reduce(:+, backend: :cpu, &block)
    input, output = IO.pipe
    child = fork do
      output << Marshal.dump((1..500).pmap_reduce(:+, backend: :cpu, &block))
      output.close
      exit!(0)
    end
    output.close
    expect(Marshal.load(input.read)).to eq here
    Process.wait(child)
  end

  it "loses no key while garbage is collected", :stress do
    list = Array.new(12) { |i| "word #{i % 3}" }
    expected = ReduceAsRuby.oracle(list, :+, nil, ->(word, out) { out.emit([word, word.size], 1).emit(word, 1) }).to_a
    both = lambda do
      [list.pmap_reduce(:+, backend: :cpu) { |word, out| out.emit([word, word.size], 1).emit(word, 1) }.to_a,
       list.pmap_reduce(reduce: ->(key, values) { [key, values] }, backend: :cpu) { |word, out| out.emit("#{word}!", word) }]
    end
    # The first call compiles. Under stress that takes minutes in a process with many objects.
    both.call
    before = GC.stress
    GC.stress = 1
    found, listed = both.call
    GC.stress = before
    expect(found).to eq expected
    expect(listed).to eq(list.group_by { |word| "#{word}!" }.to_h { |key, values| [key, [key, values]] })
  ensure
    GC.stress = before
  end
end
