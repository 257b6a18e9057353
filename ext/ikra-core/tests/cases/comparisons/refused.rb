# What kernels do not compare: the place is that of the comparison.
#
# other = [:a]
# elements = [[:b]]
# refused: comparisons/refused.rb:7:23: kernels do not know Symbol#<=>

elements.pmap { |a| a <=> other }
