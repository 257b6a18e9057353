# is_a?, respond_to?, nil? and class comparisons are decided by what an element is.
#
# elements = [Cat(), Dog(), 1, 2.0, nil]
# gives: [11, 10001, 1000, 1000, 100]

module Pet
end

class Cat
  include Pet
  def purr = 1
end

class Dog
  include Pet
end

elements.pmap do |e|
  sum = e.is_a?(Pet) ? 1 : 0
  sum += 10 if e.respond_to?(:purr)
  sum += 100 if e.nil?
  sum += 1000 if Numeric === e
  sum += 10000 if e.instance_of?(Dog)
  sum
end
