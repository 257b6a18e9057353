# frozen_string_literal: true

class Program::Life
  # Tuned: the cells are bytes beside each other, without lists of neighbours.
  def compute(gpu)
    cells = gpu.size(:alive)
    worlds = [gpu[:alive], gpu.scratch(:next, cells)]
    gpu.value(:generations).times do |g|
      next gpu.launch(:generation, cells, 256, *worlds.rotate(g), gpu.value(:size)) if gpu.tuned?

      gpu.launch(:look, cells, 256, gpu[:neighbours], *worlds, cells)
      gpu.launch(:become, cells, 256, *worlds, cells)
    end
  end
end
