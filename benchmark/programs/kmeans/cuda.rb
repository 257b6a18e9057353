# frozen_string_literal: true

class Program::Kmeans
  def compute(gpu)
    sums = gpu.scratch(:sums, 3 * 8 * CLUSTERS)
    gpu.clear(sums, 3 * 8 * CLUSTERS)
    gpu.value(:rounds).times do
      gpu.call { gpu.launch(:join, gpu.size(:x), 256, gpu[:x], gpu[:y], gpu[:cx], gpu[:cy], gpu[:cluster], sums, gpu.size(:x)) }
      gpu.launch(:settle, CLUSTERS, CLUSTERS, gpu[:cx], gpu[:cy], sums)
    end
  end
end
