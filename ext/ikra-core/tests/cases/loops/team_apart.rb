# Repetitions that read what earlier ones stored run one after the other.
#
# elements = [[1, 2, 3, 4], [5, 6, 7]]
# after: elements => [[1, 3, 6, 10], [5, 11, 18]]
# shows: team

elements.peach do |row|
  1.upto(row.size - 1) { |at| row[at] += row[at - 1] }
end
