# The first clause whose class matches is the one that runs, and e is the exception.
#
# elements = [0, 1, 2, 3, 4, 5]
# gives: [:zero, :type, :none, 4, :range, :other]

elements.pmap do |x|
  begin
    case x
    when 0 then 1 / x
    when 1 then 1 + nil
    when 2 then nil.foo
    when 4 then (0.0 / 0).to_i
    when 5 then raise ArgumentError, "five"
    else x + 1
    end
  rescue ZeroDivisionError, KeyError
    :zero
  rescue TypeError
    :type
  rescue NoMethodError => e
    e.is_a?(NameError) ? :none : :never
  rescue RangeError => e
    :range
  rescue => e
    e.is_a?(ArgumentError) && !e.instance_of?(StandardError) ? :other : :wrong
  end
end
