# A bare `super` passes on what a parameter holds then, which may be less than all that it ever holds.
#
# elements = [Car(), Actor()]
# gives: [2, 101.5]

class Actor
  def add(a = 1, k: 0.5)
    a + k
  end
end

class Car < Actor
  def add(a = 100.0, k: :none)
    a = 1
    k = 1
    super
  end
end

elements.pmap { |x| x.is_a?(Car) ? x.add : x.add(101, k: 0.5) }
