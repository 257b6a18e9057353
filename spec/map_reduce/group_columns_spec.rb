# frozen_string_literal: true

# Groups with `lazy: true`. Their keys and values become Ruby's objects when the program asks for them.
RSpec.describe "groups that stay in columns" do
  lines = Array.new(60) { |i| "/page#{i * 7 % 11} 10.0.#{i % 4}.#{i % 3} é#{"ü" * (i % 3)} #{i}" }
  text = "#{lines.join("\n")}\n"
  binary = (+"a\xffb c\xff\n\xff a\nb a\xffb\n").force_encoding("BINARY")
  # What one pass emits for a line. Some keys have one form in all lines, and some have not.
  keys = {
    "a String" => ->(line) { line.split[0] },
    "a String that is not ASCII" => ->(line) { line.split[2] || "" },
    "a String that is empty at times" => ->(line) { line[0, line.size % 3] },
    "an Integer" => ->(line) { line.size % 5 },
    "a Float" => ->(line) { line.size / 7.0 },
    "true or false" => ->(line) { line.size.even? },
    "a Symbol" => ->(line) { line.size.even? ? :even : :odd },
    "an Array of one" => ->(line) { [line.split[0]] },
    "two Strings" => ->(line) { line.split.then { |fields| [fields[0], fields[1]] } },
    "three kinds" => ->(line) { [line.size, line.split[0], line.size * 0.5] },
    "four kinds" => ->(line) { [:a, line.split[1], line.size % 2, line.split[2] || "x"] },
    "five parts" => ->(line) { [1, line.size, 2, line.split[0], 3] },
    "an Array within one" => ->(line) { [line.size, [line.split[0]]] },
    "Arrays of different lengths" => ->(line) { line.size.even? ? [1] : [1, 2] },
    "Strings and Integers" => ->(line) { line.size.even? ? 1 : line.split[0] },
    "true, false or nil, in an Array" => ->(line) { [line.size.even?] },
    "frozen Strings of the program" => ->(line) { line.size.even? ? "even" : "odd" }
  }
  passed = ->(found) { found.map_reduce(:+) { |(key, count), out| out.emit([key, count % 2], count) } }

  def in_ruby(list, key)
    list.each_with_object(Hash.new(0)) { |line, counts| counts[key.call(line)] += 1 }.to_h
  end

  keys.each do |name, key|
    it "are those of the Hash: #{name}" do
      expected = in_ruby(text.lines, key)
      second = expected.each_with_object(Hash.new(0)) { |(found, count), counts| counts[[found, count % 2]] += count }
      backends.each do |backend|
        groups = -> { Ikra.lines(text: text, backend: backend).map_reduce(:+, lazy: true) { |line, out| out.emit(key.call(line), 1) } }
        expect(passed.call(groups.call).to_a).to eq second.to_a
        expect(groups.call.top(3)).to eq expected.top(3)
        found = groups.call
        expect(found.size).to eq expected.size
        expect(found.to_a).to eq expected.to_a
        expect(found.to_h.keys.map(&:frozen?)).to eq expected.keys.map(&:frozen?)
        expect(found.map { |one, _| [one].flatten.grep(String).map(&:encoding) }).to eq(expected.keys.map { |one| [one].flatten.grep(String).map(&:encoding) })
        expect(found[expected.keys.last]).to eq expected.values.last
        expect(found[:none]).to be_nil
        expect(found.top(3)).to eq expected.top(3)
        expect(passed.call(found).to_a).to eq second.to_a
      end
    end
  end

  {
    "a String" => ->(line) { line.split[0] },
    "two Strings" => ->(line) { line.split.then { |fields| [fields[0], fields[1]] } },
    "four kinds" => ->(line) { [line.size, line.split[0], line.size * 0.5, :a] }
  }.each do |name, key|
    it "make no objects of keys until these are asked for: #{name}" do
      many = Array.new(2000) { |i| "/page#{i % 1500} 10.0.#{i % 1500}.1 #{i}" }.join("\n")
      groups = -> { Ikra.lines(text: many, backend: :cpu).map_reduce(:+, lazy: true) { |line, out| out.emit(key.call(line), 1) } }
      passed.call(groups.call)
      before = GC.stat(:total_allocated_objects)
      found = groups.call
      found.size
      between = GC.stat(:total_allocated_objects)
      expect(found.to_a.size).to be >= 1500
      expect(between - before).to be < 1000
      expect(GC.stat(:total_allocated_objects) - between).to be > 1500
    end
  end

  it "are those of values by every operator" do
    %i[+ min max & |].each do |combine|
      [->(i) { i * 7919 % 31 - 9 }, *(->(i) { (i * 7919 % 31 - 9) / 4.0 } unless %i[& |].include?(combine))].each do |value|
        expected = (0...90).group_by { |i| i % 7 }.transform_values { |list| %i[min max].include?(combine) ? list.map(&value).public_send(combine) : list.map(&value).reduce(combine) }
        backends.each do |backend|
          found = (0...90).pmap_reduce(combine, lazy: true, backend: backend) { |i, out| out.emit(i % 7, value.call(i)) }
          expect(found.to_h).to eq expected
          expect(found.top(2)).to eq expected.top(2)
        end
      end
    end
  end

  it "have keys with broken bytes, and of other encodings" do
    [binary, binary.dup.force_encoding("UTF-8"), text.dup.force_encoding("BINARY"), text.scrub("?").encode("US-ASCII", undef: :replace)].each do |bytes|
      expected = bytes.each_line.flat_map { |line| [[line[0], line.bytesize], [line[1, 2] || "", line.bytesize]] }.tally
      backends.each do |backend|
        found = Ikra.lines(text: bytes, backend: backend).map_reduce(:+, lazy: true) { |line, out| out.emit([line[0], line.bytesize], 1).emit([line[1, 2] || "", line.bytesize], 1) }
        expect(found.to_h).to eq expected
        expect(found.map_reduce(:+) { |((word, _), count), out| out.emit(word, count) }).to eq(expected.each_with_object(Hash.new(0)) { |((word, _), count), counts| counts[word] += count })
      end
    end
  end

  it "have each NaN as a key of its own" do
    backends.each do |backend|
      found = [1.0, Float::NAN, 1.0, Float::NAN].pmap_reduce(:+, lazy: true, backend: backend) { |x, out| out.emit(x * 2, 1) }
      expect(found.size).to eq 3
      expect(found.to_a.map(&:last)).to eq [2, 1, 1]
      expect(found.map_reduce(:+) { |(key, count), out| out.emit(key.nan?, count) }).to eq(false => 2, true => 2)
    end
  end

  it "raise where a sum has more than 64 bits, and have no pairs where nothing was emitted" do
    backends.each do |backend|
      expect { [1, 2].pmap_reduce(:+, lazy: true, backend: backend) { |_, out| out.emit(1, (2**63) - 1) } }.to raise_error(Ikra::IntegerOverflow)
      none = [1, 2].pmap_reduce(:+, lazy: true, backend: backend) { |x, out| out.emit(x, 1) if x > 3 }
      expect([none.size, none.to_h, none.top(1), none.map_reduce(:+) { |(key, _), out| out.emit(key, 1) }]).to eq [0, {}, [], {}]
    end
  end

  it "feed passes whose blocks keep, freeze and raise as Ruby's do" do
    backends.each do |backend|
      found = %w[cat dog cat].pmap_reduce(:+, lazy: true, backend: backend) { |word, out| out.emit(word.upcase, 1) }
      expect(found.map_reduce(:+) { |(key, count), out| out.emit(key.frozen?, count) }).to eq(true => 3)
      expect { found.map_reduce(:+) { |(key, count), out| out.emit(key, count / (count - 1)) } }.to raise_error(ZeroDivisionError)
      expect(found.map_reduce { |(key, count), out| out.emit(key, count) }).to eq [["CAT", 2], ["DOG", 1]]
      expect(found.map_reduce(:+, order: :key, lazy: true) { |(key, count), out| out.emit(-count, key.size) }.to_a).to eq [[-2, 3], [-1, 3]]
    end
  end
end
