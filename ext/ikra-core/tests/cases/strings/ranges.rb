# A Range whose ends may be Floats cuts a String as their Integers do; no end is too far, and a missing one is none.
#
# text = "añb"
# elements = [[0, 2], [1.5, -1], [-2.9, 9.5], [3, -5], [-5, 2.0], [1, 9223372036854775807]]
# gives: [["añb", "añ", 3, "añb", "añ"], ["ñb", "ñ", 3, "ñb", "añ"], ["ñb", "ñb", 2, "ñb", "añb"], ["", "", 0, "", ""], [nil, nil, nil, nil, "añ"], ["ñb", "ñb", 3, "ñb", "añb"]]
# checks: 32
#
# text = "abc"
# elements = [[1, 2], [0, 1e30]]
# raises: RangeError at line 15, index 1, tick 0: float 1e+30 out of range of integer

elements.pmap do |ends|
  from, to = ends
  range = from..to
  [text[range], text[from...to], text.byteslice(range)&.bytesize, text[from..], text[...to]]
end
