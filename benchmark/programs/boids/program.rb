# frozen_string_literal: true

# A flock of birds (Reynolds' boids): each looks at all others, keeps its distance, flies where they fly, and stays with
# them. 10 steps are one call.
class Program::Boids < Program
  STEPS = 10
  STATE = %i[x y vx vy].freeze
  sizes tiny: 12, small: 1_000, normal: 4_000, ruby: 300, scaling: [10, 32, 100, 316, 1_000, 3_162, 10_000]

  def input(size, random)
    field = 3.0 * Math.sqrt(size)
    columns = Columns.new.input(:steps, :int64, STEPS).input(:field, :float64, field)
    STATE.each { |name| columns.output(name, :float64, Array.new(size) { name.size == 1 ? field * random.rand : 2.0 * random.rand - 1.0 }) }
    columns
  end

  def state(input) = [STATE.map { |name| input.fetch(name).values }.transpose.map { |bird| Bird.new(*bird) }, input[:steps], input[:field]]
  def changes? = true
  def outputs((flock, *), _result) = STATE.to_h { |name| [name, flock.map(&name)] }
  def ratio(size, small) = (size / small.to_f)**2
  def work(input, outputs) = { flops: input[:steps] * outputs[:x].size**2 * 6, bytes: input[:steps] * outputs[:x].size * 12 * 8 }

  # Whether a bird is seen may depend on the last digit of its distance, and changes all that follows.
  def loose_tolerance = [1e-3, "contracted arithmetic decides who is seen"]
end
