# A constant that is not defined is named as seen from the class around it.
#
# elements = [Far(n: 1)]
# raises: NameError at line 7, index 0, tick 0: uninitialized constant Far::NOWHERE

class Far
  def go = NOWHERE
end

elements.pmap { |x| x.go }
