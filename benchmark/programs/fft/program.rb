# frozen_string_literal: true

# The discrete Fourier transform of complex numbers, by radix 2, in Stockham's order, which needs no reversal of bits.
# Each stage reads one pair of Arrays and writes another. All stages are one call.
#
# Sines and cosines are an input, so that all versions give the same bits.
class Program::Fft < Program
  STATE = %i[re im other_re other_im].freeze
  sizes tiny: 16, small: 1 << 16, normal: 1 << 20, ruby: 1 << 14, scaling: [1 << 7, 1 << 10, 1 << 13, 1 << 17, 1 << 20]

  # The size is a power of two.
  def input(size, random)
    angles = Array.new(size / 2) { |index| -2.0 * Math::PI * index / size }
    columns = Columns.new.input(:stages, :int64, size.bit_length - 1)
    columns.input(:cosine, :float64, angles.map { |angle| Math.cos(angle) }).input(:sine, :float64, angles.map { |angle| Math.sin(angle) })
    STATE.each_with_index { |name, index| columns.output(name, :float64, Array.new(size) { index < 2 ? random.rand - 0.5 : 0.0 }) }
    columns
  end

  def state(input) = [input[:stages], *(%i[cosine sine] + STATE).map { |name| input.fetch(name).values.dup }]
  def changes? = true
  def outputs((*, re, im, other_re, other_im), _result) = { re: re, im: im, other_re: other_re, other_im: other_im }
  def ratio(size, small) = size * Math.log2(size) / (small * Math.log2(small))

  def work(input, outputs)
    { flops: 5 * input[:stages] * outputs[:re].size, bytes: 2 * 16 * input[:stages] * outputs[:re].size }
  end
end
