# What kernels do not do with Hashes.
#
# table = { a: 1 }
# elements = [0]
# refused: Hash#[]=

elements.pmap { |x| table[:b] = x }
