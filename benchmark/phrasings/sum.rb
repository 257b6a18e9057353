# frozen_string_literal: true

class Program::Sum
  phrasing "preduce with a Symbol" do
    def compute(floats) = floats.preduce(:+)
  end

  phrasing "preduce from zero, a temporary" do
    def compute(floats)
      floats.preduce(0.0) do |sum, x|
        following = sum + x
        following
      end
    end
  end

  phrasing "psum" do
    def compute(floats) = floats.psum
  end

  phrasing "psum with a block" do
    def compute(floats) = floats.psum { |x| x }
  end

  phrasing "psum over indices" do
    def compute(floats) = (0...floats.size).psum { |i| floats[i] }
  end

  phrasing "a captured variable" do
    def compute(floats)
      sum = 0.0
      floats.peach { |x| sum += x }
      sum
    end
  end

  phrasing "pmap and preduce" do
    def compute(floats) = floats.pmap { |x| x }.preduce { |a, b| a + b }
  end

  phrasing "MDArray#sum" do
    def state(input) = Ikra::MDArray.new(input[:x])
    def compute(floats) = floats.sum
  end
end
