# A message with a value that only the host can write is refused where it is asked for, and nowhere else.
#
# elements = [0, 1]
# gives: [0, "one"]
#
# elements = [0, 1, 2]
# raises: Ikra::CompileError at line 14, index 2, tick 0: kernels do not know the message of this exception
# differs: kernels know no names of classes

elements.pmap do |x|
  raise "#{x.class} is two" if x == 2
  raise x == 1 ? IOError : KeyError, "one"
rescue IOError, RuntimeError => e
  e.message
rescue KeyError
  0
end
