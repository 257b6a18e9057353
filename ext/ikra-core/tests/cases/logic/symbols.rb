# Symbols are compared, captured and returned.
#
# weather = :rainy
# elements = [:sunny, :rainy, :snowy]
# gives: [:sunny, :same, :snowy]

elements.pmap { |w| w == weather ? :same : w }
