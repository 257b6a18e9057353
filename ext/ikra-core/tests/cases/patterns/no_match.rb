# No pattern matches.
#
# elements = [1, 2]
# raises: NoMatchingPatternError at line 7, index 1, tick 0: 2

elements.pmap do |x|
  case x
  in 1 then 2
  in 5..9 then 3
  end
end
