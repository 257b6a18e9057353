# A Range as the base.
#
# from = 3
# gives: [9, 16, 25, 36]

(from..6).pmap { |i| i * i }
