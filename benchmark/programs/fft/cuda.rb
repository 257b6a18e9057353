# frozen_string_literal: true

class Program::Fft
  def compute(gpu)
    numbers = STATE.map { |name| gpu[name] }
    half = gpu.size(:cosine)
    gpu.value(:stages).times { |stage| gpu.launch(:stage, half, 256, gpu[:cosine], gpu[:sine], *numbers.rotate(2 * stage), half, 1 << stage) }
  end
end
