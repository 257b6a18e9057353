# frozen_string_literal: true

require_relative "model"

class Program::Fft
  def compute((stages, cosine, sine, re, im, other_re, other_im))
    stages.times do |stage|
      cosine.size.times { |index| butterfly(index, 1 << stage, cosine, sine, re, im, other_re, other_im) }
      re, im, other_re, other_im = other_re, other_im, re, im
    end
  end
end
