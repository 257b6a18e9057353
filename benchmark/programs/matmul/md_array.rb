# frozen_string_literal: true

class Program::Matmul
  def state(input) = %i[a b].map { |name| Ikra::MDArray.new(input.fetch(name).values.each_slice(input[:size]).to_a) }
  def outputs(_state, result) = { c: result.to_a.flatten(1) }

  def compute((a, b))
    # the same sums in the same order as the others: cuBLAS has its own
    a.matmul(b, blas: false)
  end
end
