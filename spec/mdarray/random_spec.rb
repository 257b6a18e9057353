# frozen_string_literal: true

# Random expressions over random views, against the same over arrays within arrays.
RSpec.describe Ikra::MDArray do
  # An array and the nested array with its elements. Its shape can be broadcast to the given one.
  def leaf(random, shape)
    shape = shape.map { |size| random.rand(4).zero? ? 1 : size }
    shape = shape.drop(1) if shape.size > 1 && random.rand(5).zero?
    # A part of a larger array, transposed.
    order = (0...shape.size).to_a.shuffle(random: random)
    outer = shape.map { |size| size + random.rand(3) }
    from = shape.zip(outer).map { |size, whole| random.rand(whole - size + 1) }
    float = random.rand(2).zero?
    list = Array.new(outer.reduce(1, :*)) { float ? random.rand(-8..8) * 0.25 : random.rand(-5..5) }
    base = md(list).reshape(*outer.values_at(*order)).transpose(*order.each_index.sort_by { |k| order[k] })
    array = base[*from.zip(shape).map { |first, size| first...(first + size) }]
    array = array.reverse(axis: 0) if random.rand(3).zero?
    [array, array.to_a]
  end

  def tree(random, shape, depth)
    return leaf(random, shape) if depth.zero?

    array, nested = tree(random, shape, depth - 1)
    case random.rand(6)
    when 0 then [array.abs, deep_map(nested, &:abs)]
    when 1 then [-array, deep_map(nested, &:-@)]
    when 2
      number = [2, -1, 0.5].sample(random: random)
      [number - array, deep_map(nested) { |x| number - x }]
    else
      other, others = tree(random, shape, random.rand(depth))
      name = %i[+ - * minimum].sample(random: random)
      missing = array.ndim - other.ndim
      missing.positive? ? missing.times { others = [others] } : (-missing).times { nested = [nested] }
      number = array.dtype == :i64 && other.dtype == :i64
      convert = ->(x) { number ? x : x.to_f }
      [array.public_send(name, other), deep_zip(nested, others) { |x, y| name == :minimum ? (y < x ? y : x).then(&convert) : x.public_send(name, y).then(&convert) }]
    end
  end

  # All elements are of one kind.
  def alike?(one, other) = one.to_a.flatten.map(&:to_f).inspect.gsub("-0.0", "0.0") == other.flatten.map(&:to_f).inspect.gsub("-0.0", "0.0")

  on_quick_backends do |backend|
    it "computes random expressions as Ruby does" do
      120.times do |seed|
        random = Random.new(seed)
        shape = Array.new(random.rand(1..4)) { random.rand(1..4) }
        array, nested = tree(random, shape, random.rand(1..4))
        expect([seed, alike?(array.dup, nested)]).to eq([seed, true])
        kept = array.map { |x| x }
        expect([seed, array.sum(axis: -1).to_flat_a]).to eq([seed, kept.sum(axis: -1).to_flat_a]) if array.ndim > 1
        expect([seed, array.dtype, array.shape]).to eq([seed, kept.dtype, kept.shape])
        target = described_class.zeros(*array.shape.reverse, dtype: array.dtype)
        target.transpose[*[true] * array.ndim] = array
        expect([seed, target.transpose == array]).to eq([seed, true])
      end
    end
  end
end
