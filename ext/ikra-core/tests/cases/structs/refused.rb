# What kernels do not do with Structs.
#
# elements = [Point(x: 1, y: 2)]
# how = :x
# refused: by a Symbol only where it is written out

Point = Struct.new(:x, :y)

elements.pmap { |p| p[how] }
