# A job changes a line of a flat array. Whether its threads can share the line depends on where the other line is.
#
# size = 3
# values = [5.0, 1.0, 2.0, 4.0, 8.0, 3.0, 7.0, 6.0, 9.0]
# elements = [0, 1, 2]
# after: values => [5.0, 1.0, 2.0, 4.0, 5.0, 3.0, 7.0, 3.0, 4.0]
# shows: team

elements.peach do |line|
  next if line < 0
  start = values[line * size + 1]
  here = line * size
  other = 0
  last = here + size
  while here < last
    through = start - 4.0 + values[other]
    values[here] = through if line > 0 && through < values[here] && through > 2.5
    here += 1
    other += 1
  end
end
