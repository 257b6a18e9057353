# frozen_string_literal: true

class Program::Nbody
  def compute(gpu)
    state = STATE.map { |name| gpu[name] }
    size = gpu.size(:mass)
    gpu.value(:steps).times do
      gpu.launch(:attract, size, 128, gpu[:mass], *state, size, gpu.value(:seconds))
      gpu.launch(:move, size, 128, *state, size, gpu.value(:seconds))
    end
  end
end
