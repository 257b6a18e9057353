# Writing a shared object's ivar that others read is a conflict.
#
# board = Board(best: 0)
# elements = [3, 1, 2]
# conflict: best

class Board
  attr_accessor :best
end

elements.pmap do |x|
  board.best = x if x > board.best
  board.best
end
