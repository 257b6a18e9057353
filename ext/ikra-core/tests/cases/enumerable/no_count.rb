# What is no number is no count.
#
# list = [1, 2]
# elements = [1, 2, 3]
# raises: TypeError at line 7, index 1, tick 0: no implicit conversion of true into Integer

elements.pmap { |x| list.first(x == 2 ? true : 1).size }
