# frozen_string_literal: true

require_relative "model"

class Program::Fft
  # A tick is a stage: from the one pair of Arrays in even ones, back in odd ones. All of it is one call.
  def compute((stages, cosine, sine, re, im, other_re, other_im))
    (0...cosine.size).peach(stages) do |index|
      distance = 1 << Ikra.tick
      if Ikra.tick.even?
        butterfly(index, distance, cosine, sine, re, im, other_re, other_im)
      else
        butterfly(index, distance, cosine, sine, other_re, other_im, re, im)
      end
    end
  end
end
