# A Hash is read at constant keys like an object: each key is a column.
#
# elements = [{ "age" => 3, name: "a" }, { "age" => 4, name: "bc" }]
# gives: [4, 6]
#
# elements = [{ "age" => 3 }, { name: "bc" }, {}]
# gives: [3, 2, -1]

elements.pmap do |record|
  next -1 unless record.key?("age") || record.key?(:name)
  (record["age"] || 0) + record.fetch(:name, "").size
end
