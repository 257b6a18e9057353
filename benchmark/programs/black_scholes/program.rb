# frozen_string_literal: true

# Prices of European options, objects of two classes: bound by the functions of Math.
class Program::BlackScholes < Program
  sizes tiny: 60, small: 300_000, normal: 2_000_000, ruby: 300_000, scaling: [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]
  Market = Struct.new(:rate, :volatility)

  def input(size, random)
    Columns.new.input(:rate, :float64, 0.01 + 0.02 * random.rand).input(:volatility, :float64, 0.2 + 0.2 * random.rand)
           .input(:put, :byte, Array.new(size) { random.rand(2) })
           .input(:spot, :float64, Array.new(size) { 5.0 + 25.0 * random.rand }).input(:strike, :float64, Array.new(size) { 1.0 + 99.0 * random.rand })
           .input(:years, :float64, Array.new(size) { 0.25 + 9.75 * random.rand }).output(:price, :float64, [0.0] * size)
  end

  def state(input)
    puts, spots, strikes, years = %i[put spot strike years].map { |name| input.fetch(name).values }
    options = puts.each_index.map { |i| (puts[i] == 1 ? Put : Call).new(spots[i], strikes[i], years[i]) }
    [Market.new(input[:rate], input[:volatility]), options]
  end

  def outputs(_state, result) = { price: result }

  # Each of log, exp, sqrt and erfc counts as one operation.
  def work(input, outputs) = { flops: 24 * outputs[:price].size, bytes: (1 + 4 * 8) * input.fetch(:put).values.size }
  def tolerance = [1e-11, "Math's functions are each library's own, and CUDA's differ from the C library's in the last digits"]
end
