# Ticks are launches of their own, as birds read what others wrote. Sums in a bird's own fields are in registers.
#
# a = Bird(x: 0.0, step: 1.0)
# b = Bird(x: 2.0, step: -1.0)
# c = Bird(x: 9.0, step: 0.5)
# elements = [a, b, c]
# flock = [a, b, c]
# after: c.x => 10.0
# after: a.sum => 1.0
# after: a.seen => 1
# after: b.sum => 1.0
# after: c.sum => 0.0
#
# a = Bird(x: 0.0, step: 1.0)
# b = Bird(x: 2.0, step: -1.0)
# c = Bird(x: 9.0, step: 0.5)
# flock = [b, c, a]
# elements = [c, a, b]
# after: a.sum => 1.0
# after: b.sum => 1.0
# after: c.sum => 0.0
# after: c.x => 10.0
#
# a = Bird(x: 0.0, step: 1.0)
# b = Bird(x: 2.0, step: -1.0)
# flock = [a, b]
# elements = [a, b, a]
# after: a.x => 4.0
# after: a.sum => 1.0
# after: a.seen => 1
# after: b.sum => 2.0
# shows: after:register_promotion

class Bird
  attr_reader :x, :sum, :seen

  def look(flock)
    @sum = 0.0
    @seen = 0
    flock.each { |bird| see(bird) unless bird.equal?(self) }
  end

  def see(bird)
    return if (bird.x - x).abs > 5.0

    @sum += bird.x
    @seen += 1
  end

  def move = @x += @step
end

elements.peach(4) { |bird| Ikra.tick.even? ? bird.look(flock) : bird.move }
