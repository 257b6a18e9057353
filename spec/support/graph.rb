# frozen_string_literal: true

# The form of everything that can be reached from some values: the objects and their classes, the contents of their
# instance variables, and which references lead to the same object. Graphs of the same form are equal Arrays.
module Graph
  OPAQUE = [Proc, Method, UnboundMethod, Binding, Thread, IO, Exception].freeze

  class << self
    # An Array of lines, one for each object, in the order in which they are found. It does not recurse, so lists may be
    # long.
    def of(*roots)
      numbers = {}.compare_by_identity
      found = []
      name = lambda do |value|
        scalar(value) || "##{numbers[value] ||= found.push(value).size}"
      end
      lines = [roots.map(&name)]
      lines << line(found[lines.size - 1], name) while lines.size <= found.size
      lines
    end

    # A value without an identity, as text; nil for an object with one.
    def scalar(value)
      case value
      when nil, true, false, Integer, Symbol then value.inspect
      when Float then value.nan? ? "NaN" : "#{value} #{[value].pack("G").unpack1("H*")}"
      when Module, Rational, Complex then without_address(value.inspect)
      end
    end

    def without_address(text)
      text.gsub(/0x\h{8,}/, "0x…")
    end

    private

    def line(value, name)
      frozen = value.frozen? ? " frozen" : ""
      case value
      when String, Range then [value.inspect + frozen]
      when Array then ["Array#{frozen}", *value.map(&name)]
      when Hash then ["Hash#{frozen}", *value.flatten(1).map(&name)]
      when *OPAQUE then [value.class.name]
      else
        ivars = value.instance_variables.sort.to_h { |ivar| [ivar, name[value.instance_variable_get(ivar)]] }
        [without_address(value.class.inspect) + frozen, ivars]
      end
    end
  end
end
