# frozen_string_literal: true

class Program::SmithWaterman
  def compute(gpu)
    rows, columns = gpu.size(:one), gpu.size(:other)
    (2..rows + columns).each do |diagonal|
      first, last = [diagonal - columns, 1].max, [diagonal - 1, rows].min
      gpu.launch(:align, last - first + 1, 128, gpu[:one], gpu[:other], gpu[:score], columns, diagonal, first, last)
    end
  end
end
