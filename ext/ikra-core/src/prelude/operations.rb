# frozen_string_literal: true

# What an operation does with an element, or with a part of the work. `yield` is the user's block: a section's block
# runs within them (`syntax::wrap`). They are called on nil. The first parameter is the element; the others are values
# that the section is given. What needs all elements, such as which of them were selected, is the host's affair.
# `operations.rs` writes those that pass on several values.
module Kernel
  # A lambda is called as any is: it does not take arrays apart, and `break` ends it.
  def __lambda(x)
    yield(x)
  end

  def __truth(x)
    yield(x) ? true : false
  end

  def __falsity(x)
    yield(x) ? false : true
  end

  # What the block gives, where that is true; else what says that there is nothing.
  def __kept(x, hole)
    value = yield(x)
    value ? value : hole
  end

  # What a block that adds is given: their sum needs no call of it.
  def __unchanged(x, &_block)
    x
  end

  # Of any element but one.
  def __another(x, one)
    yield(x) && __position != one ? true : false
  end

  def __with_index(x, offset)
    yield(x, __position + offset)
  end

  # A part of `inject`: the elements of one chunk together. There is a section for all chunks, then one for what they
  # gave, until one value is left.
  def __fold(_x, list, width)
    i = __position * width
    last = i + width
    last = list.size if last > list.size
    memo = list.__nth(i)
    i += 1
    while i < last
      memo = yield(memo, list.__nth(i))
      i += 1
    end
    memo
  end

  # The same for `min` and `max` by a block.
  def __least(_x, list, width)
    __fold(nil, list, width) { |best, x| __order(yield(x, best), x, best).__asked < 0 ? x : best }
  end

  def __greatest(_x, list, width)
    __fold(nil, list, width) { |best, x| __order(yield(x, best), x, best).__asked > 0 ? x : best }
  end

  # Three neighbours, combined from either end.
  def __both_ways(_x, list, step)
    i = __position * step
    a = list.__nth(i)
    b = list.__nth(i + 1)
    c = list.__nth(i + 2)
    [yield(yield(a, b), c), yield(a, yield(b, c))]
  end

  # All values on the way of one chunk.
  def __scan(_x, list, width)
    i = __position * width
    last = i + width
    last = list.size if last > list.size
    memo = list.__nth(i)
    out = [memo]
    i += 1
    while i < last
      memo = yield(memo, list.__nth(i))
      out << memo
      i += 1
    end
    out
  end

  # What comes before a chunk, and what it has so far.
  def __continue(_x, list, before, width)
    at = __position / width
    x = list[__position]
    if at == 0
      x
    else
      yield(before[at - 1], x)
    end
  end

  # The places of a chunk's elements in ascending order, by a block that compares; of equal ones the first first.
  def __sorted(_x, list, width)
    i = __position * width
    count = list.size - i < width ? list.size - i : width
    __build(count) { |k| i + k }.__merge_sort do |a, b|
      x = list.__nth(a)
      y = list.__nth(b)
      __order(yield(x, y), x, y).__asked > 0
    end
  end

  # A part of two neighbouring runs of places when they are merged into one. A search tells how many of its predecessors
  # come from the left run, so that parts are merged at the same time.
  def __merged(_x, list, places, width, part)
    start = __position * part
    from = start / (width * 2) * (width * 2)
    middle = from + width < places.size ? from + width : places.size
    last = middle + width < places.size ? middle + width : places.size
    before = start - from
    low = before > last - middle ? before - (last - middle) : 0
    high = before < middle - from ? before : middle - from
    while low < high
      i = (low + high) / 2
      x = list.__nth(places.__nth(middle + before - 1 - i))
      y = list.__nth(places.__nth(from + i))
      if __order(yield(x, y), x, y).__asked < 0
        high = i
      else
        low = i + 1
      end
    end
    left = from + low
    right = middle + before - low
    count = last - start < part ? last - start : part
    __build(count) do |_k|
      take_left = right >= last
      if !take_left && left < middle
        x = list.__nth(places.__nth(right))
        y = list.__nth(places.__nth(left))
        take_left = !(__order(yield(x, y), x, y).__asked < 0)
      end
      if take_left
        left += 1
        places.__nth(left - 1)
      else
        right += 1
        places.__nth(right - 1)
      end
    end
  end

  # What the block emitted for an element: its last pair, from which a chain leads to the others.
  def __emitted(x)
    out = ::Ikra::Emitter.new
    yield(x, out)
    out.last
  end

  # The same where tables group the pairs while they are emitted.
  def __added(x)
    yield(x, ::Ikra::Adder.new)
    nil
  end

  # The same where only the number of pairs counts.
  def __counted(x)
    yield(x, ::Ikra::Counter.new)
    nil
  end

  # The values of a group, combined. Those of all groups stand side by side, and `starts` says where each begins.
  def __group(_x, values, starts)
    i = starts.__at(__position)
    last = starts.__at(__position + 1)
    memo = values.__at(i)
    i += 1
    while i < last
      memo = yield(memo, values.__at(i))
      i += 1
    end
    memo
  end

  # A group's key and its values, for the block that makes one value of them.
  def __reduction(_x, keys, values, starts)
    from = starts.__at(__position)
    count = starts.__at(__position + 1) - from
    yield(keys.__at(__position), __build(count) { |k| values.__at(from + k) })
  end
end
