# An undefined name is an error when it is reached.
#
# elements = [1, 2]
# gives: [1, 2]
#
# elements = [1, 20]
# raises: NameError at line 9, index 1, tick 0: undefined local variable or method `undefined_thing' for #<Object>

elements.pmap { |x| x > 10 ? undefined_thing + x : x }
