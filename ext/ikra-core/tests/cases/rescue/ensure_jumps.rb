# An ensure that jumps itself decides; what was on its way is forgotten. Values given on the way out are kept.
#
# elements = [0, 1, 2, 3, 4, 5]
# gives: [10, 1010110, -9790, 1030310, 100403, 1050510]

def overrides(x)
  begin
    return x if x < 2
    raise "lost" if x < 4
    10
  ensure
    return 100 + x if x.odd?
  end
end

def keeps(x)
  y = x
  begin
    return y
  ensure
    y = 50
  end
end

elements.pmap do |x|
  a = begin
    overrides(x)
  rescue
    -1
  end
  r = 3.times do |i|
    begin
      break i * 10 if i == 1
    ensure
      next if x == 4
    end
  end
  a * 10_000 + keeps(x) * 100 + r
end
