# What kernels do not compare: the place is that of the comparison.
#
# other = [1, :a]
# elements = [[1, :b]]
# refused: comparisons/refused.rb:7:23: kernels do not know Symbol#<=>

elements.pmap { |a| a <=> other }
