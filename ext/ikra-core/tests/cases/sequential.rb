# frozen_string_literal: true

# Ikra's methods as plain Ruby, one element after the other.

# What a section knows of itself.
module Ikra
  class << self
    attr_reader :index, :tick

    def at(tick, index)
      @tick = tick
      @index = index
      @draws = -1
    end

    # Philox4x32-10 with the seed that all runs have, in the first section: 64 bits, the second word high.
    def draw
      counter = [0, tick, index, @draws += 1]
      key = [42, 0]
      10.times do
        a = counter[0] * 0xD2511F53
        b = counter[2] * 0xCD9E8D57
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & 0xffffffff, (a >> 32) ^ counter[3] ^ key[1], a & 0xffffffff]
        key = [(key[0] + 0x9E3779B9) & 0xffffffff, (key[1] + 0xBB67AE85) & 0xffffffff]
      end
      counter[0] | counter[1] << 32
    end
  end
end

# The prelude's methods around a section's block, as they are.
require_relative "../../src/prelude/operations"

module Kernel
  # What marks a call that Ruby itself makes by name.
  def __asked = self
  def __position = Ikra.index

  # Those of operations.rs.
  (1..3).each do |n|
    define_method(:"__combine_#{n}") { |x, *lists, &block| block.call(x, *lists.map { |list| list.__nth(__position) }) }
    define_method(:"__zip_#{n}") { |x, *lists, &block| block.call([x, *lists.map { |list| list.__nth(__position) }]) }
    define_method(:"__cells_#{n}") do |_x, *sizes, &block|
      block.call(*sizes.each_index.map { |k| __position / sizes.drop(k).reduce(:*) % (k.zero? ? __position + 1 : sizes[k - 1]) }, __position % sizes.last)
    end
    define_method(:"__cell_#{n}") { |x, *sizes, &block| __send__(:"__cells_#{n}", x, *sizes) { |*at| block.call(at) } }
    define_method(:"__stencil_#{n}_1") do |_x, list, fill, *offsets, from, below, &block|
      __position.between?(from, below - 1) ? block.call(*offsets.map { |offset| list[__position + offset] }) : fill
    end
    define_method(:"__stencil_#{n}_2") do |_x, list, fill, *offsets, width, from, below, first, last, &block|
      row, column = __position.divmod(width)
      inside = row.between?(from, below - 1) && column.between?(first, last - 1)
      inside ? block.call(*offsets.map { |offset| list[__position + offset] }) : fill
    end
  end

  def __build(count, &block) = Array.new(count, &block)

  def __order(order, one, other) = order.nil? ? [one, other].sort { nil } : order
end

class Array
  def __nth(at) = self[at]

  # The block tells whether its first is to come after its second.
  def __merge_sort
    each_with_object([]) do |element, sorted|
      before = sorted.rindex { |other| !yield(other, element) }
      sorted.insert(before ? before + 1 : 0, element)
    end
  end
end

class Range
  def __nth(at) = at < size ? first + at : nil
end

# The p-methods, one element after the other.
module Sequential
  def pmap
    each_with_index.map do |element, index|
      Ikra.at(0, index)
      yield element
    end
  end

  def peach(ticks = 1)
    ticks.times do |tick|
      each_with_index do |element, index|
        Ikra.at(tick, index)
        yield element
      end
    end
    self
  end

  def pmap_within(name, *given, &block)
    pmap { |element| nil.__send__("__#{name}", element, *given, &block) }
  end

  def peach_within(name, *given, &block)
    peach { |element| nil.__send__("__#{name}", element, *given, &block) }
  end

  def pfind_within(name, *given, &block)
    peach { |element| return Ikra.index if nil.__send__("__#{name}", element, *given, &block) }
  end
end
Array.include(Sequential)
Range.include(Sequential)

# Kernel#rand as kernels draw.
module Draws
  def rand(max = nil)
    case max
    when nil, 0 then open_unit(Ikra.draw)
    when Integer then below(max.abs)
    when Range then within(max)
    else raise ArgumentError, "the oracle does not draw from #{max.inspect}"
    end
  end

  private

  def open_unit(bits)
    (((bits & 0xffffffff) >> 5 << 26) | (bits >> 38)) / 2.0**53
  end

  def closed_unit(bits)
    turned = (bits & 0xffffffff) << 32 | bits >> 32
    (turned * (2**53 + 1) >> 64) / 2.0**53
  end

  # By multiplication, with rejection of the products that would make some more likely.
  def below(count)
    loop do
      product = Ikra.draw * count
      return product >> 64 if product & (2**64 - 1) >= (2**64 - count) % count
    end
  end

  def within(range)
    first = range.begin
    width = range.end - first
    return first + below(width + (range.exclude_end? ? 0 : 1)) if width.is_a?(Integer)

    first + width * (range.exclude_end? ? open_unit(Ikra.draw) : closed_unit(Ikra.draw))
  end
end
Object.prepend(Draws)
