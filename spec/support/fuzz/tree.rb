# frozen_string_literal: true

module Fuzz
  # A piece of a generated program: text with smaller pieces in it, so that a failing program can be made smaller.
  #
  # Kinds: `:body` (statements, one a line), `:statement`, `:text` (never cut), and the type of an expression.
  class Node
    attr_reader :kind
    attr_accessor :parts

    def initialize(kind, parts)
      @kind = kind
      @parts = parts
    end

    def self.body(statements = [])
      new(:body, statements)
    end

    # A node from a template: `{}` stands for the next part. A body is inserted as it is, on lines of its own.
    def self.of(kind, template, *parts)
      texts = template.split("{}", -1)
      raise "#{template} has #{texts.size - 1} holes, not #{parts.size}" unless texts.size == parts.size + 1

      new(kind, texts.zip(parts).flatten(1).reject { |part| part.nil? || part == "" })
    end

    def body?
      kind == :body
    end

    def to_s
      return parts.join("\n") if body?

      parts.reduce(+"") do |text, part|
        indent = text[/^ *\z/]
        text << (part.is_a?(Node) && part.body? && indent ? part.to_s.gsub("\n", "\n#{indent}") : part.to_s)
      end
    end

    def children
      parts.grep(Node)
    end

    def each_node(&block)
      block.call(self)
      children.each { |child| child.each_node(&block) }
    end

    def copy
      Node.new(kind, parts.map { |part| part.is_a?(Node) ? part.copy : part })
    end

    # Replacements for this node in a smaller program: lists of parts to try in turn.
    def reductions
      case kind
      when :body then cuts + hoists
      when :statement, :text then []
      else replacements
      end
    end

    private

    # Bodies without a run of statements: long runs first.
    def cuts
      widths = [parts.size, parts.size / 2, parts.size / 4, 1].uniq.select(&:positive?)
      widths.flat_map do |width|
        (0..parts.size - width).step(width).map { |at| parts[0...at] + parts[(at + width)..] }
      end
    end

    # Bodies in which a statement is replaced by the bodies in it.
    def hoists
      parts.each_index.flat_map do |at|
        next [] unless parts[at].is_a?(Node)

        inner = parts[at].children.select(&:body?).map(&:parts) + parts[at].children.reject(&:body?).map { |child| [child] }
        inner.map { |statements| parts[0...at] + statements + parts[(at + 1)..] }
      end
    end

    SIMPLEST = { int: %w[0 1], small: %w[1], tiny: %w[1], float: %w[1.0], num: %w[1], bool: %w[true false], sym: %w[:a], any: %w[nil 1] }.freeze

    def replacements
      plain = SIMPLEST.fetch(kind, [])
      return [] if parts.size == 1 && plain.include?(parts[0])

      plain.map { |text| [text] } + expressions_within.map { |child| [child] }
    end

    def expressions_within
      children.flat_map { |child| child.body? ? child.children.flat_map(&:children) : [child] }
              .reject { |child| %i[body statement text].include?(child.kind) }
    end
  end
end
