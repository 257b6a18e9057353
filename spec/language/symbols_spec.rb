# frozen_string_literal: true

module Symbols
  ALL = [:a, :b, :Ab, :abc, :"a b", :"", :é, :"日本", :"é=", :a?, :a!, :b=, :[], :[]=, :!, :+, :<=>, :"9a", :@a, :@@a, :$a, :"a?b", :"\n", :"\u200b", :nil].freeze
  LEVELS = %i[low mid high].freeze
  Record = Struct.new(:name, :level)

  class Thing
    attr_accessor :kind
    attr_reader :label

    def initialize(kind) = @kind = kind
    def grow = @label = "#{@kind}#{@label}"
  end

  class Ghost < Thing
    def method_missing(name, *) = name.to_s
    def respond_to_missing?(*) = true
  end

  # Texts with what `==` does not tell of them.
  def self.described(texts) = texts.map { |text| [text, text.encoding, text.frozen?] }
end

RSpec.describe "Symbols" do
  on_every_backend do
    it "have texts" do
      expect { |x| [x.to_s, x.name, x.id2name, x.inspect, "<#{x}>", x.to_sym, x.size, x.length, x.empty?] }.to be_same_as_ruby.over(*Symbols::ALL)
      expect { |x| [x[0], x[-1], x[0, 2], x[1..], x.slice(0), x.start_with?("a", "é"), x.end_with?("b"), x.end_with?] }.to be_same_as_ruby.over(*Symbols::ALL)
    end

    it "are compared" do
      pairs = Symbols::ALL.product([:b, :é, 1, nil, "b"])
      expect { |x, y| [x <=> y, x == y, x.casecmp(:AB), x.casecmp?(:é)] }.to be_same_as_ruby.over(*pairs)
      expect { |x, y| [x < y, x <= y, x > y, x >= y, x.between?(:B, y)] }.to be_same_as_ruby.over(*pairs)
    end

    it "are sorted" do
      lists = [Symbols::ALL, [:b], [], %i[b a b]]
      expect { |list| [list.sort, list.min, list.max(2), list.sort_by(&:size).first&.size, list.map(&:to_s), list.join("-"), list.minmax] }.to be_same_as_ruby.over(*lists)
      expect { |list| list.sort }.to be_same_as_ruby.over([[:a, 1], [:b]])
    end

    it "have texts of new encodings and objects" do
      [:to_s, :name, :inspect].each do |method|
        got = case method
              when :to_s then Symbols::ALL.pmap(backend:, &:to_s)
              when :name then Symbols::ALL.pmap(backend:, &:name)
              else Symbols::ALL.pmap(backend:, &:inspect)
        end
        expect(Symbols.described(got)).to eq(Symbols.described(Symbols::ALL.map(&method))), method.to_s
      end
    end

    it "may stand in the program alone, in constants, and in Hashes" do
      names = { low: :deep, mid: nil }
      expect { |x| [(x > 1 ? :only_here_one : :only_here_two).to_s, Symbols::LEVELS[x].to_s, names[Symbols::LEVELS[x]].to_s] }.to be_same_as_ruby.over(0, 1, 2)
    end

    it "name what method_missing was asked for, and methods" do
      expect { |x| [x.some_strange_name, x.method(:kind).name.to_s] }.to be_same_as_ruby.over(Symbols::Ghost.new(1))
    end

    it "name members of Structs" do
      expect { |x| [x.members, x.to_h, x.to_h.map { |k, v| "#{k}=#{v}" }, x.to_h { |k, v| [k.to_s, v] }] }.to be_same_as_ruby.over([Symbols::Record.new("a", 1)], [Symbols::Record.new(:b, nil)])
    end

    it "may be new at each call" do
      run = ->(list) { list.pmap(backend:) { |x| "#{x}!" } }
      4.times do |i|
        list = Array.new(3) { |j| :"new_#{backend}_#{i}_#{j}" }
        expect(run.(list)).to eq(list.map { |x| "#{x}!" })
        list[1] = :"other_#{backend}_#{i}"
        expect(run.(list)).to eq(list.map { |x| "#{x}!" })
      end
    end

    it "may be new in objects that stay on the device" do
      things = Array.new(3) { |i| Symbols::Thing.new(:"thing_#{backend}_#{i}") }
      plain = things.map(&:dup)
      Ikra.resident(things) do
        things.peach(backend:) { |thing| thing.grow }
        things[1].kind = :"fresh_#{backend}"
        things.peach(backend:) { |thing| thing.grow }
      end
      plain.each(&:grow)
      plain[1].kind = :"fresh_#{backend}"
      plain.each(&:grow)
      expect(things.map(&:label)).to eq(plain.map(&:label))
    end

    it "are not made" do
      expect { %w[a].pmap(backend:) { |x| x.to_sym } }.to raise_error(Ikra::CompileError, /kernels do not know String#to_sym/)
      expect { %i[a].pmap(backend:) { |x| x.upcase } }.to raise_error(Ikra::CompileError, /kernels do not know Symbol#upcase/)
    end
  end
end
