# Ticks over objects that only their own element touches run in one kernel.
#
# elements = [Particle(x: 0.0, v: 1.0), Particle(x: 5.0, v: -1.0)]
# after: elements[0].x => 0.0
# after: elements[1].v => -1.0
# kernels: 1

class Particle
  def step
    @x += @v
    @v = -@v if @x > 3.0 || @x < 0.0
  end
end

elements.peach(10) { |p| p.step }
