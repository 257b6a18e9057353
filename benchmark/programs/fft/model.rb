# frozen_string_literal: true

class Program::Fft
  # Two numbers of a stage's results, +distance+ apart, from two of those before it.
  def butterfly(index, distance, cosine, sine, re, im, to_re, to_im)
    half = cosine.size
    angle = index / distance * distance
    down_re = re[index] - re[index + half]
    down_im = im[index] - im[index + half]
    to_re[index + angle] = re[index] + re[index + half]
    to_im[index + angle] = im[index] + im[index + half]
    to_re[index + angle + distance] = down_re * cosine[angle] - down_im * sine[angle]
    to_im[index + angle + distance] = down_re * sine[angle] + down_im * cosine[angle]
  end
end
