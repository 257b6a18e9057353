# Math functions with exact results, and a domain error.
#
# elements = [4.0, 2.25, 0.0]
# gives: [11.141592653589793, 8.891592653589793, 5.141592653589793]
#
# elements = [1.0, -1.0]
# raises: Math::DomainError at line 9, index 1, tick 0: Numerical argument is out of domain - sqrt

elements.pmap { |x| Math.sqrt(x) + Math.hypot(x, 0.0) + Math.cbrt(8.0) + Math::PI }
