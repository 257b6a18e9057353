# Captures of every kind, unused ones too.
#
# nothing = nil
# yes = true
# name = :up
# range = 2..4
# unused = "text"
# elements = [1, 3, 4]
# gives: [113, 1113, 1113]

elements.pmap { |x| (nothing.nil? ? 1 : 0) + (yes ? 10 : 0) + (name == :up ? 100 : 0) + (range.include?(x) ? 1000 : 0) + range.first }
