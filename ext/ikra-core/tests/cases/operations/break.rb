# break in the user's block leaves the section, whatever the operation is.
#
# elements = [1, 2, 3]
# seen = 0
# gives: 20
# after: seen => 3
#
# elements = [1, 5]
# seen = 0
# after: seen => 6

elements.pfind_within(:truth) do |x|
  seen += x
  break x * 10 if x == 2
  x > 5
end
