# frozen_string_literal: true

# Gravity: each star is an object that is drawn to all others. Ten steps are one call. It is bound by arithmetic.
class Program::Nbody < Program
  STEPS = 10
  STATE = %i[x y z vx vy vz].freeze
  sizes tiny: 10, small: 1_000, normal: 4_000, ruby: 300, scaling: [10, 32, 100, 316, 1_000, 3_162, 10_000]

  def input(size, random)
    columns = Columns.new.input(:mass, :float64, Array.new(size) { (0.5 + random.rand) / size }).input(:steps, :int64, STEPS).input(:seconds, :float64, 0.01)
    STATE.each { |name| columns.output(name, :float64, Array.new(size) { name.size == 1 ? 8.0 * random.rand - 4.0 : 0.4 * random.rand - 0.2 }) }
    columns
  end

  def state(input)
    columns = [:mass, *STATE].map { |name| input.fetch(name).values }
    [columns.transpose.map { |star| Star.new(*star) }, input[:steps], input[:seconds]]
  end

  def changes? = true
  def outputs((stars, *), _result) = STATE.to_h { |name| [name, stars.map(&name)] }
  def ratio(size, small) = (size / small.to_f)**2
  def work(input, outputs) = { flops: input[:steps] * outputs[:x].size**2 * 18, bytes: input[:steps] * outputs[:x].size * 13 * 8 }
  def loose_tolerance = [1e-6, "contracted arithmetic, ten steps of it"]
end
