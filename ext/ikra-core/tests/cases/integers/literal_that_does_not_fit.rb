# A literal between 2**63 and 2**64 may go into what is masked, and nowhere else.
#
# elements = [1]
# differs: Integers beyond 64 bits raise
# raises: Ikra::IntegerOverflow at line 7, index 0, tick 0: this literal gives an Integer beyond 64 bits

elements.pmap { |x| x + 0x9e3779b97f4a7c15 }
