# An array that one call went over grows after it, in its rescue clause and by what its block collects.
#
# elements = [0, 2]
# gives: [[0, 1, 0, 2, 1], [2, 1, 4, 3, 4]]
# checks: 10

elements.pmap do |x|
  list = [x, 1]
  other = list.map { |y| y * x }
  list << other.first
  begin
    list.each { |y| other << y if y > x; raise "none" if y > 3 }
    list << 2
  rescue RuntimeError
    list << 3
  end
  list << other.last
end
