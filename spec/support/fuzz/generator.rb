# frozen_string_literal: true

require_relative "tables"
require_relative "tree"
require_relative "lists"
require_relative "blocks"
require_relative "objects"
require_relative "patterns"
require_relative "strings"

module Fuzz
  # A method that a program has.
  Signature = Struct.new(:name, :params, :result, :writes, :cost, :block, :optional, keyword_init: true)

  # Classes that have the same methods: elements, their parts, or objects that all share.
  Role = Struct.new(:name, :classes, :fields, :methods, :owned, keyword_init: true)

  # The variables and methods that a piece of code can use.
  class Scope
    attr_accessor :vars, :role, :times, :place, :loops, :level, :result, :guarded, :given

    def initialize(**values)
      @vars = []
      @times = 1
      @loops = 0
      @level = 0
      values.each { |name, value| instance_variable_set("@#{name}", value) }
    end

    # A scope whose locals are not visible outside, and whose code may run more often.
    def inner(times: 1, loops: 0)
      inside = dup
      inside.vars = vars.dup
      inside.times = self.times * times
      inside.loops = self.loops + loops
      inside.level = level + 1
      inside
    end
  end

  Var = Struct.new(:name, :type, :assignable)

  # Generates programs: the same seed gives the same program. Every loop is bounded. The order of elements makes no
  # difference: they write only themselves, what they own, and captured locals as accumulators or last writers.
  class Generator
    include Tables
    include Lists
    include Blocks
    include Objects
    include Patterns

    TABLES = [Tables, Lists, Strings].freeze
    BY_TYPE = TABLES.flat_map { |table| Tables.parse(table::EXPRESSIONS) }.group_by(&:shift).then { |types| types.merge(loose: types[:list]) }.freeze

    def initialize(seed)
      @random = Random.new(seed)
      @operations = Random.new(seed + 1)
      @names = Hash.new(0)
      @hurt = [0.0, 0.03, 0.12, 0.3].sample(random: @random)
      @chaos = chance(0.25) ? 0.02 : 0.0
      @cost = 0
      @functions = []
      @yielding = []
      @makers = {}
      @strings = chance(0.3)
      @constants = []
      @class_methods = []
      @roles = {}
      @setup = []
      @watched = []
      @definitions = []
    end

    # The program as a case.
    def program
      objects = chance(0.6)
      @definitions << statement("class Mishap < StandardError\nend") << statement("class Blunder < Mishap\nend")
      make_constants
      make_functions
      make_made if chance(0.5)
      make_yielding if chance(0.5)
      make_leaves if chance(0.6)
      make_actors if objects
      section = make_section(objects)
      Program.new(Node.body([*@definitions, section]), @setup, @watched)
    end

    private

    def chance(share) = @random.rand < share
    def among(list) = list.sample(random: @random)
    def between(least, most) = @random.rand(least..most)

    def weighted(choices)
      at = @random.rand * choices.sum { |weight, *| weight }
      choices.find { |weight, *| (at -= weight).negative? } || choices.last
    end

    def fresh(prefix) = "#{prefix}#{@names[prefix] += 1}"
    def node(kind, template, *parts) = Node.of(kind, template, *parts)
    def statement(template, *parts) = Node.of(:statement, template, *parts)

    # ---- values ----

    def literal(type)
      case type
      when :num then literal(chance(0.5) ? :int : :float)
      when :nonzero then among(%w[2 3 7 10 (-3)])
      when :str then among(Strings::LITERALS)
      when :any
        kind = chance(@hurt) ? among(%i[int float]) : :any
        kind == :any ? among(LITERALS[:any]) : literal(kind)
      else
        list = chance(@hurt) && HURTING[type] ? HURTING[type] : LITERALS.fetch(type)
        among(list)
      end
    end

    def array_literal(type, least = 0)
      values = Array.new(between(least, 4)) { literal(type == :ints ? :int : :any) }
      "[#{values.join(", ")}]"
    end

    # ---- expressions ----

    def expression(scope, type, depth = 3)
      type = among(TYPES) if TYPES.include?(type) && chance(@chaos)
      return atom(scope, type) if type != :wild && (depth <= 0 || chance(0.2))

      choices = BY_TYPE.fetch(type)
      choices = choices.reject { |_, _, holes| holes.include?(:str) } unless @strings || type == :str
      choices = choices.reject { |_, template, _| template.match?(/<\w+:/) } if scope.times > 50
      choices += dynamic(scope, type)
      _, template, holes = weighted(choices)
      return template.call(depth) if template.is_a?(Proc)

      filled(scope, type, template, holes, depth)
    end

    # `<x:int>` in a template is a new local, which holes that begin with `*` can use.
    def filled(scope, type, template, holes, depth)
      names = {}
      inside = template.match?(/<\w+:/) ? scope.inner(times: 4) : scope
      template = template.gsub(/<(\w+)(?::(\w+))?>/) do
        names[$1] ||= fresh("y").tap { |name| inside.vars << Var.new(name, $2.to_sym, false) }
      end
      lends = template.match?(/\A\(?\{\}\.(?!each_|(map|select|reject)\.)/) && holes.count { |hole| hole.to_s.end_with?("list") } == 1
      parts = holes.map do |hole|
        within, kind = hole.start_with?("*") ? [inside, hole[1..].to_sym] : [scope, hole]
        kind = :loose if kind == :list && !lends
        expression(within, kind, hole == :wild ? 0 : depth - 1)
      end
      node(type, template, *parts)
    end

    def atom(scope, type)
      return Node.new(type, [array_literal(:ints)]) if type == :fresh

      vars = scope.vars.select { |var| FITS.fetch(type, []).include?(var.type) }
      vars -= held(scope) if %i[loose mixed any].include?(type)
      return Node.new(type, [among(vars).name]) if vars.any? && chance(0.75)

      readable = fields(scope, type)
      return Node.new(type, [among(readable)]) if readable.any? && chance(0.6)

      constants = @constants.select { |_, known| FITS.fetch(type, []).include?(known) }
      return Node.new(type, [among(constants).first]) if constants.any? && chance(0.15)

      return Node.new(type, [array_literal(type == :mixed ? :bag : :ints)]) if %i[list loose mixed].include?(type)

      Node.new(type, [literal(type)])
    end

    # Fields that can be read here: those of self by ivar, those of an element and of shared objects by reader.
    def fields(scope, type)
      names = []
      add = lambda do |receiver, role|
        role.fields.each { |name, known| names << "#{receiver}#{name}" if FITS.fetch(type, []).include?(known) }
      end
      add.call("@", scope.role) if scope.role
      add.call("self.", scope.role) if scope.role && chance(0.2)
      scope.vars.each { |var| add.call("#{var.name}.", @roles[var.type]) if @roles.key?(var.type) }
      names
    end

    # Expressions that depend on the variables in scope.
    def dynamic(scope, type)
      choices = calls(scope, type) + with_blocks(scope, type) + from_made(scope, type)
      array = arrays(scope, :ints, :list)
      mixed = arrays(scope, :bag, :mixed)
      if type == :int && array.any?
        choices << [3, "(#{among(array)}[{}] || {})", %i[int int]] << [1, "#{among(array)}.size", []]
        choices << [1, "(#{among(array)}.first || {})", %i[int]] << [1, "(#{among(array)}.last || {})", %i[int]]
        choices << [1, "(#{among(array)}.at({}) || {})", %i[small int]]
      end
      if type == :any && (mixed + array).any?
        from = among(mixed + array)
        choices << [3, "#{from}[{}]", %i[int]] << [1, "#{from}[{}]", %i[tiny]] << [1, "#{from}.first", []] << [1, "#{from}.last", []]
      end
      choices << [1, "#{among(mixed + array)}.empty?", []] if type == :bool && (mixed + array).any?
      choices += narrowed(scope, type)
      choices += identities(scope) if type == :bool
      if scope.place == :block && type == :int
        choices << [1, "Ikra.index", []]
        choices << [1, "Ikra.tick", []]
      end
      choices
    end

    # A local of any type, used where its type is known.
    def narrowed(scope, type)
      local = among(scope.vars.select { |var| %i[any num].include?(var.type) }) or return []
      kinds = local.type == :num ? { "Integer" => :int, "Float" => :float } : { "Integer" => :int, "Float" => :float, "Symbol" => :sym, "Numeric" => :num }
      klass, known = among(kinds.to_a)
      return [] unless %i[int float num any bool sym].include?(type)

      build = lambda do |depth|
        inside = scope.inner
        inside.vars = inside.vars.map { |var| var.equal?(local) ? Var.new(var.name, known, false) : var }
        yes = expression(inside, type, depth - 1)
        no = expression(scope, type, depth - 1)
        if chance(0.5)
          node(type, "(#{local.name}.is_a?(#{klass}) ? {} : {})", yes, no)
        else
          node(type, "(case #{local.name} when #{klass} then {} else {} end)", yes, no)
        end
      end
      [[2, build]]
    end

    def identities(scope)
      objects = scope.vars.select { |var| @roles.key?(var.type) }.map(&:name)
      objects += @roles.select { |name, _| name == :leaf }.flat_map { scope.role&.fields&.key?("leaf") ? ["@leaf"] : [] }
      return [] if objects.empty?

      classes = @roles.values.flat_map(&:classes)
      [
        [2, "#{among(objects)}.is_a?(#{among(classes)})", []],
        [1, "#{among(objects)}.instance_of?(#{among(classes)})", []],
        [1, "#{among(objects)}.equal?(#{among(objects)})", []],
        [1, "(#{among(objects)} == #{among(objects)})", []],
        [1, "#{among(objects)}.nil?", []],
        [1, "#{among(objects)}.respond_to?(:#{among(@roles.values.flat_map(&:methods))&.name || "foo"})", []]
      ]
    end

    def arrays(scope, *kinds)
      names = scope.vars.select { |var| kinds.include?(var.type) }.map(&:name)
      scope.role&.fields&.each { |name, type| names << "@#{name}" if kinds.include?(type) }
      scope.vars.each { |var| @roles[var.type]&.fields&.each { |name, type| names << "#{var.name}.#{name}" if kinds.include?(type) } }
      names
    end

    # Calls that give a type here.
    def calls(scope, type)
      found = []
      @functions.each { |method| found << ["", method, false] }
      @class_methods.each { |method| found << ["", method, false] }
      scope.role&.methods&.each { |method| found << [chance(0.8) ? "" : "self.", method, false] }
      if scope.role&.fields&.key?("part")
        @roles[:part].methods.each { |method| found << ["@part", method, true] }
      end
      if scope.role&.fields&.key?("leaf")
        @roles[:leaf].methods.each { |method| found << ["@leaf", method, true] }
      end
      scope.vars.each do |var|
        role = @roles[var.type] or next
        role.methods.each { |method| found << [var.name, method, true] }
      end
      found = found.select { |_, method, _| (FITS.fetch(type, []).include?(method.result)) && scope.times * method.cost <= MAX_WORK }
      found = found.reject { |_, method, _| method.writes && scope.place == :pure }
      found.map do |receiver, method, dotted|
        [4.0 / Math.sqrt(found.size), lambda do |depth|
          @cost += scope.times * method.cost
          dot = dotted ? (method.result == :any && chance(0.4) ? "&." : ".") : ""
          call(scope, type, "#{receiver}#{dot}", method, depth)
        end]
      end
    end

    def call(scope, type, before, method, depth)
      arguments = method.params.filter_map do |name, kind, how|
        next if how != :required && how != :keyword && chance(0.4)

        value = expression(scope, kind, depth - 1)
        %i[keyword option].include?(how) ? [node(:text, "#{name}: {}", value)] : [value]
      end.flatten(1)
      template = arguments.empty? ? "" : "(#{(["{}"] * arguments.size).join(", ")})"
      node(type, "#{before}#{method.name}#{template}", *arguments)
    end

    # ---- statements ----

    def body(scope, count)
      statements = []
      count.times { statements.concat(Array(some_statement(scope))) }
      Node.body(statements)
    end

    def some_statement(scope)
      @cost += scope.times
      choices = [[6, :declare], [4, :reassign], [1, :destructure], [1, :modifier], [1, :effect]]
      choices << [3, :declare_list] << [1, :take_apart]
      choices << [1, :declare_lambda]
      choices << [2, :declare_made] if @makers.any?
      choices << [3, :store_made] if made_places(scope).any?
      choices << [2, :match] if scope.level < 3
      choices << [4, :grow] if held(scope).any?
      choices << [2, :with_block] if scope.level < 3 && scope.times <= 20
      choices << [4, :branch] << [1, :choose] << [2, :guard] if scope.level < 3
      choices << [3, :raise_something] if scope.guarded
      choices << [4, :repeat] if scope.level < 3 && scope.loops < 2 && scope.times <= 40
      choices << [2, :leave] if scope.loops.positive?
      choices << [1, :give_back] if scope.place == :method
      choices << [1, :skip] if scope.place == :block
      choices << [5, :write_field] if writable(scope).any?
      choices << [3, :write_element] if writable_arrays(scope).any?
      choices << [1, :swap] if scope.role&.fields&.key?("spare") || scope.role&.fields&.key?("more")
      choices << [4, :accumulate] if @accumulators&.any? && scope.place == :block
      choices << [2, :count_shared] if scope.vars.any? { |var| var.type == :counter } || scope.role&.fields&.key?("counter")
      send(weighted(choices)[1], scope)
    end

    def declare(scope)
      type = among(@strings ? %i[int any str str] : %i[int int float num any bool sym])
      name = fresh("v")
      value = expression(scope, type)
      scope.vars << Var.new(name, type, true)
      statement("#{name} = {}", value)
    end

    def assignable(scope)
      scope.vars.select { |var| var.assignable == true }
    end

    def reassign(scope)
      var = among(assignable(scope)) or return declare(scope)
      operator, type = chance(0.6) ? among(ASSIGNMENTS.fetch(var.type)) : nil
      statement("#{var.name} #{operator || "="} {}", expression(scope, type || var.type))
    end

    def destructure(scope)
      case between(0, 3)
      when 0
        q = fresh("q")
        r = fresh("r")
        made = statement("#{q}, #{r} = {}.divmod({})", expression(scope, :int, 2), expression(scope, :nonzero, 2))
        scope.vars << Var.new(q, :int, true) << Var.new(r, :int, true)
        made
      when 1
        same = assignable(scope).group_by(&:type).values.select { |vars| vars.size > 1 }
        return declare(scope) if same.empty?

        a, b = among(same).sample(2, random: @random)
        statement("#{a.name}, #{b.name} = #{b.name}, #{a.name}")
      else
        types = [among(TYPES), among(TYPES)]
        names = types.map { fresh("v") }
        made = statement("#{names.join(", ")} = {}, {}", *types.map { |type| expression(scope, type, 2) })
        names.zip(types) { |name, type| scope.vars << Var.new(name, type, true) }
        made
      end
    end

    # Locals made in a branch may be nil after it.
    def branch_body(scope, count = between(1, 2))
      inside = scope.inner
      made = body(inside, count)
      (inside.vars - scope.vars).each do |var|
        scope.vars << Var.new(var.name, :any, true) if TYPES.include?(var.type) && chance(0.3)
      end
      made
    end

    def condition(scope)
      chance(0.85) ? expression(scope, :bool) : expression(scope, :any, 2)
    end

    def branch(scope)
      case between(0, 4)
      when 0 then statement("if {}\n  {}\nend", condition(scope), branch_body(scope))
      when 1 then statement("unless {}\n  {}\nelse\n  {}\nend", condition(scope), branch_body(scope), branch_body(scope))
      when 2 then statement("if {}\n  {}\nelsif {}\n  {}\nelse\n  {}\nend", condition(scope), branch_body(scope), condition(scope), branch_body(scope), branch_body(scope))
      else statement("if {}\n  {}\nelse\n  {}\nend", condition(scope), branch_body(scope), branch_body(scope))
      end
    end

    def modifier(scope)
      test = condition(scope)
      var = among(assignable(scope)) or return declare(scope)
      statement("#{var.name} = {} #{among(%w[if unless])} {}", expression(scope, var.type), test)
    end

    def choose(scope)
      subject = expression(scope, among(%i[int num any sym]), 2)
      whens = Array.new(between(1, 3)) do
        test = among([
          -> { node(:text, "{}, {}", Node.new(:int, [literal(:int)]), Node.new(:int, [literal(:int)])) },
          -> { Node.new(:text, [among(%w[Integer Float Symbol NilClass Numeric nil true :a])]) },
          -> { node(:text, "{}..{}", Node.new(:int, [among(%w[0 1 -5])]), Node.new(:int, [among(%w[3 10 100])])) },
          -> { node(:text, "{}", expression(scope, :int, 1)) },
          -> { node(:text, "1.5...{}", Node.new(:float, [among(%w[3.0 9.5])])) }
        ]).call
        [test, branch_body(scope)]
      end
      template = "case {}\n#{"when {}\n  {}\n" * whens.size}#{"else\n  {}\n" if (other = chance(0.6))}end"
      statement(template, subject, *whens.flatten(1), *(other ? [branch_body(scope)] : []))
    end

    # An expression for its effect.
    def effect(scope)
      statement("{}", expression(scope, among(%i[int any num]), 2))
    end

    def repeat(scope)
      send(among(%i[iterate iterate iterate walk walk while_loop while_loop endless for_loop]), scope)
    end

    def block_scope(scope, times, *vars)
      inside = scope.inner(times: times, loops: 1)
      inside.vars.concat(vars)
      inside
    end

    def iterate(scope)
      i = fresh("i")
      count = between(0, 5)
      small = expression(scope, :small, 1)
      heads = [
        ["#{count}.times do |#{i}|", []], ["{}.times do |#{i}|", [small]], ["1.upto(#{count}) do |#{i}|", []],
        ["{}.downto(2) do |#{i}|", [small]], ["0.step({}, 2) do |#{i}|", [small]], ["5.step(#{count - 3}, -2) do |#{i}|", []],
        ["(0..#{count}).each do |#{i}|", []], ["(1...{}).each do |#{i}|", [small]], ["(0..{}).step(3) do |#{i}|", [small]],
        ["(0..#{count}).reverse_each do |#{i}|", []], ["0.0.step(1.0, 0.25) do |#{i}|", [], :float], ["{}.upto(3) do |#{i}|", [small]],
        ["(0...#{count}).each_with_index do |#{i}, #{i}b|", []]
      ]
      head, parts, type = among(heads)
      inside = block_scope(scope, 6, Var.new(i, type || :int, false))
      inner = body(inside, between(1, 3))
      if chance(0.15) && !type && !head.match?(/\(|step/)
        name = fresh("v")
        stop = statement("break {} if {}", expression(inside, :int, 1), expression(inside, :bool, 2))
        inner.parts << stop
        scope.vars << Var.new(name, :any, true)
        return statement("#{name} = #{head}\n  {}\nend", *parts, inner)
      end
      statement("#{head}\n  {}\nend", *parts, inner)
    end

    # Over the elements of an array.
    def walk(scope)
      kind = among(%i[ints bag])
      array = among(kind == :ints ? arrays(scope, :ints, :list) : arrays(scope, :bag, :mixed)) or return iterate(scope)
      x = fresh("x")
      type = kind == :ints ? :int : :any
      vars = [Var.new(x, type, chance(0.3)), Var.new("#{x}i", :small, false)]
      template = among(["#{array}.each do |#{x}|", "#{array}.each_with_index do |#{x}, #{x}i|", "#{array}.reverse_each do |#{x}|", "#{array}.each_index do |#{x}i|"])
      used = vars.select { |var| template.match?(/\b#{var.name}\b/) }
      inside = block_scope(scope, 4, *used)
      inner = body(inside, between(1, 2))
      own = writable_arrays(scope).include?(array)
      inner.parts << statement("#{array}[#{x}i] = {}", expression(inside, type, 2)) if own && template.include?("#{x}i")
      statement("#{template}\n  {}\nend", inner)
    end

    def while_loop(scope)
      i = fresh("n")
      inside = scope.inner(times: 6, loops: 1)
      inside.vars << Var.new(i, :int, false)
      bound = between(1, 6)
      test = expression(inside, :bool, 2)
      inner = branch_body(inside, between(1, 3))
      head = chance(0.5) ? "while #{i} < #{bound} && {}" : "until #{i} >= #{bound} || {}"
      return statement("#{i} = 0\nbegin\n  #{i} += 1\n  {}\nend #{head}", inner, test) if chance(0.2)

      statement("#{i} = 0\n#{head}\n  #{i} += 1\n  {}\nend", test, inner)
    end

    def endless(scope)
      i = fresh("n")
      v = fresh("v")
      inside = scope.inner(times: 6, loops: 1)
      inside.vars << Var.new(i, :int, false)
      inner = body(inside, between(1, 2))
      value = expression(scope, :int, 1)
      scope.vars << Var.new(v, :int, true)
      statement("#{i} = 0\n#{v} = loop do\n  #{i} += 1\n  break {} if #{i} > #{between(0, 5)}\n  {}\nend", value, inner)
    end

    def for_loop(scope)
      i = fresh("i")
      array = among(arrays(scope, :ints, :list))
      over = array && chance(0.5) ? array : "#{between(0, 2)}#{among(%w[.. ...])}#{between(0, 6)}"
      inside = scope.inner(times: 6, loops: 1)
      inside.vars << Var.new(i, :int, false)
      inner = branch_body(inside, between(1, 2))
      scope.vars << Var.new(i, :any, false)
      statement("for #{i} in #{over}\n  {}\nend", inner)
    end

    # ---- exceptions ----

    # Neither RangeError nor its superclasses: where Ruby has an Integer beyond 64 bits, a kernel must not go on.
    RESCUED = %w[Mishap Blunder ZeroDivisionError TypeError NoMethodError ArgumentError IndexError FloatDomainError RangeError StandardError].freeze
    RAISED = %w[Mishap Blunder Blunder ArgumentError IndexError].freeze

    def guard(scope)
      tries = fresh("n") if scope.times <= 40 && chance(0.2)
      inside = scope.inner(times: tries ? 3 : 1)
      inside.guarded = true
      parts = [raising_body(inside)]
      text = +"begin\n  {}\n"
      text = "#{tries} = 0\nbegin\n  #{tries} += 1\n  {}\n" if tries
      between(1, 2).times do |number|
          clause, part = clause(scope, number.zero? ? tries : nil)
          text << clause
          parts << part
      end
      if chance(0.3)
        text << "else\n  {}\n"
        parts << body(scope.inner, between(1, 2))
      end
      if chance(0.4)
        text << "ensure\n  {}\n"
        parts << ensure_body(scope)
      end
      statement("#{text}end", *parts)
    end

    def raising_body(scope)
      inner = body(scope, between(1, 2))
      inner.parts << leave_64_bits(scope) if chance(0.3)
      inner.parts << raise_something(scope)
      inner.parts.concat(body(scope, 1).parts)
      inner
    end

    def clause(scope, tries)
      inside = scope.inner
      inside.loops = scope.loops
      name = fresh("e") if chance(0.4)
      inner = body(inside, between(0, 2))
      inner.parts << statement("retry if #{tries} < 3") if tries
      inner.parts << statement("raise#{" #{name}" if name && chance(0.5)} if {}", expression(inside, :bool, 2)) if scope.guarded && chance(0.3)
      inner.parts << statement("raise if #{name}.is_a?(#{among(RESCUED)})") if scope.guarded && name && chance(0.3)
      classes = Array.new(between(1, 2)) { among(RESCUED) }.join(", ")
      ["rescue #{classes}#{" => #{name}" if name}\n  {}\n", inner]
    end

    # Without jumps, which would discard a pending exception or jump.
    def ensure_body(scope)
      inside = Scope.new(vars: scope.vars.dup, role: scope.role, times: scope.times, place: :pure, loops: 0, level: 3)
      var = among(assignable(inside)) or return body(inside, 1)
      Node.body([statement("#{var.name} = {}", expression(inside, var.type, 2))])
    end

    # Ruby raises nothing here, so no clause may run.
    def leave_64_bits(scope)
      large = among(["* 3_037_000_500", "+ 4_611_686_018_427_387_904", "- 9_223_372_036_854_775_807", "** 7"])
      statement("raise #{among(RAISED)} if ({}) #{large} > {}", expression(scope, :int, 2), expression(scope, :int, 1))
    end

    def raise_something(scope)
      what = among(RAISED)
      message = among(["", ", \"#{%w[a b c].sample(random: @random)}\"", ", :a", nil])
      return statement("raise #{what}#{message} if {}", expression(scope, :bool, 2)) if message

      statement("raise #{what}, \"was \#{{}}\" if {}", expression(scope, among(%i[int small sym]), 1), expression(scope, :bool, 2))
    end

    # Leaves a loop or a round of it.
    def leave(scope)
      statement("#{among(%w[next break])} #{among(%w[if unless])} {}", expression(scope, :bool, 2))
    end

    def give_back(scope)
      statement("return {} if {}", expression(scope, scope.result, 2), expression(scope, :bool, 2))
    end

    def skip(scope)
      return leave(scope) if scope.loops.positive?
      return statement("next {} if {}", expression(scope, scope.result, 2), expression(scope, :bool, 2)) if scope.result

      statement("next if {}", expression(scope, :bool, 2))
    end

    # ---- what a program writes ----

    # Places that an element may write: [text, type].
    def writable(scope)
      return [] if scope.place == :pure

      places = []
      if scope.role&.owned
        scope.role.fields.each { |name, type| places << ["@#{name}", type] << ["self.#{name}", type] if TYPES.include?(type) }
      end
      scope.vars.each do |var|
        role = @roles[var.type]
        role.fields.each { |name, type| places << ["#{var.name}.#{name}", type] if TYPES.include?(type) } if role&.owned
      end
      places
    end

    def write_field(scope)
      place, type = among(writable(scope))
      operator, kind = chance(0.5) ? among(ASSIGNMENTS.fetch(type)) : nil
      statement("#{place} #{operator || "="} {}", expression(scope, kind || type))
    end

    def writable_arrays(scope)
      return [] if scope.place == :pure

      owned = scope.role&.owned ? scope.role.fields.select { |_, type| %i[ints bag].include?(type) }.map { |name, _| "@#{name}" } : []
      scope.vars.each do |var|
        role = @roles[var.type]
        owned += role.fields.select { |_, type| %i[ints bag].include?(type) }.map { |name, _| "#{var.name}.#{name}" } if role&.owned
      end
      owned
    end

    def write_element(scope)
      array = among(writable_arrays(scope))
      type = arrays(scope, :ints).include?(array) ? :int : :any
      at = expression(scope, :int, 2)
      place = among(["#{array}[{} % #{array}.size]", "#{array}[({} % #{array}.size) - #{array}.size]"])
      operator = type == :int && chance(0.4) ? "+=" : "="
      statement("#{place} #{operator} {} unless #{array}.empty?", at, expression(scope, type, 2))
    end

    def swap(scope)
      a, b = scope.role.fields.key?("spare") ? %w[@part @spare] : %w[@items @more]
      statement("#{a}, #{b} = #{b}, #{a}")
    end

    # Without Floats where there is an Integer: otherwise the order of additions would show.
    def accumulate(scope)
      chaos = @chaos
      @chaos = 0.0
      contribution(scope)
    ensure
      @chaos = chaos
    end

    def contribution(scope)
      name, form = among(@accumulators.to_a)
      case form
      when :last then statement("#{name} = {}", expression(scope, :any, 2))
      when :most, :least
        sign = form == :most ? ">" : "<"
        return statement("#{name} = [#{name}, {}].#{form == :most ? "max" : "min"}", expression(scope, :int, 2)) if chance(0.3)

        local = fresh("m")
        given = statement("#{local} = {}", expression(scope, :int, 2))
        [given, statement("#{name} = #{local} if #{local} #{sign} #{name}")]
      when :float then statement("#{name} += {} * 0.5", expression(scope, :small, 2))
      else
        kind = form == "+" || form == "-" ? :int : form == "*" ? :tiny : :int
        statement("#{name} #{form}= {}", expression(scope, kind, 2))
      end
    end

    def count_shared(scope)
      names = scope.vars.select { |var| var.type == :counter }.map(&:name)
      names << "@counter" if scope.role&.fields&.key?("counter")
      statement("#{among(names)}.n += {}", expression(scope, chance(0.8) ? :small : :int, 2))
    end

    # ---- definitions ----

    def make_constants
      between(0, 2).times do
        type = among(%i[int float sym])
        name = fresh("LIMIT")
        @constants << [name, type]
        @definitions << statement("#{name} = {}", Node.new(type, [literal(type)]))
      end
    end

    def parameters(count)
      hows = %i[required required required default keyword option]
      params = Array.new(count) { [fresh("a"), among(%i[int int float num any small]), among(hows)] }
      params.sort_by.with_index { |(_, _, how), i| [hows.index(how), i] }
    end

    def parameter_list(params)
      return ["", []] if params.empty?

      seen = []
      parts = []
      texts = params.map do |name, type, how|
        known = Scope.new(vars: seen.dup, place: :pure)
        seen << Var.new(name, type, false)
        case how
        when :required then name
        when :keyword then "#{name}:"
        else
          parts << expression(known, type, 1)
          how == :default ? "#{name} = {}" : "#{name}: {}"
        end
      end
      ["(#{texts.join(", ")})", parts]
    end

    # The definition of a method; `role` is what self is.
    def define(prefix, signature, role: nil)
      list, defaults = parameter_list(signature.params)
      scope = Scope.new(role: role, place: :method, result: signature.result)
      scope.vars.concat(signature.params.map { |name, type, _| Var.new(name, type, type != :small) })
      before = @cost
      inner = body(scope, between(0, 3))
      inner.parts << statement("{}", yield(scope) || expression(scope, signature.result))
      cost = @cost - before + 1
      @cost = before
      signature.cost = [signature.cost || 0, cost].max
      return statement("def #{prefix}#{signature.name}#{list}\n  {}\nend", *defaults, inner) unless chance(0.1)

      clause, part = clause(scope, nil)
      part.parts << statement("{}", expression(scope.inner, signature.result, 2))
      statement("def #{prefix}#{signature.name}#{list}\n  {}\n#{clause}end", *defaults, inner, part)
    end

    def signature(prefix, writes: false, result: among(%i[int int float num any bool sym]))
      Signature.new(name: fresh(prefix), params: parameters(between(0, 2)), result: result, writes: writes)
    end

    def make_functions
      between(0, 2).times do
        method = signature("f")
        @definitions << define("", method) { nil }
        @functions << method
      end
      make_recursion if chance(0.2)
    end

    def make_recursion
      method = Signature.new(name: fresh("rec"), params: [["n", :small, :required], ["a", :int, :required]], result: :int, cost: 30)
      scope = Scope.new(vars: [Var.new("n", :small, false), Var.new("a", :int, false)], place: :method, result: :int)
      branch = chance(0.3) ? " + #{method.name}(n - 2, {})" : ""
      parts = Array.new(branch.empty? ? 3 : 4) { expression(scope, :int, 2) }
      @definitions << statement("def #{method.name}(n, a)\n  return {} if n <= 0\n\n  #{method.name}(n - 1, {})#{branch} + {}\nend", *parts)
      @functions << method
    end

    FIELDS = { "count" => :int, "level" => :int, "speed" => :float, "rate" => :num, "state" => :any, "mark" => :sym, "on" => :bool }.freeze

    def make_leaves
      fields = FIELDS.to_a.sample(between(1, 3), random: @random).to_h
      fields["table"] = :ints if chance(0.4)
      role = Role.new(name: :leaf, classes: among([%w[Leaf], %w[Leaf Branch], %w[Leaf Branch Stone]]), fields: fields, methods: [], owned: false)
      @roles[:leaf] = role
      parents = { "Branch" => chance(0.5) ? "Leaf" : nil, "Stone" => nil }
      make_classes(role, parents, "l", between(1, 2))
      @leaves = Array.new(between(1, 3)) { fresh("leaf") }
      @leaves.each { |name| @setup << "#{name} = #{object(among(role.classes), role)}" }
    end

    def make_actors
      if chance(0.5)
        fields = FIELDS.to_a.sample(between(1, 3), random: @random).to_h
        fields["cells"] = :ints if chance(0.2)
        @roles[:part] = Role.new(name: :part, classes: among([%w[Wheel], %w[Wheel Track]]), fields: fields, methods: [], owned: true)
        make_classes(@roles[:part], { "Track" => chance(0.5) ? "Wheel" : nil }, "p", between(1, 2))
      end
      fields = FIELDS.to_a.sample(between(2, 5), random: @random).to_h
      fields["items"] = :ints if chance(0.5)
      fields["more"] = :ints if fields.key?("items") && chance(0.3)
      fields["bag"] = :bag if chance(0.3)
      fields["leaf"] = :leaf if @roles.key?(:leaf) && chance(0.7)
      fields["part"] = :part if @roles.key?(:part)
      made_kinds.each { |type| fields[type.to_s] = type if chance(0.6) }
      fields["spare"] = :part if @roles.key?(:part) && chance(0.3)
      if chance(0.2)
        @definitions << statement("class Counter\n  attr_accessor :n\nend")
        @setup << "counter = Counter(n: #{literal(:small)})"
        @watched << "counter.n"
        @counter = true
        fields["counter"] = :counter if chance(0.5)
      end
      classes = among([%w[Actor], %w[Actor Car], %w[Actor Car Bus], %w[Actor Car Bus Robot]])
      @roles[:actor] = Role.new(name: :actor, classes: classes, fields: fields, methods: [], owned: true)
      make_classes(@roles[:actor], { "Car" => "Actor", "Bus" => among(%w[Actor Car]), "Robot" => nil }, "m", between(1, 4))
      make_class_methods if chance(0.2)
    end

    # Classes of a role. Those that inherit from none of them define every method; others define some.
    def make_classes(role, parents, prefix, count)
      bodies = role.classes.to_h { |name| [name, [statement("attr_#{role.owned ? "accessor" : "reader"} #{role.fields.keys.map { |field| ":#{field}" }.join(", ")}")]] }
      mixin = chance(0.25) ? "#{role.name.to_s.capitalize}Mixin" : nil
      mixed = []
      count.times do
        method = signature(prefix, writes: role.owned)
        own = role.classes.reject { |name| parents[name] }
        heirs = role.classes.select { |name| parents[name] && chance(0.5) }
        own.each { |name| bodies[name] << define("", method, role: role) { nil } }
        heirs.each do |name|
          bodies[name] << define("", method, role: role) { |scope| with_super(scope, method) if chance(0.6) }
        end
        if mixin && chance(0.6)
          mixed << define("", method, role: role) { |scope| with_super(scope, method) }
        end
        method.cost *= 3
        role.methods << method
      end
      if mixed.any?
        @definitions << statement("module #{mixin}\n  {}\nend", Node.body(mixed))
        among(role.classes).then { |name| bodies[name].unshift(statement("prepend #{mixin}")) }
      end
      role.classes.each do |name|
        start = yield(name) if block_given?
        bodies[name].insert(1, start) if start
        @definitions << statement("class #{name}#{" < #{parents[name]}" if parents[name]}\n  {}\nend", Node.body(bodies[name]))
      end
    end

    # Adds the method of the superclass to an expression of its type.
    def with_super(scope, method)
      call = Node.new(:text, ["super"])
      if chance(0.4)
        required = method.params.select { |_, _, how| %i[required keyword].include?(how) }
        values = required.map { |name, type, how| how == :keyword ? node(:text, "#{name}: {}", expression(scope, type, 1)) : expression(scope, type, 1) }
        call = node(:text, "super(#{(["{}"] * values.size).join(", ")})", *values)
      end
      case method.result
      when :int, :num, :float then node(method.result, "({} + {})", call, expression(scope, method.result, 1))
      when :bool then node(:bool, "({} ^ {})", call, expression(scope, :bool, 1))
      else node(method.result, "({} ? {} : {})", expression(scope, :bool, 1), call, expression(scope, method.result, 1))
      end
    end

    def make_class_methods
      method = signature("make")
      role = @roles[:actor]
      text = define("self.", method) { nil }
      @definitions << statement("class #{among(role.classes)}\n  {}\nend", Node.body([text]))
      owner = @definitions.last.to_s[/class (\w+)/, 1]
      method.name = "#{owner}.#{method.name}"
      @class_methods << method
    end

    # The text that makes an object, in set-up.
    def object(name, role)
      values = role.fields.filter_map do |field, type|
        value = case type
                when :leaf then chance(0.9) ? among(@leaves) : "nil"
                when :part then chance(0.9) ? object(among(@roles[:part].classes), @roles[:part]) : "nil"
                when :counter then "counter"
                when :spot, :pair then object(type.to_s.capitalize, @roles[type])
                when :ints, :bag then array_literal(type)
                when :any then next if chance(0.1)
                else literal(type)
        end
        "#{field}: #{value || literal(:any)}"
      end
      "#{name}(#{values.join(", ")})"
    end

    # ---- the section ----

    def make_section(objects)
      each = chance(0.45)
      scope = Scope.new(place: :block, result: nil)
      captures(scope)
      make_accumulators if chance(each ? 0.6 : 0.15)
      base, element = objects ? object_base : scalar_base
      name = objects && chance(0.5) ? "e" : "x"
      scope.vars << Var.new(name, element, false)
      each ? make_peach(scope, base, name) : make_pmap(scope, base, name)
    end

    def captures(scope)
      between(0, 3).times do
        type = among(@strings ? %i[int float any str str] : %i[int float num any sym bool])
        name = fresh("c")
        @setup << "#{name} = #{literal(type)}"
        scope.vars << Var.new(name, type, false)
      end
      if chance(0.3)
        type = among(%i[ints bag])
        name = fresh("list")
        @setup << "#{name} = #{array_literal(type)}"
        scope.vars << Var.new(name, type, false)
      end
      if @roles.key?(:pair) && chance(0.6)
        name = fresh("pair")
        @setup << "#{name} = #{object("Pair", @roles[:pair])}"
        scope.vars << Var.new(name, :pair, false)
      end
      scope.vars << Var.new(among(@leaves), :leaf, false) if @leaves && chance(0.5)
      scope.vars << Var.new("counter", :counter, false) if @counter && chance(0.6)
    end

    def make_accumulators
      @accumulators = {}
      between(1, 2).times do
        form = among(["+", "+", "-", "*", "&", "|", "^", :most, :least, :float, :last])
        name = fresh({ most: "most", least: "least", float: "sum", last: "last" }.fetch(form, "total"))
        @accumulators[name] = form
        @setup << "#{name} = #{form == :float ? "0.5" : literal(form == :last ? :any : :int)}"
        @watched << name
      end
    end

    def scalar_base
      if chance(0.15)
        from = between(-3, 3)
        return ["(#{from}#{among(%w[.. ...])}#{from + between(0, 6)})", :int]
      end
      type = among(@strings ? %i[int any str str] : %i[int int float num any])
      @setup << "elements = [#{Array.new(between(1, 7)) { literal(type) }.join(", ")}]"
      ["elements", type]
    end

    def object_base
      role = @roles[:actor]
      classes = chance(0.3) ? [among(role.classes)] : role.classes
      count = between(1, 5)
      names = Array.new(count) { fresh("o") }
      names.each do |name|
        frozen = chance(0.01) ? ".freeze" : ""
        @setup << "#{name} = #{object(among(classes), role)}#{frozen}"
      end
      watch(names, role)
      listed = chance(0.25) ? names + names.sample(2, random: @random) : names
      listed = listed.shuffle(random: @random) if chance(0.2)
      @setup << "elements = [#{listed.join(", ")}]"
      ["elements", :actor]
    end

    def watch(names, role)
      names.each do |name|
        role.fields.each do |field, type|
          next if type == :counter
          next @roles[type].fields.each_key { |part| @watched << "#{name}.#{field}.#{part}" } if made_kinds.include?(type)

          @watched << "#{name}.#{field}"
        end
      end
    end

    def make_pmap(scope, base, name)
      scope.result = among(%i[int int float num any any bool sym wild list mixed])
      scope.result = :str if @strings && chance(0.3)
      if scope.vars.last.type == :actor && chance(0.05)
        method = @roles[:actor].methods.find { |known| known.params.none? { |_, _, how| %i[required keyword].include?(how) } }
        return statement("#{base}.pmap(&:#{method.name})") if method
      end
      if chance(0.2)
        return statement("#{base}.#{mapping} { |#{name}| {} }", expression(scope, scope.result, 4))
      end

      inner = body(scope, between(1, 4))
      value = chance(0.05) && scope.vars.any? { |var| @roles.key?(var.type) } ? Node.new(:object, [among(scope.vars.select { |var| @roles.key?(var.type) }).name]) : expression(scope, scope.result)
      inner.parts << statement("{}", value)
      statement("#{base}.#{mapping} do |#{name}|\n  {}\nend", inner)
    end

    def make_peach(scope, base, name)
      scope.result = nil
      ticks = chance(0.5) ? "(#{between(0, 4)})" : ""
      inner = body(scope, between(2, 5))
      within = ticks.empty? && @operations.rand < 0.3 ? "peach_within(:with_index, 1)" : "peach#{ticks}"
      statement("#{base}.#{within} do |#{name}|\n  {}\nend", inner)
    end

    WITHIN = ["pmap_within(:truth)", "pmap_within(:with_index, 3)", "pmap_within(:combine_1, [1, 2.5])", "pfind_within(:truth)", "pfind_within(:falsity)"].freeze

    # The method of the section, often what an operation does with the block. It has a random generator of its own, so
    # that the rest of each program stays as it was.
    def mapping
      @operations.rand < 0.5 ? "pmap" : WITHIN[@operations.rand(WITHIN.size)]
    end
  end
end
