# frozen_string_literal: true

module Fuzz
  # Arrays that programs make, extend and read: as tables, and the statements that need more than a template.
  #
  # `list` is an Array of Integers, `fresh` one with no other reference yet, `mixed` an Array of anything. Keys of
  # sort_by differ, because Ruby's order of equal keys is not defined. `==` does not search for Floats, because NaN has
  # no identity here.
  module Lists
    EXPRESSIONS = <<~'TABLE'
      list 5 {fresh}
      list 1 ({bool} ? {list} : {list})
      fresh 3 [{int}, {int}]
      fresh 1 [{int}]
      fresh 2 [{int}, {int}, {int}]
      fresh 1 Array.new({small}, {int})
      fresh 2 Array.new({small}) { |<i:small>| {*int} }
      fresh 4 {list}.map { |<x:int>| {*int} }
      fresh 3 {list}.select { |<x:int>| {*bool} }
      fresh 1 {list}.reject { |<x:int>| {*bool} }
      fresh 1 {list}.filter_map { |<x:int>| {*bool} ? {*int} : nil }
      fresh 1 {list}.flat_map { |<x:int>| [{*int}, <x>] }
      fresh 1 {list}.flat_map { |<x:int>| {*list} }
      fresh 2 {list}.sort
      fresh 1 {list}.sort { |<a:int>, <b:int>| <b> <=> <a> }
      fresh 1 {list}.sort_by { |<x:int>| -<x> }
      fresh 1 {list}.sort_by { |<x:int>| <x> ^ 5 }
      fresh 1 {list}.reverse
      fresh 1 {list}.rotate({small})
      fresh 1 {list}.rotate(-{tiny})
      fresh 1 {list}.uniq
      fresh 1 {list}.uniq { |<x:int>| <x> & 3 }
      fresh 1 {list}.take({small})
      fresh 1 {list}.drop({small})
      fresh 1 {list}.first({small})
      fresh 1 {list}.last({tiny})
      fresh 1 {list}.take_while { |<x:int>| {*bool} }
      fresh 1 {list}.drop_while { |<x:int>| {*bool} }
      fresh 1 ({list} + {list})
      fresh 1 ({list} - {list})
      fresh 1 ({list} & {list})
      fresh 1 ({list} | {list})
      fresh 1 ({list} * {tiny})
      fresh 1 ({list}[{tiny}..] || [])
      fresh 1 ({list}[{tiny}..-2] || [])
      fresh 1 ({list}[{int}..{int}] || [])
      fresh 1 ({list}[{int}, {small}] || [])
      fresh 1 {list}.each_slice({tiny} + 1).map { |<xs:list>| {*int} }
      fresh 1 {list}.each_cons(2).map { |<a:int>, <b:int>| {*int} }
      fresh 1 {list}.each_cons({tiny} + 1).map { |<xs:list>| {*int} }
      fresh 1 {list}.each_slice(2).map(&:sum)
      fresh 1 {list}.each_with_index.map { |<x:int>, <i:small>| {*int} }
      fresh 1 {list}.map.with_index { |<x:int>, <i:small>| {*int} }
      fresh 1 {list}.map.with_index(1) { |<x:int>, <i:small>| {*int} }
      fresh 1 {list}.select.with_index { |<x:int>, <i:small>| {*bool} }
      fresh 1 {list}.reject.with_index { |<x:int>, <i:small>| {*bool} }
      fresh 1 {list}.zip({list}).map { |<a:int>, <b:any>| {*int} }
      fresh 1 {list}.partition { |<x:int>| {*bool} }.first
      fresh 1 {list}.partition { |<x:int>| {*bool} }[1]
      fresh 1 {list}.map(&:succ)
      fresh 1 {list}.map { _1 * 2 }
      fresh 1 {list}.select(&:even?)
      fresh 1 {list}.inject([]) { |memo, <x:int>| memo + [{*int}] }
      fresh 1 ({tiny}..{small}).map { |<i:small>| {*int} }
      fresh 1 ({tiny}...{small}).to_a
      fresh 1 ({tiny}..{small}).select { |<i:small>| {*bool} }
      fresh 1 {small}.times.map { |<i:small>| {*int} }
      fresh 1 [{list}, {list}].flatten
      fresh 1 [{int}, nil, {int}].compact
      fresh 1 {mixed}.map { |<x:any>| {*int} }
      fresh 1 {mixed}.each_with_index.map { |<x:any>, <i:small>| {*int} }
      mixed 3 [{any}, {any}]
      mixed 1 [{int}, {float}, {any}]
      mixed 1 {mixed}.map { |<x:any>| {*any} }
      mixed 1 {list}.map { |<x:int>| {*any} }
      mixed 1 {mixed}.select { |<x:any>| {*bool} }
      mixed 1 {mixed}.compact
      mixed 1 {mixed}.reverse
      mixed 1 {mixed}.reject(&:nil?)
      mixed 1 ({mixed} + {mixed})
      mixed 1 {list}.zip({list}).flatten
      mixed 1 Array.new({tiny})
      mixed 1 Array.new({tiny}, {any})
      mixed 1 {mixed}.first({tiny})
      mixed 1 {mixed}.each_slice(2).map { |<xs:mixed>| {*any} }
      int 1 {list}.sum
      int 1 {list}.sum { |<x:int>| {*int} }
      int 1 {list}.size
      int 1 {list}.count { |<x:int>| {*bool} }
      int 1 {list}.count({int})
      int 1 {mixed}.count { |<x:any>| {*bool} }
      int 1 {mixed}.size
      int 1 ({list}.inject { |<a:int>, <b:int>| {*int} } || {int})
      int 1 {list}.inject({int}) { |<a:int>, <b:int>| {*int} }
      int 1 {list}.reduce({int}, :+)
      int 1 ({list}.reduce(:^) || 0)
      int 1 {mixed}.inject({int}) { |<a:int>, <b:any>| {*int} }
      int 1 ({list}.min || {int})
      int 1 ({list}.max || {int})
      int 1 ({list}.min_by { |<x:int>| {*int} } || {int})
      int 1 ({list}.max_by { |<x:int>| {*int} } || {int})
      int 1 ({list}.find { |<x:int>| {*bool} } || {int})
      int 1 ({list}.index({int}) || {int})
      int 1 ({list}.index { |<x:int>| {*bool} } || {int})
      int 1 ({list}.rindex { |<x:int>| {*bool} } || {int})
      int 1 ({list}[{int}] || {int})
      int 1 ({list}.first || {int})
      int 1 ({list}.minmax.first || {int})
      int 1 {list}.each_slice(2).sum { |<xs:list>| {*int} }
      int 1 {list}.each_cons(2).count { |<a:int>, <b:int>| {*bool} }
      int 1 {list}.each_with_index.sum { |<x:int>, <i:small>| {*int} }
      int 1 ({tiny}..{small}).sum { |<i:small>| {*int} }
      int 1 ({tiny}..{small}).inject({int}) { |<a:int>, <i:small>| {*int} }
      int 1 ({tiny}...{small}).count { |<i:small>| {*bool} }
      int 1 (({tiny}..{small}).find { |<i:small>| {*bool} } || {int})
      int 1 (({tiny}..{small}).max_by { |<i:small>| {*int} } || {int})
      int 1 {small}.times.sum { |<i:small>| {*int} }
      int 1 {int}.then { |<x:int>| {*int} }
      small 1 {list}.size
      small 1 {list}.count(&:odd?)
      float 1 {list}.inject({float}) { |<a:float>, <b:int>| {*float} }
      float 1 ({list}.map { |<x:int>| {*float} }.first || {float})
      bool 1 {list}.any? { |<x:int>| {*bool} }
      bool 1 {list}.all? { |<x:int>| {*bool} }
      bool 1 {list}.none? { |<x:int>| {*bool} }
      bool 1 {list}.one?(&:even?)
      bool 1 {mixed}.any?
      bool 1 {mixed}.all?
      bool 1 {mixed}.any? { |<x:any>| {*bool} }
      bool 1 {mixed}.all?(Integer)
      bool 1 {list}.include?({int})
      bool 1 ({list} == {list})
      bool 1 ({list} != {list})
      bool 1 {list}.empty?
      bool 1 ({tiny}..{small}).any? { |<i:small>| {*bool} }
      bool 1 (({list} <=> {list}) == {tiny})
      any 1 {list}.min
      any 1 {list}.max
      any 1 {list}[{int}]
      any 1 {list}.inject(:+)
      any 1 {list}.find { |<x:int>| {*bool} }
      any 1 {mixed}.find { |<x:any>| {*bool} }
      any 1 {mixed}.first
      any 1 {mixed}.last
      any 1 {mixed}[{int}]
      any 1 {mixed}.inject { |<a:any>, <b:any>| {*any} }
    TABLE

    private

    # An array in a local variable that is the only reference to it.
    def declare_list(scope)
      name = fresh("w")
      type = chance(0.8) ? :list : :mixed
      value = type == :list ? expression(scope, :fresh, 3) : expression(scope, :mixed, 2)
      return declare(scope) unless fresh_text?(value.to_s)

      scope.vars << Var.new(name, type, scope.loops)
      statement("#{name} = {}", value)
    end

    # Whether a text is a new array: `<<` is refused for arrays with other names.
    def fresh_text?(text)
      !text.match?(/\A\(?@?\w+(\.\w+)?\)?\z/)
    end

    # Arrays in locals that this piece of code made.
    def held(scope)
      scope.vars.select { |var| %i[list mixed].include?(var.type) && var.name.start_with?("w") && !var.assignable.nil? }
    end

    def grow(scope)
      var = among(held(scope)) or return declare_list(scope)
      name = var.name
      type = var.type == :list ? :int : :any
      case between(0, 9)
      when 0, 1, 2 then statement("#{name} << {}", expression(scope, type, 2))
      when 3 then statement("#{name}.push({}, {})", expression(scope, type, 2), expression(scope, type, 2))
      when 4
        local = fresh("v")
        scope.vars << Var.new(local, :any, true)
        statement("#{local} = #{name}.#{among(%w[pop shift])}")
      when 5 then scope.times > 10 ? statement("#{name}.clear if {}", expression(scope, :bool, 2)) : statement("#{name}.concat([{}, {}])", expression(scope, type, 2), expression(scope, type, 2))
      when 6 then statement("#{name} << {} << {} if {}", expression(scope, type, 1), expression(scope, type, 1), expression(scope, :bool, 2))
      when 7 then statement("#{name}[{} % #{name}.size] = {} unless #{name}.empty?", expression(scope, :int, 1), expression(scope, type, 2))
      when 8 then statement("#{name}.clear if {}", expression(scope, :bool, 1))
      else statement("#{name}.pop while #{name}.size > #{between(1, 4)}")
      end
    end

    # An iterator whose block has statements, and may end a round early.
    def with_block(scope)
      x = fresh("x")
      array = expression(scope, :list, 1)
      name = fresh("w")
      head, type, result, gives = among([
        ["map", :int, :int, :list], ["map", :int, :any, :mixed], ["select", :int, :bool, :list], ["reject", :int, :bool, :list],
        ["count", :int, :bool, :int], ["sum", :int, :int, :int], ["any?", :int, :bool, :bool], ["all?", :int, :bool, :bool],
        ["find", :int, :bool, :any], ["flat_map", :int, :list, :list], ["min_by", :int, :int, :any], ["partition", :int, :bool, nil]
      ])
      inside = block_scope(scope, 4, Var.new(x, type, false))
      inside.place = :pure unless scope.place == :method
      inside.loops = 0
      inside.level = 3
      inner = body(inside, between(1, 2))
      inner.parts << statement("next {} if {}", expression(inside, result, 1), expression(inside, :bool, 2)) if chance(0.4)
      inner.parts.concat(body(inside, 1).parts) if chance(0.3)
      inner.parts << statement("break {} if {}", expression(inside, :int, 1), expression(inside, :bool, 2)) if (cut = chance(0.15))
      inner.parts << statement("{}", expression(inside, result, 2))
      name = fresh("v") unless %i[list mixed].include?(gives) && !cut
      if gives && !(cut && %i[list mixed].include?(gives))
        scope.vars << Var.new(name, cut ? :any : gives, %i[list mixed].include?(gives) ? scope.loops : true)
      end
      statement("#{name} = {}.#{head} do |#{x}|\n  {}\nend", array, inner)
    end

    # Destructures nested lists, with splats with and without a name.
    def take_apart(scope)
      a, b, c, d = Array.new(4) { fresh("v") }
      list = ->(depth = 1) { expression(scope, :loose, depth) }
      int = -> { expression(scope, :int, 1) }
      any = ->(*names) { names.each { |name| scope.vars << Var.new(name, :any, true) } }
      case between(0, 6)
      when 0
        made = statement("#{a}, * = {}", list.call)
        any.call(a)
        made
      when 1
        made = statement("#{a}, (#{b}, *), #{c} = {}, {}, {}", int.call, list.call, int.call)
        scope.vars << Var.new(a, :int, true) << Var.new(c, :int, true)
        any.call(b)
        made
      when 2
        made = statement("*, #{a} = {}", list.call)
        any.call(a)
        made
      when 3
        made = statement("#{a}, (#{b}, (#{c}, #{d})) = {}, [{}, [{}, {}]]", int.call, int.call, int.call, expression(scope, :any, 1))
        [a, b, c].each { |name| scope.vars << Var.new(name, :int, true) }
        any.call(d)
        made
      when 4
        made = statement("*, #{b} = {}, {}, {}", int.call, int.call, expression(scope, :float, 1))
        scope.vars << Var.new(b, :float, true)
        made
      when 5
        made = statement("(#{a}, #{b}), #{c} = {}, {}", list.call, list.call)
        any.call(a, b)
        scope.vars << Var.new(c, :list, nil)
        made
      else
        made = statement("#{a}, #{b}, #{c} = {}", list.call)
        any.call(a, b, c)
        made
      end
    end
  end
end
