# frozen_string_literal: true

class Program::Mandelbrot
  def compute(gpu)
    gpu.launch(:mandelbrot, gpu.size(:steps), 256, gpu[:steps], gpu.value(:width), gpu.value(:left), gpu.value(:top), gpu.value(:step))
  end
end
