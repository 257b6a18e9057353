# Numbers and objects in one array.
#
# elements = [1, Point(x: 2), 2.5, nil, Point(x: 4)]
# gives: [2, 3, 3.5, 0, 5]

class Point
  attr_reader :x

  def +(other)
    @x + other
  end
end

elements.pmap { |e| e.nil? ? 0 : e + 1 }
