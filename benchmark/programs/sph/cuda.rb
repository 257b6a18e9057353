# frozen_string_literal: true

class Program::Sph
  def compute(gpu)
    size = gpu.size(:x)
    grid = [*%i[cell first members].map { |name| gpu[name] }, gpu.value(:across)]
    x, y, vx, vy = STATE.map { |name| gpu[name] }
    density, pressure, ax, ay = %i[density pressure ax ay].map { |name| gpu.scratch(name, 8 * size) }
    gpu.value(:steps).times do
      gpu.launch(:weigh, size, 128, *grid, x, y, density, pressure, size)
      gpu.launch(:push, size, 128, *grid, x, y, vx, vy, density, pressure, ax, ay, size)
      gpu.launch(:move, size, 256, x, y, vx, vy, ax, ay, size, gpu.value(:seconds))
    end
  end
end
