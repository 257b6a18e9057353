# What kernels do not do with exceptions.
#
# refused: kernels do not know backtrace of an exception
# elements = [1]

elements.pmap do |x|
  1 / x
rescue => e
  e.backtrace
end
