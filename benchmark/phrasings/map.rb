# frozen_string_literal: true

class Program::Map
  phrasing "a temporary and next" do
    def compute(floats)
      floats.pmap do |x|
        less = x * 0.999
        next less + 0.5
      end
    end
  end

  phrasing "constants in variables" do
    def compute(floats)
      factor = 0.999
      offset = 0.5
      floats.pmap { |x| x * factor + offset }
    end
  end

  phrasing "methods cut small" do
    def compute(floats) = floats.pmap { |x| raised(lessened(x)) }
    def lessened(number) = number * 0.999
    def raised(number) = number + 0.5
  end

  phrasing "a chain of two maps" do
    def compute(floats) = floats.plazy.map { |x| x * 0.999 }.map { |x| x + 0.5 }.to_a
  end

  phrasing "indices in place of elements" do
    def compute(floats) = (0...floats.size).pmap { |i| floats[i] * 0.999 + 0.5 }
  end

  phrasing "peach into an Array" do
    def compute(floats)
      result = Array.new(floats.size, 0.0)
      floats.each_index.to_a.peach { |i| result[i] = floats[i] * 0.999 + 0.5 }
      result
    end
  end

  phrasing "Array.pnew, a guard" do
    def compute(floats)
      Array.pnew(floats.size) { |i| i < floats.size ? floats[i] * 0.999 + 0.5 : 0.0 }
    end
  end

  phrasing "a lambda" do
    def compute(floats)
      change = ->(x) { x * 0.999 + 0.5 }
      floats.pmap(&change)
    end
  end

  phrasing "the method of an object" do
    # A line in the plane.
    Line = Struct.new(:slope, :offset) do
      def at(x) = slope * x + offset
    end

    def compute(floats)
      line = Line.new(0.999, 0.5)
      floats.pmap { |x| line.at(x) }
    end
  end

  phrasing "MDArray, a block" do
    def state(input) = Ikra::MDArray.new(input[:x])
    def outputs(_state, result) = { y: result.to_a }
    def compute(floats) = floats.map { |x| x * 0.999 + 0.5 }
  end

  phrasing "MDArray, operators" do
    def state(input) = Ikra::MDArray.new(input[:x])
    def outputs(_state, result) = { y: result.to_a }
    def compute(floats) = (floats * 0.999 + 0.5).sync
  end
end
