# frozen_string_literal: true

require_relative "tables"

module Fuzz
  # Objects that kernels make, of a class with `initialize`, which elements hold in `@spot`; and existing Structs.
  module Objects
    include Tables

    private

    def make_made
      make_spot if chance(0.7)
      make_pair if chance(0.6)
    end

    def make_spot
      fields = { "x" => :int, "y" => among(%i[int any sym num]) }
      role = Role.new(name: :spot, classes: chance(0.3) ? %w[Spot Dot] : %w[Spot], fields: fields, methods: [], owned: true)
      @roles[:spot] = role
      default = literal(fields["y"])
      start = ["def initialize(x, y = #{default})\n  @x = x\n  @y = y\nend", "def initialize(x, y = #{default})\n  @x, @y = x, y\nend"]
      @makers[:spot] = ["Spot.new({}, {})", [:int, fields["y"]]]
      make_classes(role, { "Dot" => "Spot" }, "s", between(0, 1)) { |name| name == "Spot" ? statement(among(start)) : nil }
      @definitions << statement("class Spot\n  def plus(other) = Spot.new(@x + other.x, @y)\n  def ==(other) = other.is_a?(Spot) && @x == other.x\nend")
    end

    def make_pair
      fields = { "left" => :int, "right" => among(%i[int bool sym]) }
      role = Role.new(name: :pair, classes: %w[Pair], fields: fields, methods: [], owned: false)
      @roles[:pair] = role
      keywords = chance(0.3)
      block = chance(0.4) ? " do\n  def both(n = 1) = left + n\nend" : ""
      role.methods << Signature.new(name: "both", params: [["n", :int, :default]], result: :int, cost: 1) unless block.empty?
      @definitions << statement("Pair = Struct.new(:left, :right#{", keyword_init: true" if keywords})#{block}")
    end

    def at_hand(scope, type)
      scope.vars.select { |var| var.type == type }.map(&:name) + fields(scope, type)
    end

    # Kinds of fields that hold such objects.
    def made_kinds
      %i[spot pair].select { |type| @roles.key?(type) }
    end

    # A new object, or an existing one.
    def made(scope, type, depth)
      names = at_hand(scope, type)
      return Node.new(:object, [among(names)]) if names.any? && (chance(0.5) || type == :pair)

      template, types = @makers.fetch(type)
      template = template.sub("Spot", "Dot") if type == :spot && @roles[:spot].classes.size > 1 && chance(0.3)
      node(:object, template, *types.map { |kind| expression(scope, kind, depth - 1) })
    end

    # Values made of such objects.
    def from_made(scope, type)
      choices = []
      if @makers.key?(:spot) && scope.times <= 50
        build = ->(template, *kinds) { ->(depth) { node(type, template, *kinds.map { |kind| %i[spot pair].include?(kind) ? made(scope, kind, depth) : expression(scope, kind, depth - 1) }) } }
        choices << [1, build.call("{}.x", :spot)] << [1, build.call("{}.plus({}).x", :spot, :spot)] if type == :int
        choices << [1, build.call("({} == {})", :spot, :spot)] << [0.5, build.call("{}.is_a?(#{among(@roles[:spot].classes)})", :spot)] if type == :bool
        choices << [1, build.call("{}.y", :spot)] if FITS.fetch(type, []).include?(@roles[:spot].fields["y"])
      end
      if at_hand(scope, :pair).any?
        build = ->(template, *kinds) { ->(depth) { node(type, template, *kinds.map { |kind| %i[spot pair].include?(kind) ? made(scope, kind, depth) : expression(scope, kind, depth - 1) }) } }
        choices << [1, build.call("{}.left", :pair)] << [1, build.call("{}[0]", :pair)] << [0.5, build.call("{}[:left]", :pair)] << [0.5, build.call("{}.size", :pair)] if type == :int
        choices << [1, build.call("({} == {})", :pair, :pair)] << [0.5, build.call("{}.eql?({})", :pair, :pair)] if type == :bool
        choices << [0.5, build.call("({} in [#{literal(:int)}, _])", :pair)] if type == :bool
        choices << [0.5, build.call("{}.right", :pair)] if FITS.fetch(type, []).include?(@roles[:pair].fields["right"])
        choices << [0.5, build.call("{}.to_a", :pair)] if type == :mixed
        choices << [0.5, build.call("{}[{}]", :pair, :tiny)] << [0.5, build.call("{}[-1]", :pair)] if type == :any
      end
      choices
    end

    def declare_made(scope)
      type = among(@makers.keys)
      name = fresh("p")
      given = statement("#{name} = {}", made(scope, type, 2))
      scope.vars << Var.new(name, type, false)
      given
    end

    # Replaces the object that an element holds.
    def store_made(scope)
      places = made_places(scope)
      place, type = among(places)
      statement("#{place} = {}", made(scope, type, 2))
    end

    def made_places(scope)
      return [] if scope.place == :pure || @makers.empty?

      places = []
      scope.role.fields.each { |name, type| places << ["@#{name}", type] if @makers.key?(type) } if scope.role&.owned
      scope.vars.each do |var|
        role = @roles[var.type]
        role.fields.each { |name, type| places << ["#{var.name}.#{name}", type] if @makers.key?(type) } if role&.owned
      end
      places
    end
  end
end
