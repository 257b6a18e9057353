# A job makes a row. Its threads share the elements of the row.
#
# b = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
# size = 3
# rows = [[1.0, 10.0], [2.0, 20.0], [0.5, 0.25]]
# gives: [[41.0, 52.0, 63.0], [82.0, 104.0, 126.0], [1.5, 2.25, 3.0]]
# shows: team

rows.pmap do |row|
  Array.new(size) do |column|
    sum = 0.0
    row.each_index { |k| sum += row[k] * b[k][column] }
    sum
  end
end
