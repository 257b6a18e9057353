# Methods of classes and modules, private ones too.
#
# elements = [1, 2, 3]
# gives: [17, 27, 37]

module Rates
  def self.double(x) = x * 2

  class << self
    def triple(x) = double(x) + x
  end
end

class Meter
  FACTOR = 7

  def self.read(x)
    hidden(x) * FACTOR
  end

  def self.hidden(x) = x + 1
  private_class_method :hidden
end

elements.pmap { |x| Rates.triple(x) + Meter.read(x) }
