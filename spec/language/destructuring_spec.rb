# frozen_string_literal: true

module Destructuring
  def self.pair((a, b), c = 1) = (a * 100) + (b * 10) + c
  def self.some(a, b = 5, *, c) = a + (b * 10) + (c * 100)
  def self.keys(a:, **) = a
end

RSpec.describe "Destructuring in kernels" do
  lists = [[1, 2, 3], [4], [5, 6]]

  it "assigns nested lists and around splats" do
    expect(lists).to map_same_as_ruby { |l|
      a, (b, *), c = l[0], l, 7
      first, * = l
      *, last = l
      x, *, y, z = l
      a + (b || 0) + c + first + last + x + (y || 0) + (z || 0)
    }
  end

  it "takes block parameters apart, with numbered parameters and it" do
    pairs = [[1, 2], [3, 4]]
    expect([1, 2]).to map_same_as_ruby { |x|
      sum = 0
      pairs.each { |(a, b)| sum += a * b * x }
      pairs.each { |a, b| sum += a + b }
      pairs.each { |a, *| sum += a }
      pairs.each_with_index { |(a, b), i| sum += (a + b) * i }
      pairs.each { sum += _1 * _2 }
      x.times { sum += _1 }
      sum
    }
  end

  it "takes method parameters apart, and skips what nameless splats take" do
    expect(lists).to map_same_as_ruby { |l|
      next 0 if l.size < 2

      Destructuring.pair(l) + Destructuring.some(l[0], l[1]) + Destructuring.some(1, 2, 3, 4) + Destructuring.keys(a: 1, b: 2)
    }
  end

  it "swaps and counts what is missing as nil" do
    expect([1, 2]).to map_same_as_ruby { |x|
      a, b = x, 5
      a, b = b, a
      c, d = [x]
      (a * 10) + b + c + (d.nil? ? 100 : 0)
    }
  end
end
