# frozen_string_literal: true

class Program::BlackScholes
  def compute(gpu)
    columns = %i[spot strike years put price].map { |name| gpu[name] }
    gpu.launch(:prices, gpu.size(:spot), 256, *columns, gpu.size(:spot), gpu.value(:rate), gpu.value(:volatility))
  end
end
