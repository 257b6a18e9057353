# frozen_string_literal: true

# Programs that redefine methods of Ruby's own classes: Ikra gives Ruby's answer, or refuses.
RSpec.describe "Redefined methods" do
  # Every public method of ten classes and modules. `spec/support/redefinition/child.rb` has the programs.
  [%w[each cpu], %w[constant reference], %w[nil cpu], %w[counting cpu], %w[removed cpu]].each do |variant, backend|
    it "give Ruby's answer or are refused, each in turn (#{variant}, #{backend})", exhaustive: variant != "each" do
      child = File.expand_path("../support/redefinition/child.rb", __dir__)
      output = run_ruby("load #{child.inspect}\nRedefinition.run(#{backend.inspect}, #{variant.inspect})", seconds: 600)
      *wrong, counts = output.lines(chomp: true)
      expect(wrong).to eq []
      equal, refused = counts.scan(/\d+/).map(&:to_i)
      expect(equal).to be > refused * 10
    end
  end

  # The same text, with `run` as `map` and as `pmap`.
  def same(definitions, program)
    output = run_ruby(<<~RUBY)
      #{definitions}
      block = proc { |a| #{program} }
      list = [[1, 2], [3, 1, 2]]
      p [block.call(list[0]), block.call(list[1])]
      #{["reference", "cpu"].map { |name| "p(begin; list.pmap(backend: :#{name}, &block); rescue Ikra::CompileError; :refused; end)" }.join("\n")}
    RUBY
    ruby, *ikra = output.lines(chomp: true)
    expect(ikra).to eq [ruby, ruby]
  end

  it "are not asked by Ruby's own methods" do
    same "class Array; def size = 5; end", "[a.map { |x| x }, a.size, a.reverse, a.length]"
    same "class Array; def size = 10**6; end", "[a.reverse, a.sort, a.take(1), a.rotate]"
    same "class Integer; def /(_) = 7; def %(_) = 7; end", "[a.rotate(1), a * 2, a[0] / 2, a.product([1])]"
    same "class String; def bytesize = 99; end", "['abc'.size, 'abc'.index('c'), 'abc'.bytesize]"
  end

  # Ripper, which finds heredocs, is written in Ruby.
  it "that Ripper calls do no harm, or the block is refused" do
    same "class Hash; def to_a = raise; end", "m = []; m << a.size; m"
    output = run_ruby(<<~'RUBY')
      require "ripper"
      block = proc { |x| <<~TEXT.size + x }
        text
      TEXT
      module Enumerable; alias own sort_by; def sort_by(*) = 42; end
      begin
        [1].pmap(&block)
      rescue Ikra::CompileError => e
        puts e.message[/Ripper, which finds heredocs in .*, raised/]
      end
      module Enumerable; alias sort_by own; end
      p [1].pmap(&block)
    RUBY
    expect(output).to match(/\ARipper, which finds heredocs in .*program.rb, raised\n\[6\]\n\z/)
  end

  # Each program defines one method, and asks for what Ikra's own Ruby code computes.
  it "on which Ikra's own Ruby code rests are refused, with their place" do
    definitions = {
      "Array#size" => "def size = 42", "Array#each" => "def each = self", "Array#[]" => "def [](*) = 99", "Array#first" => "def first(*) = 7", "Array#push" => "def push(*) = 5",
      "Array#map" => "def map = [9]",
      "Hash#[]" => "def [](_) = 5", "Hash#each" => "def each = self", "Integer#times" => "def times = self", "Integer#-" => "def -(_) = 5", "Integer#<" => "def <(_) = true",
      "String#length" => "def length = 5",
      "Symbol#to_proc" => "def to_proc = proc { 5 }"
    }
    definitions.each do |name, definition|
      output = run_ruby(<<~RUBY, seconds: 20)
        require "ikra"
        Ikra.config.backend = :cpu
        def refused
          yield
          $stdout.write("ran")
        rescue Ikra::CompileError => e
          $stdout.write(e.message[/ .*/], ";")
        end
        class #{name[/\w+/]}; #{definition}; end
        counts = Hash.new(0)
        refused { (1..3).psort_by { |x| -x } }
        refused { [3, 1].plazy.map { |x| x }.sum }
        refused { Ikra::MDArray.new(2, 2) { |i, j| i + j } }
        refused { [1, 1].peach { |x| counts[x] += 1 } } unless "#{name}" == "Hash#[]"
        refused { Ikra.lines(text: "a") }
      RUBY
      expect(output.split(";").uniq).to eq([" #{name} is redefined here"]), "#{name}: #{output}"
    end
  end

  it "of Enumerators are refused where kernels stand for these" do
    output = run_ruby(<<~RUBY)
      require "ikra"
      Ikra.config.backend = :cpu
      class Enumerator
        def with_index(_ = 0) = "mine"
      end
      begin
        p [[1, 2]].pmap { |x| x.map.with_index { |y, i| y + i } }
      rescue Ikra::CompileError => e
        puts e.message.lines.first
      end
      p [[1, 2]].pmap { |x| x.map { |y| y + 1 } }
    RUBY
    expect(output).to match(/\A.*:8:.*kernels do not ask an Enumerator for a redefined with_index\n\[\[2, 3\]\]\n\z/)
  end

  it "are refused where a pattern would ask a Hash for what the program has removed" do
    output = run_ruby(<<~RUBY)
      require "ikra"
      Ikra.config.backend = :cpu
      Hash.undef_method(:deconstruct_keys)
      begin
        p([1, 2].pmap { |x| (case { a: x }; in { a: 1 } then 1; else 0; end) })
      rescue Ikra::CompileError => e
        puts e.message.lines.first
      end
    RUBY
    expect(output).to match(/:6:.*deconstruct_keys/)
  end

  it "may be prepended, and extended in good faith, as other libraries do" do
    output = run_ruby(<<~RUBY)
      require "ikra"
      Range.prepend(Module.new { def each(&block) = super })
      Array.prepend(Module.new { def sum(*, &block) = super })
      Integer.prepend(Module.new { def to_s(*) = super })
      p [3, 1].psort_by { |x| x }, [3, 1].plazy.map { |x| x }.sum
    RUBY
    expect(output).to eq("[1, 3]\n4\n")
  end

  it "are called where they are prepended, aliased, and call super" do
    same "Array.prepend(Module.new { def size = super + 1 })", "[a.size, a.map { |x| x + a.size }]"
    same "class Array; alias old_size size; def size = old_size * 2; end", "[a.size, a.reverse, a.old_size]"
    same "class Array; alias size first; end", "[a.size, a.reverse]"
    same "class Array; alias old_get []; def [](*at) = old_get(*at); end", "[a[0], a[1..], a[0, 2], a[-1]]"
    same "class Integer; define_method(:succ) { 42 }; end", "[a[0].succ, a.map(&:succ), (1..2).to_a]"
  end

  it "are asked where Ruby's own methods ask them" do
    same "class Integer; alias plain <=>; def <=>(other) = other.plain(self); end", "[a.sort, a.min, a.max, a.sort_by { |x| x }]"
    same "class Integer; def +(_) = 40; end", "[a.inject(:+), a.sum, a[0] + 1]"
    same "class Module; def ===(_) = true; end", "[a.all?(String), a.any?(Float)]"
  end

  it "that Ruby's eval asks are refused" do
    output = run_ruby(<<~RUBY)
      module Subject
        BLOCK = proc { |x| (list = []; 3.times { |a| list.push(x.size) }; list) }
      end
      module Kernel; alias own_respond_to? respond_to?; def respond_to?(name = 1, *) = name; end
      answer = begin
        [[1, 2], []].pmap(&Subject::BLOCK)
      rescue StandardError => e
        e
      end
      module Kernel; alias respond_to? own_respond_to?; end
      p answer.class
    RUBY
    expect(output).to eq "Ikra::CompileError\n"
  end

  # To raise anything, Ruby asks it again: a redefinition that raises ends in a SystemStackError.
  it "as a respond_to? that raises are refused" do
    output = run_ruby(<<~RUBY)
      module Subject
        BLOCKS = [proc { |x| (l = []; 3.times { l.push(1) }; l).flat_map { |a| [a, 1] } },
                  proc { |x| [*x.each_with_object([]) { |a, m| m << a }, 1] }]
      end
      module Kernel; alias own_respond_to? respond_to?; def respond_to?(*) = raise(ArgumentError, "mine"); end
      one, other = Subject::BLOCKS
      answers = [(begin; [[1, 2]].pmap(&one); rescue ::Exception => e; e; end), (begin; [[1, 2]].pmap(&other); rescue ::Exception => e; e; end)]
      module Kernel; alias respond_to? own_respond_to?; end
      p answers.map(&:class)
    RUBY
    expect(output).to eq "[Ikra::CompileError, Ikra::CompileError]\n"
  end

  it "that were removed are missing, also where kernels know a shorter way" do
    same "class Array; undef_method :push; end", "(begin; out = []; a.each { |x| out.push(x) }; out; rescue NoMethodError; :none; end)"
    same "class Array; undef_method :max; end", "(begin; [a[0], 2].max; rescue NoMethodError; :none; end)"
    same "class Symbol; undef_method :to_proc; end", "(a.map { |x| x + 1 })"
    ["module Enumerable; undef_method :map; end", "module Enumerable; undef_method :each_with_index; end"].each do |change|
      output = run_ruby(<<~RUBY)
        block = proc { |a| a.each_with_index.map { |x, i| x + i } }
        other = proc { |a| a.each_slice(2).map { |q| q.size } }
        first = [[[1, 2]].pmap(&block), [[1, 2]].pmap(&other)]
        #{change}
        p first, [block, other].map { |b| [[1, 2]].pmap(&b) rescue $!.class }
      RUBY
      first, *answers = output.lines(chomp: true)
      expect(first).to eq "[[[1, 3]], [[2]]]"
      expect(answers).to eq [change.include?(":map") ? "[Ikra::CompileError, Ikra::CompileError]" : "[Ikra::CompileError, [[2]]]"]
    end
  end

  it "that Ikra's own Ruby code calls do no harm to a refusal" do
    ["class Hash; undef_method :fetch; end", "class Symbol; undef_method :to_s; end", "class String; undef_method :==; end",
     "module Kernel; undef_method :raise; end"].each do |change|
      output = run_ruby("b = proc { |x| binding.local_variables.size + x }\n#{change}\nbegin\n[1].pmap(&b)\nrescue ::Exception => e\n$stdout.print e.class.name\nend")
      expect(output).to eq "Ikra::CompileError"
    end
  end

  it "as Kernel#hash are asked where Ruby asks them" do
    output = run_ruby(<<~RUBY)
      blocks = [proc { |x| [x, x].uniq }, proc { |x| [x].include?(1) }, proc { |x| [x] == [1] }]
      expected = blocks.map { |block| [1, 2].map(&block) }
      calls = 0
      own = Kernel.instance_method(:hash)
      Kernel.define_method(:hash) { calls += 1; nil }
      answers = blocks.map { |block| [1, 2].pmap(backend: :reference, &block) rescue $!.class.name }
      Kernel.define_method(:hash, own)
      p(answers.zip(expected).map { |answer, ruby| answer == ruby || answer == "Ikra::CompileError" }, calls)
    RUBY
    expect(output).to eq "[true, true, true]\n0\n"
  end

  it "of an enumerable class are not asked by Enumerable, but for each" do
    same <<~RUBY, "Pair.new(a[0], 9).then { |q| [q.sort, q.minmax, q.first(1), q.to_a, q.reverse_each { |x| x }.class == Pair] }"
      class Pair
        include Enumerable
        def initialize(a, b) = (@a, @b = a, b)
        def each = (yield @a; yield @b; self)
        def to_a = [0]
        def take(_) = [0]
      end
    RUBY
  end

  it "are noticed between two calls, also those of modules" do
    output = run_ruby(<<~RUBY)
      class Two
        include Enumerable
        def each = (yield 1; yield 2; self)
      end
      block = proc { |t| t.sum }
      [1.5].pmap { |x| [x, 1.0].sum }
      p [Two.new].pmap(&block)
      own = Enumerable.instance_method(:sum)
      module Enumerable; def sum(*) = 42; end
      p [Two.new].pmap(&block)
      Enumerable.define_method(:sum, own)
      p [Two.new].pmap(&block)
    RUBY
    expect(output).to eq "[3]\n[42]\n[3]\n"
  end
end
