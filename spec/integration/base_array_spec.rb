# frozen_string_literal: true

require "spec_helper"

RSpec.describe "A block that writes the array it runs over" do
  on_every_backend do
    it "is refused over several ticks, where each tick would have to see new elements" do
      numbers = [1, 2, 3]
      expect { numbers.peach(2, backend: backend) { |x| numbers[Ikra.index] = x + 1 } }.to raise_error(Ikra::CompileError, /writes the very array/)
      expect(numbers).to eq([1, 2, 3])
    end

    it "runs for one tick" do
      numbers = [1, 2, 3]
      numbers.peach(backend: backend) { |x| numbers[Ikra.index] = x + 1 }
      expect(numbers).to eq([2, 3, 4])
    end

    it "runs over several ticks when it reads the elements from the array" do
      numbers = [1, 2, 3]
      numbers.peach(3, backend: backend) { numbers[Ikra.index] = numbers[Ikra.index] + 1 }
      expect(numbers).to eq([4, 5, 6])
    end
  end
end
