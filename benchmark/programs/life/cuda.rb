# frozen_string_literal: true

class Program::Life
  def compute(gpu)
    cells = gpu.size(:alive)
    worlds = [gpu[:alive], gpu.scratch(:next, cells)]
    gpu.value(:generations).times { |g| gpu.launch(:generation, cells, 256, *worlds.rotate(g), gpu.value(:size)) }
  end
end
