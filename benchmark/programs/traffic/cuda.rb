# frozen_string_literal: true

class Traffic::Benchmark
  def compute(gpu)
    columns = %i[length limit neighbors_offset neighbors roads_offset roads own progress street dice].map { |name| gpu[name] }
    counts = %i[cars buses pedestrians].map { |name| gpu.value(name) }
    gpu.launch(:simulate, counts.sum { |count| (count + 31) / 32 * 32 }, 256, *columns, *counts, gpu.value(:ticks), gpu.value(:car_grip), gpu.value(:bus_grip))
  end
end
