# `super` that finds nothing is an error where it is reached.
#
# elements = [Only(n: 1)]
# raises: NoMethodError at line 7, index 0, tick 0: super: no superclass method `go' for #<Only>

class Only
  def go = super
end

elements.pmap { |x| x.go }
