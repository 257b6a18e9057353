# Positional, default and keyword arguments.
#
# elements = [1, 2]
# gives: [54, 76]

def plain(a, b) = a * 10 + b

def defaults(a, b = a + 1, c = b * 2)
  a + b + c
end

def keywords(a, scale:, offset: a) = a * scale + offset

elements.pmap do |x|
  plain(x, 2) + defaults(x) + defaults(x, 5) + defaults(x, 5, 6) + keywords(x, scale: 3) + keywords(x, offset: 1, scale: 2)
end
