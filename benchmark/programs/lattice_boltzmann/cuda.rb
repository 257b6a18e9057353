# frozen_string_literal: true

class Program::LatticeBoltzmann
  def compute(gpu)
    flows = [gpu[:flows], gpu[:others]]
    gpu.value(:steps).times { |step| gpu.launch(:step, gpu.size(:solid), 256, *flows.rotate(step), gpu[:solid], gpu.value(:size), gpu.value(:relaxation)) }
  end
end
