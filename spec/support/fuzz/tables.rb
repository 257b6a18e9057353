# frozen_string_literal: true

module Fuzz
  # The language as tables: how an expression of a type is made of others, and how often.
  module Tables
    # Difficult values, and ordinary ones.
    LITERALS = {
      int: %w[0 1 2 3 5 7 10 (-1) (-2) (-3) 100 (-100) 255],
      small: %w[0 1 2 3 4 5 6 7],
      tiny: %w[0 1 2 3],
      float: %w[0.0 1.0 0.5 1.5 2.5 (-1.0) (-0.5) 3.25 0.1 10.0 100.0],
      sym: %w[:a :b :up],
      bool: %w[true false],
      any: %w[nil true false :a :b 0 1 (-1) 2.5 0.0]
    }.freeze
    HURTING = {
      int: %w[9223372036854775807 (-9223372036854775808) 4611686018427387904 4611686018427387903 (-4611686018427387904) 2147483648 4294967295 (-2147483649) 9007199254740993 63 64 (-64)],
      float: %w[(-0.0) Float::NAN Float::INFINITY (-Float::INFINITY) Float::MAX Float::MIN Float::EPSILON 5.0e-324 9007199254740993.0 9.223372036854775807e18 (-9.3e18) 1.0e16 0.30000000000000004]
    }.freeze

    # { types } are holes. `{small}` is an Integer from 0 to 7, and `{tiny}` from 0 to 3, so that powers and shifts stay
    # small. `{wild}` may depend on the last bits of libm. So no branch, index or Integer is made of it.
    EXPRESSIONS = <<~TABLE
      int 8 ({int} + {int})
      int 8 ({int} - {int})
      int 5 ({int} * {small})
      int 2 ({int} * {int})
      int 3 ({int} / {nonzero})
      int 3 ({int} % {nonzero})
      int 1 ({int} / {int})
      int 1 ({int} % {int})
      int 1 ({small} ** {tiny})
      int 1 ({int} ** {tiny})
      int 1 ({int} ** {small})
      int 1 ({int} ** 2)
      int 1 ({small} ** ({tiny} - 1))
      int 3 ({int} & {int})
      int 2 ({int} | {int})
      int 2 ({int} ^ {int})
      int 1 ({int} << {small})
      int 1 ({int} << (-{small}))
      int 1 ({int} >> {small})
      int 1 ({int} >> ({small} * 16))
      int 1 (({int} * {int}) & 0xffff)
      int 1 ((({int} * 6364136223846793005 + {int}) & 0x7fffffffffffffff) >> 33)
      int 1 (({int} * {int}) % {nonzero})
      int 1 (({int} * 1103515245 + 12345) % 2147483648)
      int 1 (({int} * {int} - {int}) % {nonzero})
      int 1 ({int} & 0xffff_ffff_ffff_ffff)
      int 1 ((({int} * 0x9e37_79b9_7f4a_7c15 + {int}) & 0xffff_ffff_ffff_ffff) >> 3)
      int 1 ((({int} ^ ({int} & 0xffff_ffff_ffff_ffff) >> 7) * {int} & 0xffff_ffff_ffff_ffff) & 0xffff)
      int 1 (((({int} << 13) | {int}) & 0xffff_ffff_ffff_ffff) >> {small})
      int 1 (-{int})
      int 1 (~{int})
      int 1 (+{int})
      int 1 {int}.abs
      int 1 {int}.magnitude
      int 1 {int}.succ
      int 1 {int}.pred
      int 1 {int}.bit_length
      int 1 {int}.gcd({int})
      int 1 {int}.lcm({small})
      int 1 {int}.div({nonzero})
      int 1 {int}.modulo({nonzero})
      int 1 {int}.remainder({nonzero})
      int 1 {int}.pow({small}, {nonzero})
      int 1 {int}.pow({tiny})
      int 1 {float}.div({nonzero})
      int 1 {float}.to_i
      int 1 {float}.floor
      int 1 {float}.ceil
      int 1 {float}.round
      int 1 {float}.truncate
      int 1 {num}.to_i
      int 1 {int}.round(-{tiny})
      int 1 {int}.floor(-1)
      int 1 {int}.ceil(-2)
      int 1 {int}.clamp({small}, 100)
      int 1 {int}.clamp(-5, {small})
      int 1 {int}.clamp(0..{small})
      int 1 [{int}, {int}].min
      int 1 [{int}, {int}].max
      int 1 [{int}, {int}].sum
      int 1 {int}[{small}]
      int 1 ({int} <=> {int})
      int 4 ({bool} ? {int} : {int})
      int 1 (if {bool} then {int} else {int} end)
      int 1 (case {int} when 0, 1 then {int} when 2..{small} then {int} else {int} end)
      int 1 Integer.sqrt({int}.abs)
      int 1 {int}.numerator
      int 1 {int}.ord
      int 1 {int}.to_i
      int 1 {int}.itself
      int 1 ({int}.nonzero? || {int})
      int 1 ({any}.nil? ? {int} : {int})
      int 1 nil.to_i
      nonzero 4 2
      nonzero 2 3
      nonzero 2 7
      nonzero 2 10
      nonzero 1 (-3)
      nonzero 1 (-1)
      nonzero 2 ({int} | 1)
      nonzero 1 ({small} + 1)
      small 3 ({int} & 7)
      small 1 ({int} % 5)
      small 1 ({small} & {small})
      tiny 2 ({int} & 3)
      tiny 1 ({int} % 3)
      float 8 ({float} + {float})
      float 6 ({float} - {float})
      float 6 ({float} * {float})
      float 4 ({float} / {float})
      float 3 ({float} + {int})
      float 3 ({int} * {float})
      float 2 ({int} - {float})
      float 2 ({float} / {int})
      float 1 ({int} / {float})
      float 2 ({float} % {float})
      float 1 ({int} % {float})
      float 1 (-{float})
      float 1 {float}.abs
      float 2 {int}.to_f
      float 1 {num}.to_f
      float 1 nil.to_f
      float 2 {int}.fdiv({int})
      float 1 {int}.fdiv({float})
      float 1 {float}.fdiv({float})
      float 1 {float}.modulo({float})
      float 1 {float}.remainder({float})
      float 1 {float}.quo({float})
      float 1 {float}.round(1)
      float 1 {float}.round(2)
      float 1 {float}.floor(1)
      float 1 {float}.ceil(2)
      float 1 {float}.truncate(1)
      float 1 {float}.next_float
      float 1 {float}.prev_float
      float 2 Math.sqrt({float}.abs)
      float 1 Math.sqrt({int} & 1023)
      float 1 [{float}, {float}].min
      float 1 [{float}, {float}].max
      float 1 {float}.clamp(-1.5, 2.5)
      float 4 ({bool} ? {float} : {float})
      float 1 (unless {bool} then {float} else {float} end)
      num 4 ({bool} ? {int} : {float})
      num 2 ({num} + {num})
      num 2 ({num} - {num})
      num 1 ({num} * {small})
      num 1 ({num} / {nonzero})
      num 1 ({num} % {nonzero})
      num 1 (-{num})
      num 1 {num}.abs
      num 1 {num}.clamp({small}, 9.5)
      num 3 {int}
      num 3 {float}
      bool 4 ({int} < {int})
      bool 3 ({int} > {int})
      bool 2 ({int} <= {int})
      bool 2 ({int} >= {int})
      bool 3 ({int} == {int})
      bool 2 ({int} != {int})
      bool 3 ({float} < {float})
      bool 2 ({float} >= {float})
      bool 1 ({float} == {float})
      bool 1 ({float} != {float})
      bool 2 ({num} < {num})
      bool 2 ({num} == {num})
      bool 1 ({int} > {float})
      bool 1 ({float} <= {int})
      bool 1 {int}.even?
      bool 1 {int}.odd?
      bool 1 {int}.zero?
      bool 1 {num}.positive?
      bool 1 {num}.negative?
      bool 1 {float}.nan?
      bool 1 {num}.finite?
      bool 1 {num}.integer?
      bool 1 {num}.zero?
      bool 1 {int}.between?({int}, {int})
      bool 1 {num}.between?({num}, {num})
      bool 1 {int}.eql?({num})
      bool 1 {small}.equal?({small})
      bool 1 {int}.allbits?({small})
      bool 1 {int}.anybits?({small})
      bool 1 {int}.nobits?({small})
      bool 1 ({small}..{int}).include?({int})
      bool 1 (1...{small}).cover?({num})
      bool 1 ({any} == {any})
      bool 1 ({any} != {any})
      bool 2 {any}.nil?
      bool 1 {any}.is_a?(Integer)
      bool 1 {any}.is_a?(Numeric)
      bool 1 {any}.is_a?(Symbol)
      bool 1 {any}.instance_of?(Float)
      bool 1 (Comparable === {any})
      bool 1 (Integer === {any})
      bool 1 ({sym} == {sym})
      bool 1 ({sym} != {any})
      bool 3 ({bool} && {bool})
      bool 3 ({bool} || {bool})
      bool 1 ({bool} and {bool})
      bool 1 ({bool} or not {bool})
      bool 1 ({bool} & {bool})
      bool 1 ({bool} | {bool})
      bool 1 ({bool} ^ {bool})
      bool 2 !{bool}
      bool 1 (!{any})
      bool 1 {int}.respond_to?(:even?)
      bool 1 {any}.respond_to?(:abs)
      sym 2 ({bool} ? {sym} : {sym})
      sym 1 (case {any} when nil then :none when true, false then :flag when Integer, Float then :number else :other end)
      sym 1 (case {num} when Integer then {sym} else {sym} end)
      any 3 {int}
      any 3 {float}
      any 2 {sym}
      any 2 {bool}
      any 2 ({bool} ? {any} : {any})
      any 2 ({any} || {any})
      any 2 ({any} && {any})
      any 1 (if {bool} then {any} end)
      any 1 (unless {bool} then {any} end)
      any 1 (case {any} when nil then {any} when Float then {any} end)
      any 1 ({int} <=> {any})
      any 1 ({float} <=> {float})
      any 1 {float}.infinite?
      any 1 {num}.nonzero?
      any 1 {any}.itself
      any 1 (while {bool} do break {any} end)
      wild 2 Math.sin({float})
      wild 2 Math.cos({float})
      wild 1 Math.tan({float})
      wild 1 Math.atan({float})
      wild 1 Math.atan2({float}, {float})
      wild 1 Math.exp({float})
      wild 1 Math.log({float}.abs)
      wild 1 Math.log({float})
      wild 1 Math.log2({float}.abs)
      wild 1 Math.log10({small} + 1)
      wild 1 Math.cbrt({float})
      wild 1 Math.hypot({float}, {float})
      wild 1 Math.tanh({float})
      wild 1 Math.sinh({float})
      wild 1 Math.erf({float})
      wild 1 Math.asin({float})
      wild 1 ({float} ** {float})
      wild 1 ({float}.abs ** {float})
      wild 1 ({int}.abs ** {float})
      wild 1 ({float} ** {int})
      wild 1 ({wild} * {float})
      wild 1 (-{wild})
      wild 1 {wild}.abs
    TABLE

    # The most runs of a piece of code.
    MAX_WORK = 3_000

    # For each type, other types whose values are of that type, too.
    FITS = {
      int: %i[int small], small: %i[small], float: %i[float], num: %i[num int float], bool: %i[bool], sym: %i[sym],
      str: %i[str], any: %i[any num int float bool sym small], tiny: [], nonzero: [], wild: [], list: %i[list ints], loose: %i[list ints], fresh: [], mixed: %i[mixed bag],
      spot: %i[spot], pair: %i[pair]
    }.freeze

    # Lines of a table: [type, weight, template in Node's form, types of its holes]. Holes that begin with `*` can use
    # the parameters of the template's block.
    def self.parse(table)
      table.lines.map do |line|
        type, weight, template = line.strip.split(" ", 3)
        [type.to_sym, weight.to_i, template.gsub(/\{\*?\w+\}/, "{}"), template.scan(/\{(\*?\w+)\}/).flatten.map(&:to_sym)]
      end
    end

    # Types of values that replace one of another type, in a program that is meant to raise.
    TYPES = %i[int float num bool sym any].freeze

    # Operators of `op=`, with the type of the value.
    ASSIGNMENTS = {
      int: [["+=", :int], ["-=", :int], ["*=", :small], ["&=", :int], ["|=", :int], ["^=", :int], ["/=", :nonzero], ["%=", :nonzero], ["<<=", :tiny], [">>=", :small], ["**=", :tiny], ["&&=", :int]],
      float: [["+=", :float], ["-=", :float], ["*=", :float], ["/=", :float], ["+=", :int], ["%=", :float]],
      num: [["+=", :num], ["-=", :num], ["*=", :small]],
      bool: [["&&=", :bool], ["||=", :bool], ["&=", :bool], ["|=", :bool], ["^=", :bool]],
      any: [["||=", :any], ["&&=", :any]],
      sym: [],
      str: []
    }.freeze
  end
end
