# frozen_string_literal: true

# A fluid of particles (smoothed particle hydrodynamics): each sees those in its own cell of a grid and in the cells
# around it. Ten steps are one call.
#
# Cells are filled once, and are wider than particles see. So no particle comes near enough to be missed in ten steps.
class Program::Sph < Program
  STEPS = 10
  SIGHT = 1.0
  CELL = 1.1
  STATE = %i[x y vx vy].freeze
  sizes tiny: 20, small: 5_000, normal: 100_000, ruby: 1_000, scaling: [100, 1_000, 10_000, 100_000]

  # About ten particles are in sight. Velocities are less than 0.4, and a step is a hundredth of a second.
  def input(size, random)
    side = (0.55 * Math.sqrt(size)).ceil(1)
    across = (side / CELL).ceil
    places = Array.new(2) { Array.new(size) { side * random.rand } }
    columns = Columns.new.input(:steps, :int64, STEPS).input(:seconds, :float64, 0.01).input(:across, :int64, across)
    cells = places.transpose.map { |x, y| (y / CELL).floor * across + (x / CELL).floor }
    members = Array.new(across * across) { [] }
    cells.each_with_index { |cell, particle| members[cell] << particle }
    columns.input(:cell, :int32, cells).input(:members, :int32, members.flatten(1))
           .input(:first, :int32, members.each_with_object([0]) { |list, firsts| firsts << firsts.last + list.size })
    STATE.each_with_index { |name, index| columns.output(name, :float64, places[index] || Array.new(size) { 0.4 * random.rand - 0.2 }) }
    columns
  end

  def state(input)
    across, first, members = input[:across], input.fetch(:first).values, input.fetch(:members).values
    cells = Array.new(across * across) { Cell.new }
    places = STATE.map { |name| input.fetch(name).values }.transpose
    particles = places.each_index.map { |index| Particle.new(cells[input.fetch(:cell).values[index]], *places[index]) }
    cells.each_with_index do |cell, number|
      row, column = number.divmod(across)
      cell.around = [row - 1, row, row + 1].product([column - 1, column, column + 1]).select { |place| place.all? { |at| at.between?(0, across - 1) } }
                                           .map { |y, x| cells[y * across + x] }
      cell.particles = particles.values_at(*members[first[number]...first[number + 1]])
    end
    [particles, input[:steps], input[:seconds]]
  end

  def changes? = true
  def outputs((particles, *), _result) = STATE.to_h { |name| [name, particles.map(&name)] }

  # Of about 36 particles in nine cells, each computes a distance twice, and looks at ten twice.
  def work(input, outputs) = { flops: input[:steps] * outputs[:x].size * (2 * 36 * 5 + 10 * 24), bytes: input[:steps] * outputs[:x].size * 16 * 8 }
  def loose_tolerance = [1e-6, "contracted arithmetic, ten steps of it"]
end
