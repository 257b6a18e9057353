# Parts that leave 64 bits.
#
# elements = [Rational(1, 2), Rational(1, 4611686018427387904)]
# differs: Integers beyond 64 bits raise
# raises: Ikra::IntegerOverflow at line 7, index 1, tick 0: * gives an Integer beyond 64 bits

elements.pmap { |x| x * x }
