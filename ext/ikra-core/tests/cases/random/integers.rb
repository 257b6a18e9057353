# Integers below a limit and from Ranges, known and not.
#
# elements = [1, 6, 100, 9223372036854775807]
# gives: [241, 57, 329, 2478496050832727170]

elements.pmap { |n| rand(6) * 100 + rand(1..6) * 10 + rand(8) + rand(n) / 2 }
