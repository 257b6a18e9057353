# frozen_string_literal: true

require_relative "tables"

module Fuzz
  # A lambda in a local: the types of its parameters, and of its result.
  Callable = Struct.new(:params, :result)

  # Blocks as values: methods that yield or take a block, lambdas, procs, method objects, calls by name.
  module Blocks
    include Tables

    # Blocks that methods may take: [types of its parameters, type of its result].
    SHAPES = [[%i[int], :int], [%i[int], :int], [%i[int int], :int], [%i[int], :bool], [%i[float], :float], [%i[int], :any], [%i[any], :int], [[], :int]].freeze

    private

    def make_yielding
      between(1, 2).times do
        types, result = among(SHAPES)
        method = Signature.new(name: fresh("y"), params: [[fresh("a"), :int, :required]] * between(0, 1), result: among(%i[int int any float]), block: [types, result])
        named = chance(0.4)
        scope = Scope.new(place: :method, result: method.result, given: [types, result, named ? "block" : nil])
        scope.vars.concat(method.params.map { |name, type, _| Var.new(name, type, true) })
        before = @cost
        inner = body(scope, between(0, 2))
        if chance(0.4)
          i = fresh("i")
          inside = scope.inner(times: 3)
          inside.vars << Var.new(i, :int, false)
          inner.parts << statement("#{between(0, 3)}.times { |#{i}| {} }", yielded(inside, 2))
        end
        inner.parts << statement("return {} unless block_given?", expression(scope, method.result, 1)) if (optional = chance(0.2))
        inner.parts << statement("{}", FITS.fetch(method.result).include?(result) && chance(0.6) ? yielded(scope, 2) : expression(scope, method.result, 2))
        method.cost = (@cost - before + 2) * 4
        @cost = before
        method.optional = optional && method.result == :int
        parameters = [*method.params.map(&:first), *("&block" if named)]
        @definitions << statement("def #{method.name}#{"(#{parameters.join(", ")})" if parameters.any?}\n  {}\nend", inner)
        @yielding << method
      end
    end

    # A call of the block that was passed to the method.
    def yielded(scope, depth)
      types, result, name = scope.given
      values = types.map { |type| expression(scope, type, depth - 1) }
      holes = (["{}"] * values.size).join(", ")
      how = name ? among(["block.call(#{holes})", "block.(#{holes})", "yield(#{holes})"]) : "yield(#{holes})"
      node(result, values.empty? && how.start_with?("yield") ? "yield" : how, *values)
    end

    # Calls with a block: [weight, builder].
    def with_blocks(scope, type)
      choices = []
      if scope.given && FITS.fetch(type, []).include?(scope.given[1]) && scope.times <= 20
        choices << [3, ->(depth) { yielded(scope, depth) }]
      end
      @yielding.each do |method|
        next unless FITS.fetch(type, []).include?(method.result) && scope.times * method.cost <= MAX_WORK

        choices << [2, ->(depth) { call_with_block(scope, type, method, depth) }]
      end
      choices + callables(scope, type) + by_name(scope, type)
    end

    def call_with_block(scope, type, method, depth)
      @cost += scope.times * method.cost
      types, result = method.block
      values = method.params.map { |_, kind, _| expression(scope, kind, depth - 1) }
      fits = scope.vars.select { |var| var.type.is_a?(Callable) && var.type.params == types && FITS.fetch(result).include?(var.type.result) }
      passed = "&#{among(fits).name}" if fits.any? && chance(0.5)
      passed ||= "&:#{among(%w[succ pred abs -@ itself])}" if types == %i[int] && result == :int && chance(0.25)
      passed ||= "&:#{among(%w[even? odd? zero?])}" if types == %i[int] && result == :bool && chance(0.25)
      if passed || (method.optional && chance(0.2))
        texts = [*["{}"] * values.size, *passed]
        return node(type, "#{method.name}#{"(#{texts.join(", ")})" if texts.any?}", *values)
      end

      inside = scope.inner(times: 4)
      names = types.map { |kind| fresh("y").tap { |name| inside.vars << Var.new(name, kind, false) } }
      names.pop if names.size > 1 && chance(0.2)
      value = expression(inside, result, depth - 1)
      arguments = values.empty? ? "" : "(#{(["{}"] * values.size).join(", ")})"
      node(type, "#{method.name}#{arguments} {#{" |#{names.join(", ")}|" if names.any?} {} }", *values, value)
    end

    # Lambdas in locals, called and passed on.
    def callables(scope, type)
      scope.vars.select { |var| var.type.is_a?(Callable) }.flat_map do |var|
        found = []
        if FITS.fetch(type, []).include?(var.type.result)
          how = among(%w[.call .() []]).then { |text| text == ".call" ? ".call(" : text.chop }
          found << [2, "#{var.name}#{how}#{(["{}"] * var.type.params.size).join(", ")}#{how == "[" ? "]" : ")"}", var.type.params]
        end
        if type == :fresh && var.type == Callable.new(%i[int], :int)
          found << [2, "{}.map(&#{var.name})", %i[list]]
        end
        found << [2, "{}.#{among(%w[count any? all? none?])}(&#{var.name})".sub("count", type == :int ? "count" : "any?"), %i[list]] if type == :bool && var.type == Callable.new(%i[int], :bool)
        found
      end
    end

    # Functions of one Integer: by name, and as objects.
    def by_name(scope, type)
      plain = @functions.select { |method| method.params.map { |_, kind, how| [kind, how] } == [%i[int required]] && scope.times * method.cost * 4 <= MAX_WORK }
      plain.flat_map do |method|
        fits = FITS.fetch(type, []).include?(method.result)
        found = []
        found << [1, "send(:#{method.name}, {})", %i[int]] << [1, "method(:#{method.name}).call({})", %i[int]] if fits
        found << [1, "{}.map(&method(:#{method.name}))", %i[list]] if type == :fresh && method.result == :int
        found
      end + (type == :int ? [[0.5, "{}.send(:#{among(%w[+ - & | ^])}, {})", %i[int int]], [0.3, "{}.public_send(:abs)", %i[int]]] : [])
    end

    def declare_lambda(scope)
      name = fresh("l")
      types, result = among(SHAPES)
      inside = scope.inner(times: 6)
      inside.place = :pure unless scope.place == :method
      inside.loops = 0
      inside.level = 2
      inside.result = result
      inside.vars.reject! { |var| var.type.is_a?(Callable) }
      names = types.map { |kind| fresh("y").tap { |local| inside.vars << Var.new(local, kind, false) } }
      long = chance(0.3) && scope.place != :method
      inner = long ? body(inside, between(1, 2)) : Node.body([])
      inner.parts << statement("#{among(%w[next return])} {} if {}", expression(inside, result, 1), expression(inside, :bool, 1)) if long && chance(0.5)
      inner.parts << statement("{}", expression(inside, result, 2))
      scope.vars << Var.new(name, Callable.new(types, result), false)
      list = names.join(", ")
      return statement("#{name} = lambda do#{" |#{list}|" if names.any?}\n  {}\nend", inner) if long

      statement("#{name} = #{names.any? ? "->(#{list})" : "->"} { {} }", inner)
    end
  end
end
