# What kernels do not do with exceptions.
#
# refused: kernels do not know message of an exception
# elements = [1]

elements.pmap do |x|
  1 / x
rescue => e
  e.message
end
