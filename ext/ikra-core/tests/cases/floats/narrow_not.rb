# Fields have all bits where a program gives one as it is, or copies it to another.
#
# a = Body(x: 0.1, y: 0.25, z: 0.5)
# b = Body(x: 0.7, y: 0.1, z: 0.1)
# all = [a, b]
# elements = [a, b]
# differs: the user asked for 32 bits
# options: precision f32
# shows: after:narrow_floats
# gives: [0.1, 0.7]
# after: a.z => 0.1
# after: b.z => 0.1

class Body
  attr_accessor :x, :y, :z

  def least(all)
    all.each { |other| @z = other.y if other.y < @z }
    @x
  end
end

elements.pmap { |body| body.least(all) }
