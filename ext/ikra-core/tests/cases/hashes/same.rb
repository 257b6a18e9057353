# A Hash of one kind of key and of value.
#
# weights = { "apple" => 3, "pear" => 5, "fig" => 8 }
# elements = ["fig", "apple", "pear", "apple"]
# gives: [27, 12, 18, 12]

elements.pmap { |name| weights[name] * 2 + weights.fetch(name) + weights.size }
