# retry runs the body again.
#
# elements = [0, 1, 5, 9]
# gives: [1, 1, 5, -1]

elements.pmap do |x|
  tries = 0
  begin
    tries += 1
    raise "again" if tries < x
    tries
  rescue
    retry if tries < 7
    -1
  end
end
