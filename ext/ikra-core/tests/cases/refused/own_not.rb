# A class with a ! of its own.
#
# elements = [Contrary()]
# refused: Contrary has a ! of its own, which kernels do not ask

class Contrary
  def ! = true
end

elements.pmap { |x| !x ? 1 : 2 }
