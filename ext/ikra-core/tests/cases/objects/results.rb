# Objects, symbols, numbers and nil as results; identity is kept.
#
# shared = Tag()
# elements = [Item(tag: shared, n: 0), Item(tag: Tag(), n: 1), Item(tag: shared, n: 2), Item(tag: shared, n: 3)]
# gives: [Tag#1, Tag#2, nil, Item#4]

class Tag
end

class Item
  attr_reader :tag, :n
end

elements.pmap do |item|
  next item if item.n == 3
  next nil if item.n == 2
  item.tag
end
