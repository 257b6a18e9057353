# frozen_string_literal: true

# MapReduce from Ruby to Ruby: warm calls, compared with Ruby's own loops over a Hash.
#
# Not measured: loading Ruby and Ikra, and compiling. The text of a source is read before. Results are Ruby's Hashes.
#
#   ruby -Ilib benchmark/mapreduce.rb      # ELEMENTS= in the environment; IKRA_BENCH_BACKENDS=cpu,cuda

require "ikra"
require_relative "harness"

class MapReduceBenchmark
  Order = Struct.new(:city, :price)

  def initialize
    @bench = Harness.new("mapreduce")
    @count = @bench.size(:elements, 1_000_000, tiny: 500)
    @integers = Array.new(@count) { |i| (i * 7919) % 1009 }
    @distinct = Array.new(@count) { |i| (i * 7919) % 1_000_003 }
    @orders = Array.new(@count) { |i| Order.new("city #{i * 31 % 97}", i % 1000 / 8.0) }
    @words = Array.new(@count) { |i| "word #{i * 7919 % 20_011}" }
    @text = Array.new(@count) { |i| "10.0.#{i % 256}.#{i * 7 % 251} GET /#{i * 31 % 4001}\n" }.join
    @pixels = Array.new(@count) { |i| i * 7919 % 251 }.pack("C*")
  end

  def run
    compare("integers", -> { sums { |add| @integers.each { |x| add.(x, 1) } } }) do |options|
      @integers.pmap_reduce(:+, **options) { |x, out| out.emit(x, 1) }
    end
    compare("distinct integers", -> { sums { |add| @distinct.each { |x| add.(x, 1) } } }) do |options|
      @distinct.pmap_reduce(:+, **options) { |x, out| out.emit(x, 1) }
    end
    compare("words", -> { sums { |add| @words.each { |word| add.(word, 1) } } }) do |options|
      @words.pmap_reduce(:+, **options) { |word, out| out.emit(word, 1) }
    end
    compare("tally of integers", -> { @integers.tally }) { |options| @integers.ptally(**options) }
    compare("tally of words", -> { @words.tally }) { |options| @words.ptally(**options) }
    compare("greatest price", -> { @orders.each_with_object({}) { |o, found| found[o.city] = [found[o.city], o.price].compact.max } }) do |options|
      @orders.pmap_reduce(:max, **options) { |o, out| out.emit(o.city, o.price) }
    end
    compare("average price", -> { @orders.group_by(&:city).transform_values { |list| list.sum(&:price) / list.size } }) do |options|
      @orders.pmap_reduce(reduce: ->(_city, prices) { prices.sum / prices.size }, **options) { |o, out| out.emit(o.city, o.price) }
    end
    compare("addresses of lines", -> { @text.each_line.map { |line| line[0, 8] }.tally }) do |options|
      (@lines ||= {})[options] ||= Ikra.lines(text: @text, **options)
      @lines[options].map { |line| line[0, 8] }.tally
    end
    compare("histogram of bytes", -> { @pixels.each_byte.each_slice(3).with_object(Hash.new(0)) { |(r, g, b), found| found[r] += 1; found[256 + g.to_i] += 1; found[512 + b.to_i] += 1 } }) do |options|
      (@bytes ||= {})[options] ||= Ikra.bytes(nil, 3, text: @pixels, **options)
      @bytes[options].map_reduce(:+) do |slice, out|
        out.emit(slice[0], 1)
        out.emit(256 + slice[1].to_i, 1)
        out.emit(512 + slice[2].to_i, 1)
      end
    end
    @bench.finish
  end

  private

  def sums
    found = Hash.new(0)
    yield(->(key, value) { found[key] += value })
    found
  end

  # Compares a loop of Ruby with Ikra's call.
  def compare(name, ruby)
    expected = ruby.call
    @bench.incomparable("#{name}: Ruby", "it is what the others are compared with")
    alone = @bench.time("#{name}: Ruby", runs: 3) { ruby.call }
    @bench.backends.each do |backend|
      options = { backend: backend }
      @bench.same("#{name}: #{backend}", expected.to_a.flatten, yield(options).to_a.flatten)
      timing = @bench.time("#{name}: #{backend}", runs: 3) { yield(options) }
      @bench.value("#{name}: #{backend} against Ruby", alone.median / timing.median, "×")
    end
  end
end

MapReduceBenchmark.new.run if $PROGRAM_NAME == __FILE__
