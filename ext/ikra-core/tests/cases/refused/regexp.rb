# Regular expressions for which there is no table are left to Ruby.
#
# elements = [:a]
# refused: look-ahead in the regular expression

elements.pmap { |x| x =~ /a(?=b)/ }
