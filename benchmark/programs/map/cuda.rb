# frozen_string_literal: true

class Program::Map
  def compute(gpu)
    gpu.launch(:map, gpu.size(:x), 256, gpu[:x], gpu[:y], gpu.size(:x))
  end
end
