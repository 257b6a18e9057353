# Strings in objects, arrays and results: those that were there, parts of them, and literals.
#
# a = Person(name: "Ada Lovelace", tags: ["math", "poet"])
# elements = [a, Person(name: "Bob", tags: []), Person(name: nil, tags: ["x"])]
# how = 0
# gives: ["Ada", "Bob", nil]
# after: a.name => "Ada Lovelace"
# checks: 13
#
# a = Person(name: "Ada Lovelace", tags: ["math", "poet"])
# elements = [a, Person(name: "Bob", tags: [])]
# how = 1
# gives: ["Poet", "nobody"]
# after: a.name => "Poet"
#
# a = Person(name: "Ada Lovelace", tags: ["math", "poet"])
# elements = [a, Person(name: "Bob", tags: []), 5]
# how = 2
# raises: NoMethodError at line 38, index 2, tick 0: undefined method `first' for 5:Integer

class Person
  attr_accessor :name

  def first = @name && @name[0, @name.index(" ") || @name.size]

  def tagged?(tag)
    @tags.each { |t| return true if t == tag }
    false
  end
end

elements.pmap do |p|
  case how
  when 0 then p.first
  when 1
    p.name = p.tagged?("poet") ? "Poet" : p.name
    p.name.start_with?("Po") ? p.name : "nobody"
  else p.first
  end
end
