# KeyError of fetch, in Ruby's words, and fetch with a block.
#
# table = { a: 1, "b" => 2 }
# elements = [:a, "b", 7]
# gives: [1, 2, 14]
# checks: 0
#
# table = { a: 1 }
# elements = [:a, :b]
# raises: KeyError at line 16, index 1, tick 0: key not found: :b
#
# table = { a: 1 }
# elements = ["text"]
# raises: KeyError at line 16, index 0, tick 0: key not found: "text"

elements.pmap { |key| key == 7 ? table.fetch(key) { |k| k * 2 } : table.fetch(key) }
