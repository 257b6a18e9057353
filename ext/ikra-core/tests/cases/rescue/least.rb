# An element that rescues does not stop those after it, and the first that does not rescue counts.
#
# elements = [Cell(a: 1), Cell(a: 0), Cell(a: 5), Cell(a: 2)]
# raises: RangeError at line 13, index 1, tick 1: 5 at 1

class Cell
  def step
    @a = begin
      10 / @a
    rescue ZeroDivisionError
      @a + 2
    end
    raise RangeError, "#{@a} at #{Ikra.index}" if @a == 5 && Ikra.tick > 0
  end
end

elements.peach(4) { |c| c.step }
