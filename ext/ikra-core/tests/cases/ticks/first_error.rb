# The error of the least tick wins, and of those the least index.
#
# elements = [Bomb(fuse: 3), Bomb(fuse: 1), Bomb(fuse: 1)]
# raises: ZeroDivisionError at line 9, index 1, tick 0: divided by 0

class Bomb
  def burn
    @fuse -= 1
    1 / @fuse
  end
end

elements.peach(5) { |bomb| bomb.burn }
