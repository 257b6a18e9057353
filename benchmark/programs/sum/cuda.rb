# frozen_string_literal: true

class Program::Sum
  def compute(gpu)
    count = gpu.size(:x)
    blocks = [(count + 255) / 256, 8 * gpu.processors].min
    partial = gpu.scratch(:partial, 8 * blocks)
    gpu.launch(:sums, 256 * blocks, 256, gpu[:x], partial, count)
    gpu.launch(:sums, 256, 256, partial, gpu[:total], blocks)
  end
end
