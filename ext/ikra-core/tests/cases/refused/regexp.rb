# Regular expressions are left to Ruby.
#
# elements = [:a]
# refused: a regular expression

elements.pmap { |x| x =~ /a/ }
