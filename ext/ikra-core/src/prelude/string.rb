# frozen_string_literal: true

# Strings: what checks its arguments, raises, or takes a block.
class String
  def +(other)
    text = __text(other)
    state = __appended(__state, text.__state)
    __disagree if state < 0
    n = bytesize
    all = n + text.bytesize
    made = __string(all)
    made.__fill(0, self)
    made.__fill(n, text)
    made.__coded(all, state > 3 ? state - 2 : state)
  end

  # Whether it is in a Range of two Strings.
  def __between_texts(from, to, exclusive)
    return false if (self <=> from) < 0

    order = self <=> to
    exclusive ? order < 0 : order <= 0
  end

  # Whether it is one of the characters of ASCII from one to another.
  def __among_characters(from, to, exclusive)
    return false unless bytesize == 1

    last = to.__byte(0)
    last -= 1 if exclusive
    b = __byte(0)
    b >= from.__byte(0) && b <= last
  end

  # What `self << other` is then.
  def __with_text(other)
    return self + other unless other.is_a?(Integer)

    __codepoint_form unless other >= 0 && other < 128
    self + other.chr
  end

  def *(times)
    n = __int(times)
    raise ArgumentError, "negative argument" if n < 0

    all = n * bytesize
    made = __string(all)
    made.__fill_again(0, all, self, bytesize)
    made.__coded(all, __code)
  end

  def upcase(_given = (none = true))
    __case_form unless none
    __changes_ascii? ? __cased(32, 0) : __changed(__upper_table, __upper_table)
  end

  def downcase(_given = (none = true))
    __case_form unless none
    __changes_ascii? ? __cased(0, 32) : __changed(__lower_table, __lower_table)
  end

  def swapcase(_given = (none = true))
    __case_form unless none
    __changes_ascii? ? __cased(32, 32) : __changed(__swap_table, __swap_table)
  end

  def capitalize(_given = (none = true))
    __case_form unless none
    return self if bytesize == 0
    return __changed(__title_table, __lower_table) unless __changes_ascii?

    made = __cased(0, 32)
    made.__begin_upper
    made
  end

  # Whether a change of case changes letters of ASCII only, as in encodings other than UTF-8.
  def __changes_ascii?
    return true if __encoding != 0 || ascii_only?

    __argument_error(:"input string invalid") unless valid_encoding?
    false
  end

  def __folded
    __changes_ascii? ? __cased(0, 32) : __changed(__fold_table, __fold_table)
  end

  # What tables of cases make of the first character, and of the others.
  def __changed(first, table)
    n = __changed_size(first, table)
    made = __string(n)
    made.__fill_changed(self, first, table)
    made.__coded(n, __code)
  end

  # With bits of small and great letters turned, in ASCII.
  def __cased(small, great)
    n = bytesize
    made = __string(n)
    made.__fill_cased(self, small, great)
    made.__coded(n, __code)
  end

  def reverse
    n = bytesize
    made = __string(n)
    made.__fill_reverse(self)
    made.__coded(n, __code)
  end

  def strip
    __broken unless valid_encoding?
    i = __first_text
    n = __last_text
    n > i ? __view(i, n - i) : __view(bytesize, 0)
  end

  def lstrip
    __broken unless valid_encoding?
    i = __first_text
    __view(i, bytesize - i)
  end

  def rstrip
    __broken unless valid_encoding?
    __view(0, __last_text)
  end

  def chomp(ending = (none = true))
    return __view(0, __line_end(bytesize)) if none
    return __view(0, bytesize) if ending.nil?

    text = __text(ending)
    n = text.bytesize
    return __view(0, __lines_end) if n == 0
    return __view(0, __line_end(bytesize)) if n == 1 && text.__byte(0) == 10

    delete_suffix(text)
  end

  def chop
    __broken unless valid_encoding?
    n = bytesize
    return __view(0, 0) if n == 0
    return __view(0, n - 2) if n > 1 && __byte(n - 1) == 10 && __byte(n - 2) == 13

    n -= 1
    n -= 1 until __head?(n)
    __view(0, n)
  end

  def ljust(width, pad = " ")
    __justified(width, pad, 0)
  end

  def rjust(width, pad = " ")
    __justified(width, pad, 2)
  end

  def center(width, pad = " ")
    __justified(width, pad, 1)
  end

  # `share`: how many halves of the padding are on the left.
  def __justified(width, pad, share)
    most = __int(width)
    text = __text(pad)
    state = __appended(__state, text.__state)
    __disagree if state < 0
    __argument_error(:"zero width padding") if text.bytesize == 0
    n = most - size
    return __view(0, bytesize) if n <= 0

    left = n * share / 2
    before = text.__padding(left)
    after = text.__padding(n - left)
    all = before + bytesize + after
    made = __string(all)
    made.__fill_again(0, before, text, text.bytesize)
    made.__fill(before, self)
    made.__fill_again(before + bytesize, all, text, text.bytesize)
    made.__coded(all, state > 3 ? state - 2 : state)
  end

  def sub(pattern, other = (none = true))
    if none
      __substitution_form unless block_given?
      return __yielded(pattern, 1) { |part| yield(part) }
    end
    return __yielded(pattern, 1) { |part| other[part] } if other.is_a?(Hash)

    __substituted(pattern, other, 1)
  end

  def gsub(pattern, other = (none = true))
    if none
      __substitution_form unless block_given?
      return __yielded(pattern, -1) { |part| yield(part) }
    end
    return __yielded(pattern, -1) { |part| other[part] } if other.is_a?(Hash)

    __substituted(pattern, other, -1)
  end

  # With so many matches replaced; -1: all.
  def __substituted(pattern, other, most)
    by = __text(other)
    if pattern.is_a?(Regexp)
      __matching(pattern)
      __broken unless by.valid_encoding?
      return __replaced(pattern, by, most)
    end
    text = __text(pattern)
    __disagree unless __agrees?(text)
    __broken unless valid_encoding? && text.valid_encoding? && by.valid_encoding?
    return __replaced(text, by, most) if by.__has?(92)

    count = __matches(text, most)
    return __view(0, bytesize) if count == 0

    state = __appended(__state, by.__state)
    __disagree if state < 0
    all = bytesize + count * (by.bytesize - text.bytesize)
    made = __string(all)
    made.__fill_substituted(self, text, by, count)
    made.__coded(all, state > 3 ? state - 2 : state)
  end

  # Each place of a Regexp or a String, by where it begins and ends.
  def __each_place(pattern)
    if pattern.is_a?(Regexp)
      __each_match(pattern) { |from, to| yield(from, to) }
    else
      n = pattern.bytesize
      i = 0
      while i <= bytesize
        from = __find(pattern, i)
        break if from < 0

        yield(from, from + n)
        i = from + n
        i += i < bytesize ? __width(i) : 1 if n == 0
      end
    end
    nil
  end

  # With matches replaced by what may refer to their parts by a backslash.
  def __replaced(pattern, by, most)
    refers = by.__has?(92)
    table = ""
    groups = 0
    if pattern.is_a?(Regexp)
      # beside names, numbers mean nothing
      groups = pattern.__groups if pattern.__numbered?
      table = pattern.__captures_table if pattern.__one_pass?
    end
    count = 0
    all = bytesize
    __each_place(pattern) do |from, to|
      count += 1
      size = refers ? by.__fill_reference(-1, by, self, from, to, table, groups) : by.bytesize
      __reference_form if size < 0
      all += size - to + from
      break if count == most
    end
    return __view(0, bytesize) if count == 0

    state = __appended(__state, by.__state)
    __disagree if state < 0
    made = __string(all)
    at = 0
    i = 0
    __each_place(pattern) do |from, to|
      made.__fill_part(at, self, i, from)
      at += from - i
      if refers
        at += made.__fill_reference(at, by, self, from, to, table, groups)
      else
        made.__fill(at, by)
        at += by.bytesize
      end
      i = to
      count -= 1
      break if count == 0
    end
    made.__fill_part(at, self, i, bytesize)
    made.__coded(all, state > 3 ? state - 2 : state)
  end

  # With matches replaced by what a block gives for them.
  def __yielded(pattern, most)
    if pattern.is_a?(Regexp)
      __matching(pattern)
      return __yielded_at(pattern, most) { |part| yield(part) }
    end
    text = __text(pattern)
    __disagree unless __agrees?(text)
    __broken unless valid_encoding? && text.valid_encoding?
    __yielded_at(text, most) { |part| yield(part) }
  end

  def __yielded_at(pattern, most)
    list = []
    state = __state
    all = bytesize
    i = 0
    count = most
    __each_place(pattern) do |from, to|
      by = yield(__view(from, to - from)).__to_text
      __broken unless by.valid_encoding?
      state = __appended(state, by.__state)
      __disagree if state < 0
      list << __view(i, from - i)
      list << by
      all += by.bytesize - to + from
      i = to
      count -= 1
      break if count == 0
    end
    return __view(0, bytesize) if count == most

    made = __string(all)
    at = 0
    list.each do |part|
      made.__fill(at, part)
      at += part.bytesize
    end
    made.__fill_part(at, self, i, bytesize)
    made.__coded(all, state > 3 ? state - 2 : state)
  end

  # A set of characters, if kernels know it as one of this text.
  def __set_of(set)
    text = __text(set)
    __set_form unless text.__set? && (text.ascii_only? || __in_utf8? && text.__in_utf8?)
    text
  end

  # Where the first set leaves characters out, Ruby does not find all of those beyond ASCII that the second one has.
  def __second_set(first, other)
    second = __set_of(other)
    __set_form if first.__set_start == 1 && second.__set_start == 0 && !second.ascii_only?
    second
  end

  # Whether it is text in UTF-8, or can be taken for that.
  def __in_utf8?
    __encoding == 0 ? valid_encoding? : __encoding == 3 && ascii_only?
  end

  def tr(set, other)
    text = __set_of(set)
    by = __set_of(other)
    return delete(text) if by.bytesize == 0

    # a `^` at the beginning is no sign here
    __set_form if by.__set_walk(0, -1, -1) == -2
    __broken unless valid_encoding?
    # Ruby gives parts of characters here
    __set_form if text.__set_start == 1 && !by.ascii_only? && ascii_only?
    made = __string(by.ascii_only? ? bytesize : 4 * bytesize)
    n = made.__fill_translated(self, text, text.__set_start, by)
    __set_form if n < 0
    made.__coded(n, __code_of_tr(text, by))
  end

  # Text in US-ASCII gets the encoding of the sets once a character was replaced.
  def __code_of_tr(text, by)
    return by.ascii_only? ? __code : 0 if __encoding == 0
    return __code if text.ascii_only? && by.ascii_only?

    __count_of(text, text.__set_start, "^", 1) == 0 ? __code : 0
  end

  # "^" without characters, from behind the first byte on, is all characters.
  def delete(set, other = (alone = true), *more)
    __set_form unless more.size == 0
    text = __set_of(set)
    second = alone ? "^" : __second_set(text, other)
    __broken unless valid_encoding?
    made = __string(bytesize)
    n = made.__fill_deleted(self, text, text.__set_start, second, alone ? 1 : second.__set_start)
    made.__coded(n, __code)
  end

  def squeeze(set = (all = true), other = (alone = true), *more)
    __set_form unless more.size == 0
    text = all ? "^" : __set_of(set)
    second = alone ? "^" : __second_set(text, other)
    __broken unless valid_encoding?
    made = __string(bytesize)
    n = made.__fill_squeezed(self, text, all ? 1 : text.__set_start, second, alone ? 1 : second.__set_start)
    made.__coded(n, __code)
  end

  def count(set, other = (alone = true), *more)
    __set_form unless more.size == 0
    text = __set_of(set)
    second = alone ? "^" : __second_set(text, other)
    __broken unless valid_encoding?
    __count_of(text, text.__set_start, second, alone ? 1 : second.__set_start)
  end

  def partition(pattern)
    if pattern.is_a?(Regexp)
      __matching(pattern)
      to = __match_end(pattern.__table, 0, false)
      return [__view(0, bytesize), __view(0, 0), __view(0, 0)] if to < 0

      from = __match_start(pattern.__reverse_table, 0, to)
      return [__view(0, from), __view(from, to - from), __view(to, bytesize - to)]
    end
    text = __text(pattern)
    __disagree unless __agrees?(text)
    __broken unless valid_encoding? && text.valid_encoding?
    i = __find(text, 0)
    return [__view(0, bytesize), __view(0, 0), __view(0, 0)] if i < 0

    n = i + text.bytesize
    [__view(0, i), text, __view(n, bytesize - n)]
  end

  def rpartition(pattern)
    __backwards_form if pattern.is_a?(Regexp)
    text = __text(pattern)
    __disagree unless __agrees?(text)
    __broken unless valid_encoding? && text.valid_encoding?
    n = __find_last(text, size)
    return [__view(0, 0), __view(0, 0), __view(0, bytesize)] if n < 0

    i = __offset(n)
    n = i + text.bytesize
    [__view(0, i), text, __view(n, bytesize - n)]
  end

  # Of letters, only those of ASCII count as the same.
  def casecmp(other)
    unless other.is_a?(String)
      __no_text(other)
      return nil
    end
    __agrees?(other) ? __order_of_cases(other) : nil
  end

  def casecmp?(other)
    unless other.is_a?(String)
      __no_text(other)
      return nil
    end
    return nil unless __agrees?(other)
    return bytesize == other.bytesize && __order_of_cases(other) == 0 if __changes_ascii? && other.__changes_ascii?

    __folded == other.__folded
  end

  def +@
    __frozen? ? __copy : self
  end

  def split(separator = nil, limit = 0)
    __block_form_of_split if block_given?
    most = __c_int(limit)
    return __parts_between(separator, most) if separator.is_a?(Regexp)

    list = []
    n = bytesize
    return list if n == 0

    if most == 1
      list << __view(0, n)
      return list
    end

    __broken unless valid_encoding?
    spaces = separator.nil?
    text = spaces ? " " : __text(separator)
    spaces = true if text.bytesize == 1 && text.__byte(0) == 32
    __disagree unless __agrees?(text)
    __broken unless text.valid_encoding?
    count = 1
    from = 0
    i = 0
    if spaces
      skipped = true
      while i < n
        if skipped
          if __blank?(i)
            from = i + 1
          else
            skipped = false
            break if most > 0 && most <= count
          end
        elsif __blank?(i)
          list << __view(from, i - from)
          skipped = true
          from = i + 1
          count += 1
        end
        i += 1
      end
    elsif text.bytesize == 0
      while i < n
        width = __width(i)
        list << __view(i, width)
        i += width
        from = i
        count += 1
        break if most > 0 && most <= count
      end
    else
      while i < n
        i = __find(text, i)
        break if i < 0

        list << __view(from, i - from)
        i += text.bytesize
        from = i
        count += 1
        break if most > 0 && most <= count
      end
    end
    list << __view(from, n - from) if n > from || most != 0
    if most == 0
      list.pop while list.size > 0 && list.last.bytesize == 0
    end
    list
  end

  # What is between the matches of a Regexp.
  def __parts_between(pattern, most)
    list = []
    n = bytesize
    return list if n == 0

    if most == 1
      list << __view(0, n)
      return list
    end

    __matching(pattern)
    count = 1
    # where the part begins, and where the next match is looked for
    from = 0
    i = 0
    empty = false
    while i <= n
      to = __match_end(pattern.__table, i, false)
      break if to < 0

      at = __match_start(pattern.__reverse_table, i, to)
      if at == i && to == i && !empty
        # an empty match is one behind the next character
        i += i == n ? 1 : __width(i)
        empty = true
        next
      end
      if at == i && to == i
        list << __view(from, i - from)
        from = i
      else
        list << __view(from, at - from)
        from = to
        i = to
      end
      if pattern.__groups?
        k = 1
        while k <= pattern.__groups
          part = __group_at(pattern, at, to, k)
          list << part unless part.nil?
          k += 1
        end
      end
      empty = false
      count += 1
      break if most > 0 && most <= count
    end
    list << __view(from, n - from) if n > from || most != 0
    if most == 0
      list.pop while list.size > 0 && list.last.bytesize == 0
    end
    list
  end

  def each_line(_newlines = (default = true), chomp: false)
    __line_form unless default
    i = 0
    while i < bytesize
      n = __line_after(i)
      yield(__view(i, (chomp ? __newline(i, n) : n) - i))
      i = n
    end
    self
  end

  def lines(_newlines = (none = true), chomp: false)
    __line_form unless none
    list = []
    each_line(chomp: chomp) { |line| list << line }
    list
  end

  # Interpolation: this literal, and then other Strings.
  def __join1(a)
    state = __joined(__state, a.__state)
    __disagree if state < 0
    n = bytesize
    all = n + a.bytesize
    made = __string(all)
    made.__fill(0, self)
    made.__fill(n, a)
    made.__coded(all, state > 3 ? state - 2 : state)
  end

  def __join2(a, b)
    state = __joined(__joined(__state, a.__state), b.__state)
    __disagree if state < 0
    n = bytesize
    m = n + a.bytesize
    all = m + b.bytesize
    made = __string(all)
    made.__fill(0, self)
    made.__fill(n, a)
    made.__fill(m, b)
    made.__coded(all, state > 3 ? state - 2 : state)
  end

  def __join3(a, b, c)
    state = __joined(__joined(__joined(__state, a.__state), b.__state), c.__state)
    __disagree if state < 0
    n = bytesize
    m = n + a.bytesize
    l = m + b.bytesize
    all = l + c.bytesize
    made = __string(all)
    made.__fill(0, self)
    made.__fill(n, a)
    made.__fill(m, b)
    made.__fill(l, c)
    made.__coded(all, state > 3 ? state - 2 : state)
  end

  def __join4(a, b, c, d)
    state = __joined(__joined(__joined(__joined(__state, a.__state), b.__state), c.__state), d.__state)
    __disagree if state < 0
    n = bytesize
    m = n + a.bytesize
    l = m + b.bytesize
    k = l + c.bytesize
    all = k + d.bytesize
    made = __string(all)
    made.__fill(0, self)
    made.__fill(n, a)
    made.__fill(m, b)
    made.__fill(l, c)
    made.__fill(k, d)
    made.__coded(all, state > 3 ? state - 2 : state)
  end

  # What a String must be so that a Regexp can be matched with it.
  def __matching(pattern)
    unless __code == 1 || ascii_only?
      __binary_form if __encoding == 2
      __argument_error(:"invalid byte sequence in US-ASCII") if __encoding == 3
      __argument_error(:"invalid byte sequence in UTF-8") unless valid_encoding?
      __ascii_form if pattern.__ascii?
    end
    nil
  end

  # The byte of a character, counted from the end if it is negative; -1: beyond the text.
  def __begin_at(at)
    n = __int(at)
    n += size if n < 0
    n < 0 ? -1 : __offset(n)
  end

  def match?(pattern, from = 0)
    __pattern_form unless pattern.is_a?(Regexp)
    i = __begin_at(from)
    return false if i < 0

    __matching(pattern)
    __match_end(pattern.__table, i, true) >= 0
  end

  def =~(pattern)
    pattern.__pattern_form unless pattern.is_a?(Regexp)
    __matching(pattern)
    i = __found_at(pattern, 0)
    i < 0 ? nil : __count(i)
  end

  def match(pattern, from = 0)
    pattern.__pattern_form unless pattern.is_a?(Regexp)
    i = __begin_at(from)
    return nil if i < 0

    __matching(pattern)
    to = __match_end(pattern.__table, i, false)
    return nil if to < 0

    found = MatchData.__make(self, __spans(pattern, __match_start(pattern.__reverse_table, i, to), to), pattern.__group_names)
    block_given? ? yield(found) : found
  end

  # Where a match and its groups begin and end.
  def __spans(pattern, from, to)
    list = [from, to]
    k = 1
    while k <= pattern.__groups
      list << __match_slot(pattern.__captures_table, from, to, 2 * k) << __match_slot(pattern.__captures_table, from, to, 2 * k + 1)
      k += 1
    end
    list
  end

  def !~(pattern)
    pattern.__pattern_form unless pattern.is_a?(Regexp)
    !match?(pattern)
  end

  # Each match, by where it begins and ends.
  def __each_match(pattern)
    i = 0
    while i <= bytesize
      to = __match_end(pattern.__table, i, false)
      break if to < 0

      from = __match_start(pattern.__reverse_table, i, to)
      yield(from, to)
      i = to
      i += to < bytesize ? __width(to) : 1 if from == to
    end
    nil
  end

  def scan(pattern)
    pattern.__pattern_form unless pattern.is_a?(Regexp)
    __matching(pattern)
    if block_given?
      if pattern.__groups?
        __each_match(pattern) { |from, to| yield(__groups(pattern, from, to)) }
      else
        __each_match(pattern) { |from, to| yield(__view(from, to - from)) }
      end
      return self
    end
    list = []
    if pattern.__groups?
      __each_match(pattern) { |from, to| list << __groups(pattern, from, to) }
    else
      __each_match(pattern) { |from, to| list << __view(from, to - from) }
    end
    list
  end

  # The groups of a match, as a list.
  def __groups(pattern, from, to)
    list = []
    k = 1
    while k <= pattern.__groups
      list << __group_at(pattern, from, to, k)
      k += 1
    end
    list
  end

  # A group of a match; nil if it took no part.
  def __group_at(pattern, from, to, k)
    i = __match_slot(pattern.__captures_table, from, to, 2 * k)
    i < 0 ? nil : __view(i, __match_slot(pattern.__captures_table, from, to, 2 * k + 1) - i)
  end

  # `text[/…/]` and `text[/…/, n]`
  def __matched(pattern, group, start = 0)
    __matching(pattern)
    to = __match_end(pattern.__table, start, false)
    return nil if to < 0

    from = __match_start(pattern.__reverse_table, start, to)
    return __view(from, to - from) if group == 0
    return nil unless pattern.__groups?

    k = group
    if k < 0
      k += pattern.__groups + 1
      return nil if k <= 0
    end
    k > pattern.__groups ? nil : __group_at(pattern, from, to, k)
  end

  # `$1`, after a match of this text with a Regexp: the first one from a byte on.
  def __nth_part(pattern, group, start)
    __no_match_form unless pattern.is_a?(Regexp)
    __matched(pattern, group, start)
  end

  # The byte of this text at which a part of it begins.
  def __place_of(part)
    part.is_a?(String) ? part.__first_byte - __first_byte : 0
  end

  # The last match after a call of this with an argument, which finds the first match: its Regexp, its text.
  def __seen(pattern, last)
    return last unless pattern.is_a?(Regexp) || pattern.is_a?(String)

    pattern.is_a?(Regexp) ? pattern : :unknown
  end

  def __seen_text(pattern, last)
    pattern.is_a?(Regexp) ? self : last
  end

  # The same after a call that may leave another match.
  def __lost(pattern, last)
    pattern.is_a?(Regexp) || pattern.is_a?(String) ? :unknown : last
  end

  # Where the first match from a byte on begins, or -1.
  def __found_at(pattern, from)
    to = __match_end(pattern.__table, from, false)
    to < 0 ? -1 : __match_start(pattern.__reverse_table, from, to)
  end

  def empty?
    bytesize == 0
  end

  def getbyte(index)
    i = __int(index)
    i += bytesize if i < 0
    return nil if __doubt(i < 0 || i >= bytesize)

    __byte(i)
  end

  def ord
    __argument_error(:"empty string") if bytesize == 0
    a = __byte(0)
    return a if a < 0x80 || __encoding == 2

    __argument_error(:"invalid byte sequence in US-ASCII") if __encoding == 3
    n = __width(0)
    __argument_error(:"invalid byte sequence in UTF-8") if n == 1
    __char_at(0, n)
  end

  def each_byte
    i = 0
    while i < bytesize
      yield(__byte(i))
      i += 1
    end
    self
  end

  def each_char
    i = 0
    while i < bytesize
      width = __width(i)
      yield(__view(i, width))
      i += width
    end
    self
  end

  def dup
    __copy
  end

  def clone(freeze: nil)
    __freeze_form unless freeze.nil? || freeze == true || freeze == false
    copy = __copy
    freeze == true || (freeze.nil? && __frozen?) ? copy.__as_frozen : copy
  end

  # Other variables may hold the same String, and would not see that it is frozen.
  def freeze
    __freezes_text unless __frozen?
    self
  end

  def bytes
    list = []
    each_byte { |byte| list << byte }
    list
  end

  def chars
    list = []
    each_char { |char| list << char }
    list
  end

  def __each_byte_with_index(start = 0)
    i = start - 1
    each_byte { |byte| yield(byte, i += 1) }
  end

  def __each_char_with_index(start = 0)
    i = start - 1
    each_char { |char| yield(char, i += 1) }
  end

  # What iterators without a block give one after the other.
  def __list_each_line(_newlines = (none = true), chomp: false)
    __line_form unless none
    lines(chomp: chomp)
  end

  def __list_each_byte
    bytes
  end

  def __list_each_char
    chars
  end

  def [](at, length = (one = true))
    if at.is_a?(Regexp)
      return __matched(at, 0) if one

      at.__group_form if length.is_a?(String)
      if length.is_a?(Symbol)
        k = at.__group_named(length)
        __no_group if k < 0
        return __matched(at, k)
      end
      __matched(at, __c_int(length))
    elsif at.is_a?(Range) && one
      n = size
      from = __from(at, n)
      to = __stop(at, n)
      return nil if __doubt(from < 0 || from > n)

      i = __offset(from)
      to <= from ? __view(i, 0) : __view(i, __offset(to) - i)
    elsif at.is_a?(String) && one
      include?(at) ? at.__view(0, at.bytesize) : nil
    elsif one
      n = __int(at)
      n += size if n < 0
      return nil if __doubt(n < 0)

      i = __offset(n)
      return nil if __doubt(i < 0 || i >= bytesize)

      __view(i, __width(i))
    else
      n = __int(at)
      m = __int(length)
      n += size if n < 0
      return nil if __doubt(m < 0 || n < 0)

      i = __offset(n)
      return nil if __doubt(i < 0)

      stop = m > bytesize ? -1 : __offset(n + m)
      __view(i, (stop < 0 ? bytesize : stop) - i)
    end
  end

  alias slice []

  def codepoints
    list = []
    each_char { |char| list << char.ord }
    list
  end

  # Where a Range begins among `n`.
  def __from(range, n)
    from = range.begin.nil? ? 0 : __int(range.begin)
    from < 0 ? from + n : from
  end

  # Where a Range has ended among `n`.
  def __stop(range, n)
    to = range.end.nil? ? n : __int(range.end)
    to += n if to < 0
    return n if to >= n

    range.exclude_end? ? to : to + 1
  end

  def byteslice(at, length = (one = true))
    if one && at.is_a?(Range)
      from = __from(at, bytesize)
      to = __stop(at, bytesize)
      return nil if __doubt(from < 0 || from > bytesize)

      __view(from, to <= from ? 0 : to - from)
    elsif one
      i = __int(at)
      i += bytesize if i < 0
      return nil if __doubt(i < 0 || i >= bytesize)

      __view(i, 1)
    else
      i = __int(at)
      n = __int(length)
      i += bytesize if i < 0
      return nil if __doubt(n < 0 || i < 0 || i > bytesize)

      __view(i, n > bytesize - i ? bytesize - i : n)
    end
  end

  def include?(other)
    text = __text(other)
    __disagree unless __agrees?(text)
    text.valid_encoding? && __find(text, 0) >= 0
  end

  def index(other, from = 0)
    if other.is_a?(Regexp)
      i = __begin_at(from)
      return nil if i < 0

      __matching(other)
      i = __found_at(other, i)
      return i < 0 ? nil : __count(i)
    end
    n = __int(from)
    text = __text(other)
    n += size if n < 0
    return nil if n < 0

    i = __offset(n)
    return nil if i < 0

    __disagree unless __agrees?(text)
    return nil unless text.valid_encoding?

    i = __find(text, i)
    i < 0 ? nil : __count(i)
  end

  def rindex(other, from = (none = true))
    __backwards_form if other.is_a?(Regexp)
    last = size
    n = none ? last : __int(from)
    text = __text(other)
    n += last if n < 0
    return nil if n < 0

    __disagree unless __agrees?(text)
    __broken unless valid_encoding?
    return nil unless text.valid_encoding?

    n = __find_last(text, n)
    n < 0 ? nil : n
  end

  def start_with?(prefix = (none = true), *more)
    return false if none
    return true if __starts?(prefix)

    more.each { |other| return true if __starts?(other) }
    false
  end

  def __starts?(prefix)
    if prefix.is_a?(Regexp)
      __matching(prefix)
      return __match_end(prefix.__anchored_table, 0, true) >= 0
    end
    text = __text(prefix)
    __disagree unless __agrees?(text)
    # whether a part of a character counts differs between Rubies
    __broken unless text.valid_encoding?
    text.bytesize <= bytesize && __at?(0, text)
  end

  def end_with?(suffix = (none = true), *more)
    return false if none
    return true if __ends?(suffix)

    more.each { |other| return true if __ends?(other) }
    false
  end

  def __ends?(suffix)
    text = __text(suffix)
    __disagree unless __agrees?(text)
    return true if text.bytesize == 0

    i = bytesize - text.bytesize
    i >= 0 && __head?(i) && __at?(i, text)
  end

  def chr
    bytesize == 0 ? __view(0, 0) : __view(0, __width(0))
  end

  def delete_prefix(prefix)
    text = __text(prefix)
    __disagree unless __agrees?(text)
    __broken unless text.valid_encoding?
    return __view(0, bytesize) if text.bytesize > bytesize || !__at?(0, text)

    __view(text.bytesize, bytesize - text.bytesize)
  end

  def delete_suffix(suffix)
    text = __text(suffix)
    __disagree unless __agrees?(text)
    i = bytesize - text.bytesize
    __broken unless text.valid_encoding?
    return __view(0, bytesize) if i < 0 || !__head?(i) || !__at?(i, text)

    __view(0, i)
  end

  # As Ruby's own: spaces, a sign, a prefix that fits the base, digits with single underscores between them, and then
  # anything.
  def to_i(base = 10)
    radix = __c_int(base)
    raise ArgumentError, "invalid radix #{radix}" if radix < 0 || radix == 1 || radix > 36

    __digits_of(radix)
  end

  def oct
    __digits_of(-8)
  end

  # The number at its beginning. A negative base is that of digits without a prefix.
  def __digits_of(base)
    i = __after_sign
    minus = i > 0 && __byte(i - 1) == 45
    radix = __radix(i, base)
    i += 2 if __prefix?(i, radix)
    n = 0
    digit = false
    while i < bytesize
      b = __byte(i)
      d = __digit(b)
      if d < radix
        n = n * radix - d
        digit = true
      elsif b == 95 && digit
        digit = false
      else
        break
      end
      i += 1
    end
    minus ? n : -n
  end

  def hex
    to_i(16)
  end

  # What `Integer` makes of it; nil where that raises.
  def __integer(base)
    raise ArgumentError, "invalid radix #{base}" if base == 1 || base == -1 || base > 36 || base < -36

    i = __after_sign
    minus = i > 0 && __byte(i - 1) == 45
    radix = __radix(i, base)
    i += 2 if __prefix?(i, radix)
    n = 0
    digit = false
    while i < bytesize
      b = __byte(i)
      d = __digit(b)
      if d < radix
        n = n * radix - d
        digit = true
      elsif b == 95 && digit
        digit = false
      else
        break
      end
      i += 1
    end
    return nil unless digit

    i += 1 while i < bytesize && __space?(i)
    return nil if i < bytesize

    minus ? n : -n
  end

  def to_f
    i = __after_sign
    # without a sign Ruby reads no hexadecimal digits here
    return 0.0 if __prefix?(i, 16) && (i == 0 || (__byte(i - 1) != 43 && __byte(i - 1) != 45))

    f = __float(false)
    f.nil? ? 0.0 : f
  end

  # The number at its beginning, to the nearest Float; nil where `strict` and anything else is there.
  def __float(strict)
    i = 0
    if strict
      while i < bytesize
        __argument_error(:"string for Float contains null byte") if __byte(i) == 0
        i += 1
      end
    end
    i = __after_sign
    minus = i > 0 && __byte(i - 1) == 45
    __hexadecimal if __prefix?(i, 16)
    from = i
    # the first digits as a number, how many there are, and how many digits there are behind the point
    n = 0
    digits = 0
    all = 0
    places = 0
    point = false
    after = false
    while i < bytesize
      b = __byte(i)
      if b >= 48 && b <= 57
        if digits > 0 || b > 48
          n = n * 10 + (b - 48) if digits < 15
          digits += 1
        end
        all += 1
        places += 1 if point
        after = true
      elsif b == 95 && after && __figure?(i + 1)
        after = true
      elsif b == 46 && !point && __figure?(i + 1)
        return nil if strict && i > from && __byte(i - 1) == 95

        point = true
        after = false
      else
        break
      end
      i += 1
    end
    any = all > 0
    __many_digits if all > 50
    last = i
    i += 1 if any && i < bytesize && __byte(i) == 46 && !point && __ruby_reads_points
    power = -places
    if any && i + 1 < bytesize && (__byte(i) | 32) == 101
      j = i + 1
      down = __byte(j) == 45
      j += 1 if down || __byte(j) == 43
      if __figure?(j)
        e = 0
        while __figure?(j) || (j < bytesize && __byte(j) == 95 && __figure?(j + 1))
          e = e * 10 + (__byte(j) - 48) if e < 20_000 && __byte(j) != 95
          j += 1
        end
        power += down ? -e : e
        i = j
      end
    end
    if strict
      return nil unless any

      i += 1 while i < bytesize && __space?(i)
      return nil if i < bytesize
    end
    f = if digits == 0
      0.0
    elsif digits <= 15 && power >= -22 && power <= 22
      # both are Floats, so that it is rounded once
      scale = 1.0
      k = power < 0 ? -power : power
      while k > 0
        scale *= 10.0
        k -= 1
      end
      power < 0 ? n.to_f / scale : n.to_f * scale
    elsif power + digits > 310
      Float::INFINITY
    elsif power + digits < -330
      0.0
    else
      __nearest(from, last, power)
    end
    # a sign without a digit is no number
    minus && any ? -f : f
  end

  # The Float nearest to the digits between two bytes times a power of ten. It is found by long multiplication and
  # division of Integers in pieces of 30 bits, the lowest first.
  def __nearest(from, last, power)
    pieces = __build(60) { |_| 0 }
    used = 0
    sticky = false
    i = from
    while i < last
      d = __byte(i) - 48
      used = pieces.__scale(used, 10, d) if d >= 0 && d <= 9
      i += 1
    end
    while power > 0
      step = power < 9 ? power : 9
      used = pieces.__scale(used, 10**step, 0)
      power -= step
    end
    shift = 0
    if power < 0
      # as many zeros behind it as leave 64 bits and more
      moved = (-power * 3322 / 1000 + 64) / 30 + 1
      shift = moved * 30
      j = used - 1
      while j >= 0
        pieces.__put(j + moved, pieces.__at(j))
        j -= 1
      end
      j = 0
      while j < moved
        pieces.__put(j, 0)
        j += 1
      end
      used += moved
      while power < 0
        step = power > -9 ? -power : 9
        unit = 10**step
        rest = 0
        j = used - 1
        while j >= 0
          part = (rest << 30) | pieces.__at(j)
          pieces.__put(j, part / unit)
          rest = part % unit
          j -= 1
        end
        sticky = true if rest != 0
        power += step
      end
      used -= 1 while used > 0 && pieces.__at(used - 1) == 0
    end
    bits = (used - 1) * 30 + pieces.__at(used - 1).bit_length
    # below the least normal Float there is less room
    room = bits - shift < -1021 ? bits - shift + 1074 : 53
    return 0.0 if room < 0

    drop = bits - room
    n = 0
    j = used - 1
    while j >= 0
      low = j * 30
      piece = pieces.__at(j)
      if low >= drop
        n = (n << 30) | piece
      elsif low + 30 > drop
        n = (n << (low + 30 - drop)) | (piece >> (drop - low))
      end
      j -= 1
    end
    return Math.ldexp(n.to_f, -shift) if drop <= 0

    at = drop - 1
    half = pieces.__at(at / 30) >> at % 30 & 1
    sticky = true if pieces.__at(at / 30) & ((1 << at % 30) - 1) != 0
    j = at / 30 - 1
    while j >= 0
      sticky = true if pieces.__at(j) != 0
      j -= 1
    end
    n += 1 if half == 1 && (sticky || n.odd?)
    Math.ldexp(n.to_f, drop - shift)
  end
end

class Array
  # Multiplies a number in pieces of 30 bits, of which so many are used, by a factor of up to 30 bits, and adds
  # something smaller. Gives how many are used then.
  def __scale(used, factor, plus)
    i = 0
    while i < used
      n = __at(i) * factor + plus
      __put(i, n & 0x3fff_ffff)
      plus = n >> 30
      i += 1
    end
    return used if plus == 0

    __put(used, plus)
    used + 1
  end
end
