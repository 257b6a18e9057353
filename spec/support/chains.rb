# frozen_string_literal: true

# Random chains, as text to follow `base.lazy` or `base.plazy`. A chain has a base, stages that suit the elements before
# them, and an end. Some blocks raise for some elements.
#
#   Chains.new(seed).next # => ["(1..12)", ".map { |x| 60 / (x - 4) }.select(&:even?).first(3)"]
class Chains
  # Kind of elements => stages, each with the kind of elements after it.
  STAGES = {
    number: {
      "map { |x| x + 1 }" => :number, "map { |x| x * 3 - 7 }" => :number, "map { |x| 60 / (x - 4) }" => :number, "map(&:abs)" => :number, "map(&:-@)" => :number,
      "select(&:even?)" => :number, "select { |x| x > 2 }" => :number, "reject { |x| x % 3 == 1 }" => :number, "filter_map { |x| x * 2 if x.odd? }" => :number,
      "take_while { |x| x < 40 }" => :number, "take_while { |x| 100 / (x - 5) < 90 }" => :number, "take(3)" => :number, "take(20)" => :number, "drop(2)" => :number,
      "flat_map { |x| x % 3 == 0 ? [] : [x, -x, 7] }" => :number, "flat_map { |x| [[x, 1], [2, x]] }" => :array, "flat_map { |x| [x / 2.0, 1.5] }" => :float,
      "flat_map { |x| x > 3 ? [x, nil] : nil }" => :maybe, "flat_map { |x| [x, 60 / (x - 4)] }" => :number, "flat_map { |x| [x, x + 1] }" => :number,
      "flat_map { |x| x.even? ? [x] : x }" => :number, "compact" => :number, "with_index { |x, i| x / (i - 9) }" => :number,
      "with_index(3)" => :pair, "each_with_index" => :pair, "zip(1..)" => :pair, "zip([5, 6, 7, 8, 9, 1, 2, 3, 4])" => :with_nil, "map { |x| [x, -x] }" => :array,
      "each_slice(2)" => :slice, "each_slice(3)" => :slice, "map { |x| x / 2.0 }" => :float, "map { |x| x > 3 ? x : nil }" => :maybe
    },
    maybe: {
      "compact" => :number, "map { |x| x || 5 }" => :number, "reject(&:nil?)" => :number, "select { |x| x }" => :number, "filter_map { |x| x }" => :number,
      "map { |x| x + 1 }" => :number, "each_slice(2).map { |slice| slice.size }" => :number
    },
    float: { "map { |x| x.floor }" => :number, "select { |x| x > 1.0 }" => :float, "map { |x| x * 0.5 }" => :float, "with_index" => :float_pair },
    float_pair: { "map { |x, i| (x * i).floor }" => :number, "select { |_, i| i.even? }" => :float_pair, "reject { |pair| pair[1] > 4 }" => :float_pair },
    pair: {
      "map { |x, i| x * i }" => :number, "map { |x| x }" => :number, "map { _1 - _2 }" => :number, "select { |_, i| i.odd? }" => :pair, "select { |pair| pair[0] > 3 }" => :pair,
      "reject { |x, i| x == i }" => :pair, "filter_map { |x, i| x + i if i > 1 }" => :number, "flat_map { |x, i| [x, i] }" => :number, "take(4)" => :pair, "drop(1)" => :pair,
      "with_index.map { |(x, i), j| x + i * j }" => :number, "each_slice(2).map { |slice| slice.size }" => :number, "take_while { |x, i| x + i < 50 }" => :pair,
      "map(&:+)" => :number, "zip([3, 4, 5]).map { |(x, i), y| y ? x * y + i : i }" => :number
    },
    array: {
      "map { |x, y| x * y }" => :number, "map { |x| x[0] }" => :number, "select { |_, y| y > -9 }" => :array, "with_index.map { |(a, b), i| a * i + b }" => :number,
      "flat_map { |a| a }" => :number, "flat_map { |_, b| [b] }" => :number, "map { |(_, b)| b }" => :number
    },
    with_nil: { "map { |x, y| y ? x * y : x }" => :number, "select { |_, y| y }.map { |x, _| x }" => :number, "filter_map { |_, y| y }" => :number },
    slice: {
      "map(&:sum)" => :number, "map { |slice| slice.size }" => :number, "map { |a, b| b ? a + b : a }" => :number, "flat_map { |slice| slice }" => :number,
      "flat_map(&:itself)" => :number, "select { |slice| slice.size == 2 }" => :slice, "each_slice(2).map { |slices| slices.size }" => :number
    }
  }.freeze
  ENDS = [
    "to_a", "first", "first(3)", "first(7)", "reduce { |a, b| a + b }", "reduce(100) { |a, b| a > b ? a : b }", "reduce(:+)", "sum", "sum { |x| x * 2 }", "count", "count(&:odd?)",
    "minmax", "include?(7)", "find { |x| 30 / (x - 3) > 2 }", "any? { |x| 30 / (x - 3) > 2 }", "all? { |x| x < 30 }", "one? { |x| x > 9 }", "none?(5)",
    "each_with_object([]) { |x, all| all << x }", "sort_by { |x| -x }", "group_by(&:odd?)", "min", "max", "inject(5, :+)", "min_by { |x| x % 7 }", "max_by { |x| 60 / (x - 3) }",
    "sum { |x| x / 2.0 }", "count { |x| 60 / (x - 5) > 2 }", "minmax_by { |x| x % 5 }"
  ].freeze
  # Halves and quarters, whose sums are exact in any order.
  FLOAT_ENDS = ["to_a", "first(3)", "sum", "sum(0.0)", "min", "max", "minmax", "count", "max_by { |x| -x }", "reduce(:+)", "reduce { |a, b| a > b ? a : b }"].freeze
  BASES = [
    "(1..12)", "(0...300)", "(-5..5)", "(3..2)", "[]", "[7]", "[9, 8, 5, 4, 40, 2]", "[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]", "Array.new(700) { |i| (i * 7919) % 101 - 20 }"
  ].freeze

  def initialize(seed)
    @random = Random.new(seed)
  end

  def next
    kind = :number
    text = +""
    @random.rand(0..6).times do
      stage, kind = STAGES.fetch(kind).to_a.sample(random: @random)
      text << ".#{stage}"
    end
    [BASES.sample(random: @random), "#{text}.#{({ number: ENDS, float: FLOAT_ENDS }[kind] || ENDS.first(4)).sample(random: @random)}"]
  end
end
