# frozen_string_literal: true

# What iterators of MDArray do with a position. `yield` is the user's block (`operations.rb` says what such methods
# are), and `at` is a lambda that computes the element at a position. Those that pass on several values are written by
# `operations.rs`.
module Kernel
  def __computed(_x, at)
    yield(at.call(__position))
  end

  # The same of a list that has the elements as they lie.
  def __stored(_x, list)
    yield(list.__at(__position))
  end

  # The element, where the block is true for it, or is not; else what says that there is none.
  def __selected(_x, at, hole)
    x = at.call(__position)
    yield(x) ? x : hole
  end

  def __rejected(_x, at, hole)
    x = at.call(__position)
    yield(x) ? hole : x
  end

  # What is stored of a block's value, by the kind of elements. A Buffer rounds to 32 bits itself.
  def __as_f64(x)
    1.0 * yield(x)
  end

  def __as_f32(x)
    1.0 * yield(x)
  end

  # Whether it is a Float that is no Integer of 64 bits.
  def __beyond?(value)
    ::Float === value && !(value >= -9_223_372_036_854_775_808.0 && value < 9_223_372_036_854_775_808.0)
  end

  def __as_i64(x)
    value = yield(x)
    raise ::Ikra::MDArray::Unfit, "what the block gives is not a number" unless ::Numeric === value

    raise ::Ikra::MDArray::Unfit, "#{value} does not fit i64 (-9223372036854775808 to 9223372036854775807)" if __beyond?(value)

    value.truncate
  end

  def __as_i32(x)
    value = yield(x)
    raise ::Ikra::MDArray::Unfit, "what the block gives is not a number" unless ::Numeric === value

    raise ::Ikra::MDArray::Unfit, "#{value} does not fit i32 (-2147483648 to 2147483647)" if __beyond?(value)

    whole = value.truncate
    raise ::Ikra::MDArray::Unfit, "#{whole} does not fit i32 (-2147483648 to 2147483647)" if whole < -2_147_483_648 || whole > 2_147_483_647

    whole
  end

  def __as_u8(x)
    value = yield(x)
    raise ::Ikra::MDArray::Unfit, "what the block gives is not a number" unless ::Numeric === value

    raise ::Ikra::MDArray::Unfit, "#{value} does not fit u8 (0 to 255)" if __beyond?(value)

    whole = value.truncate
    raise ::Ikra::MDArray::Unfit, "#{whole} does not fit u8 (0 to 255)" if whole < 0 || whole > 255

    whole
  end

  def __as_bool(x)
    yield(x) ? true : false
  end

  # A part of a reduction of one dimension: what one chunk comes to. The dimension has `length` elements that stand
  # `inner` apart, in `chunks` of at most `width` of them. The results stand as the elements do, with a dimension of
  # chunks in its place.
  #
  # The host has seen to it that all places are in range: masks and least values say it to the compiler.
  def __fold_at(_x, at, length, chunks, inner, width)
    within = inner < 1 ? 1 : inner
    count = chunks < 1 ? 1 : chunks
    rest = __position / within
    before = (rest % count * width) & 0x7fff_ffff_ffff_ffff
    i = ((rest / count * length + before) * within + __position % within) & 0x7fff_ffff_ffff_ffff
    left = (length - before) & 0x7fff_ffff_ffff_ffff
    left = width if left > width
    memo = at.call(i)
    while left > 1
      i = (i + within) & 0x7fff_ffff_ffff_ffff
      left -= 1
      memo = yield(memo, at.call(i))
    end
    memo
  end

  # The start of a reduction, and what all elements came to.
  def __begun(_x, at, start)
    yield(start, at.call(__position))
  end

  # All values on the way of one chunk, written where its elements stand. `totals`: for each chunk, what all chunks
  # before it come to.
  def __scan_at(_x, at, totals, out, length, chunks, inner, width)
    within = inner < 1 ? 1 : inner
    count = chunks < 1 ? 1 : chunks
    rest = __position / within
    chunk = rest % count
    before = (chunk * width) & 0x7fff_ffff_ffff_ffff
    i = ((rest / count * length + before) * within + __position % within) & 0x7fff_ffff_ffff_ffff
    left = (length - before) & 0x7fff_ffff_ffff_ffff
    left = width if left > width
    memo = at.call(i)
    while left > 1
      out[i] = chunk == 0 ? memo : yield(totals.__at((__position - within) & 0x7fff_ffff_ffff_ffff), memo)
      i = (i + within) & 0x7fff_ffff_ffff_ffff
      left -= 1
      memo = yield(memo, at.call(i))
    end
    # so that the last is what a reduction gives, in the same order
    out[i] = totals.__at(__position)
    nil
  end
end
