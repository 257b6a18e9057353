# frozen_string_literal: true

require_relative "tables"

module Fuzz
  # `case … in`: patterns that sometimes match, with guards, pins, alternatives and bindings.
  module Patterns
    include Tables

    private

    def match(scope)
      subject, kind = among(subjects(scope)).call
      clauses = Array.new(between(1, 3)) do
        inside = scope.inner
        pattern = pattern(inside, kind, 2)
        # Ruby 3.1 cannot compile every clause that follows one that always matches.
        inside, pattern = scope.inner, Node.new(:text, ["Integer | nil"]) if pattern.to_s.match?(/\A(_|b\d+)\z/)
        guard = chance(0.3) ? node(:text, " #{among(%w[if unless])} {}", expression(inside, :bool, 2)) : nil
        [node(:text, "{}", pattern), guard || Node.new(:text, [""]), body(inside, 1)]
      end
      # For a single pattern, Ruby's message says more.
      otherwise = clauses.size == 1 || kind != :int || chance(0.9)
      template = "case {}\n#{"in {}{}\n  {}\n" * clauses.size}#{"else\n  {}\n" if otherwise}end"
      statement(template, subject, *clauses.flatten(1), *(otherwise ? [branch_body(scope)] : []))
    end

    # A subject, and what is known of it: a type, or the types of its items.
    def subjects(scope)
      found = [
        -> { [expression(scope, :int, 2), :int] }, -> { [expression(scope, :any, 2), :any] }, -> { [expression(scope, :num, 1), :num] },
        -> { [expression(scope, :loose, 2), :list] }, -> { [expression(scope, :mixed, 1), :mixed] },
        lambda do
          types = Array.new(between(1, 3)) { among(%i[int any sym loose]) }
          [node(:text, "[#{(["{}"] * types.size).join(", ")}]", *types.map { |type| expression(scope, type, 1) }), types]
        end
      ]
      pairs = at_hand(scope, :pair)
      found << -> { [Node.new(:object, [among(pairs)]), :pair] } << -> { [Node.new(:object, [among(pairs)]), :pair] } if pairs.any?
      found
    end

    # A pattern, whose bindings are visible in `scope`.
    def pattern(scope, kind, depth)
      return Node.new(:text, ["_"]) if chance(0.1)

      case kind
      when Array then of_items(scope, kind, depth)
      when :list, :loose then of_list(scope, :int, depth)
      when :mixed then of_list(scope, :any, depth)
      when :pair then of_pair(scope, depth)
      else of_value(scope, kind)
      end
    end

    def bound(scope, type)
      name = fresh("b")
      scope.vars << Var.new(name, type, true)
      name
    end

    CLASSES = { "Integer" => :int, "Float" => :float, "Symbol" => :sym, "Numeric" => :num, "nil" => :any }.freeze

    def of_value(scope, kind)
      text = case between(0, 7)
      when 0 then literal(:small)
      when 1 then kind == :sym ? ":a" : "#{literal(:tiny)}..#{between(3, 9)}"
      when 2 then "-3...#{literal(:small)}"
      when 3 then "#{literal(:small)} | #{kind == :any ? "nil" : "7"} | #{kind == :sym ? ":a" : "-1..1"}"
      when 4
        klass, type = among(CLASSES.to_a)
        "#{klass} => #{bound(scope, type)}"
      when 5 then bound(scope, kind)
      when 6
        pinned = among(scope.vars.select { |var| FITS.fetch(kind, []).include?(var.type) && !var.name.start_with?("b") })
        pinned ? "^#{pinned.name}" : "Integer"
      else among(%w[Integer Float Symbol nil true])
      end
      node(:text, text)
    end

    def of_items(scope, kinds, depth)
      parts = kinds.map { |kind| pattern(scope, kind, depth - 1) }
      parts.pop if (rest = chance(0.25))
      node(:text, "[#{[*["{}"] * parts.size, *("*" if rest)].join(", ")}]", *parts)
    end

    def of_list(scope, type, depth)
      return Node.new(:text, ["[]"]) if depth <= 0 || chance(0.15)

      parts = Array.new(between(1, 3)) { pattern(scope, type, depth - 1) }
      texts = ["{}"] * parts.size
      texts.insert(between(0, texts.size), "*") if chance(0.5)
      node(:text, "[#{texts.join(", ")}]", *parts)
    end

    def of_pair(scope, depth)
      second = @roles[:pair].fields["right"]
      case between(0, 3)
      when 0 then node(:text, "[{}, {}]", pattern(scope, :int, depth - 1), pattern(scope, second, depth - 1))
      when 1 then node(:text, "Pair[{}, {}]", pattern(scope, :int, depth - 1), pattern(scope, second, depth - 1))
      when 2 then node(:text, "{left: {}}", pattern(scope, :int, depth - 1))
      else node(:text, "{left: Integer => #{bound(scope, :int)}, right:}").tap { scope.vars << Var.new("right", second, true) }
      end
    end
  end
end
