# frozen_string_literal: true

module Fuzz
  # Strings, which programs read and slice.
  module Strings
    LITERALS = %w["" "a" "abc" "banana" "12" "-7x" "zażółć" "日本" "an" "0x1f" "3.5e1"].freeze

    EXPRESSIONS = <<~'TABLE'
      str 3 ({str}[{tiny}, {small}] || "")
      str 1 ({str}[{int}] || {str})
      str 1 ({str}[{tiny}..-2] || {str})
      str 1 {str}.delete_prefix({str})
      str 1 {str}.delete_suffix({str})
      str 1 {str}.chr
      str 2 ({bool} ? {str} : {str})
      int 1 {str}.size
      int 1 {str}.bytesize
      int 1 {str}.to_i
      int 1 ({str}.index({str}) || {int})
      int 1 ({str}.rindex({str}) || -1)
      int 1 ({str}.getbyte({int}) || {int})
      int 1 ({str} <=> {str})
      int 1 {str}.ord
      float 1 {str}.to_f
      bool 1 ({str} == {str})
      bool 1 ({str} != {str})
      bool 1 ({str} < {str})
      bool 1 {str}.empty?
      bool 1 {str}.include?({str})
      bool 1 {str}.start_with?({str})
      bool 1 {str}.end_with?({str})
      bool 1 {str}.between?({str}, {str})
      bool 1 {str}.eql?({any})
      any 1 {str}[{int}]
      any 1 {str}[{str}]
      any 1 {str}.index({str})
      any 1 ({bool} ? {str} : {any})
      any 1 ({str} == {any})
      sym 1 (case {str} when "a", "abc" then :a when "" then :b else {sym} end)
    TABLE
  end
end
