# Captured variables of several types, and `self` of the caller with its ivars and methods.
#
# scale = 2.5
# offset = 3
# flag = nil
# elements = [1, 2]
# self: Simulation(base: 100)
# gives: [205.5, 208.0]

class Simulation
  def adjust(x) = x + @base
end

elements.pmap { |x| adjust(x * scale + offset + (flag ? 1 : 0)) + @base }
