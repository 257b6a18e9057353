# frozen_string_literal: true

class Program::Boids
  def compute(gpu)
    size = gpu.size(:x)
    birds = [*STATE.map { |name| gpu[name] }, gpu.scratch(:ux, 8 * size), gpu.scratch(:uy, 8 * size)]
    gpu.value(:steps).times do
      gpu.launch(:decide, size, 64, *birds, size, gpu.value(:field))
      gpu.launch(:fly, size, 64, *birds, size)
    end
  end
end
