# A primitive's name is that of no method where a program calls it.
#
# elements = [[1, 2]]
# raises: NoMethodError at line 6, index 0, tick 0: undefined method `__at' for [1, 2]:Array

elements.pmap { |list| list.__at(0) }
