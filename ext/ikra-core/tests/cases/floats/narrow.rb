# Fields that are rounded wherever they are loaded have 32 bits. A body that does not move keeps all bits of its place.
#
# a = Body(x: 0.25, mass: 0.1)
# b = Body(x: 0.7, mass: 0.3)
# all = [a, b]
# elements = [a, b]
# differs: the user asked for 32 bits
# options: precision f32
# shows: after:narrow_floats
# after: a.x => 0.45000001788139343
# after: b.x => 0.7

class Body
  attr_accessor :x, :mass

  def move(all)
    all.each { |other| @x += other.mass * 0.5 if @x < 0.5 }
  end
end

elements.peach { |body| body.move(all) }
