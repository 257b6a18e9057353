# A method that one class lacks is an error only where an element of that class gets there.
#
# elements = [Dog(age: 1), Cat(age: 2)]
# gives: [1, 0]
#
# elements = [Dog(age: 1), Cat(age: 9)]
# raises: NoMethodError at line 20, index 1, tick 0: undefined method `bark' for #<Cat>

class Animal
  attr_reader :age
end

class Dog < Animal
  def bark = 1
end

class Cat < Animal
end

elements.pmap { |animal| animal.age > 5 || animal.is_a?(Dog) ? animal.bark : 0 }
