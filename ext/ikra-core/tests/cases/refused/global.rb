# Global variables are not copied.
#
# elements = [1]
# refused: a global variable

elements.pmap { |x| x + $limit }
