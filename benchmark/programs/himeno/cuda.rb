# frozen_string_literal: true

class Program::Himeno
  def compute(gpu)
    coefficients = COEFFICIENTS.keys.map { |name| gpu[name] }
    pressures = [gpu[:p], gpu[:q]]
    gpu.value(:iterations).times { |i| gpu.launch(:sweep, gpu.size(:p), 256, *coefficients, *pressures.rotate(i), gpu.value(:size)) }
  end
end
