# Masks of 64 bits: hashes work on unsigned numbers as written, within a method, a variable or an expression. What is left
# of one in the end must fit.
#
# elements = [0, 1, 123456789, 9223372036854775807, -1]
# gives: [1896910305, 1216743066, 287246469, 355749238, 1919762695]

def splitmix(x)
  z = (x + 0x9e3779b97f4a7c15) & 0xffff_ffff_ffff_ffff
  z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & 0xffff_ffff_ffff_ffff
  z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & 0xffff_ffff_ffff_ffff
  z ^ (z >> 31)
end

def fnv(x)
  hash = 0xcbf29ce484222325
  8.times do |i|
    hash = ((hash ^ (x >> 8 * i & 0xff)) * 0x100000001b3) & 0xffff_ffff_ffff_ffff
  end
  hash
end

def rotated(x)
  y = x & 0xffff_ffff_ffff_ffff
  ((y << 13) | (y >> 51)) & 0xffff_ffff_ffff_ffff
end

elements.pmap { |x| (splitmix(x) >> 33) + (fnv(x) & 0xffff) + (rotated(x) >> 40) % 100 }
