# frozen_string_literal: true

class Program::FloydWarshall
  def compute(gpu)
    size = gpu.value(:size)
    size.times { |between| gpu.launch(:improve, size * size, 256, gpu[:distance], size, between) }
  end
end
