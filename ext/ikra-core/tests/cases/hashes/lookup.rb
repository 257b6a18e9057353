# A Hash is looked up by Symbols, Integers, Strings, Floats, nil, true and false.
#
# table = { a: 1, 5 => 2.5, "five" => :five, nil => nil, true => :yes, 2.0 => 7, -1 => 0, "" => "" }
# elements = [:a, 5, "five", nil, true, 2.0, -1, "", :b, 6, "fiv", false, 2, 5.0, -0.0]
# gives: [1, 2.5, :five, :nothing, :yes, 7, 0, "", 9, 9, 9, 9, 9, 9, 9]
# checks: 1
#
# table = {}
# elements = [:a, 5, "five", nil]
# gives: [9, 9, 9, 9]
#
# table = { 0.0 => :zero, 1 => :one }
# elements = [0.0, -0.0, 0, 1, 1.0]
# gives: [:zero, :zero, 9, :one, 9]

elements.pmap do |key|
  found = table[key]
  table.key?(key) ? (found.nil? ? :nothing : found) : table.fetch(key, 9)
end
