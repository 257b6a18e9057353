# frozen_string_literal: true

# Programs that pass values to every kind of parameter list in every way: by `yield`, to procs, lambdas and methods, by
# iterators, and in assignments. Each is a lambda.
module ParameterCases
  # Arguments after `yield`, `call` and a method's name.
  GIVEN = ["", "1", "1, 2", "1, 2, 3", "1, 2, 3, 4", "[7]", "[7, 8]", "[7, 8, 9]", "[5, 6, 7, 8, 9]", "nil", "1.5", "[[1, 2], [3, 4]]",
           "[7, 8], 1", "1, [7, 8]"].freeze
  ASSIGNED = ["z", "1.5", "nil", "[7]", "[7, 8, 9]", "1, 2", "1, 2, 3, 4", "[[1, 2], [3, 4]]", "*[1, 2, 3]"].freeze
  NESTED = ["(a, b)", "(a, *b)", "(*a, b)", "(*a, b, c)", "(a, *b, c)", "a, (b, c)", "(a, b), c", "(a, (b, c)), d", "(*a, b), *c, d", "a, *", "*, a",
            "a, *, b", "a, (b, *)", "*a, (b, c)", "a = 90, (b, c)", "*", "a,"].freeze
  HASH = { 1 => 2, 3 => 4 }.freeze
  # `BLOCK` is a block whose value is seen. `NOTES |` begins one that notes its arguments in `r`.
  ITERATORS = [
    "[1, 2].map BLOCK", "[[1, 2], [3, 4]].map BLOCK", "[[1], [3, 4, 5, 6, 7]].map BLOCK", "(1..2).map BLOCK", "Array.new(2) BLOCK",
    "[5, 6].each_with_index.map BLOCK", "[5, 6].map.with_index BLOCK", "[[5, 6], [7, 8]].map.with_index BLOCK", "HASH.map BLOCK", "[1, 2].then BLOCK",
    "[[1, 2], [3]].each NOTES", "(1..2).each NOTES", "2.times NOTES", "1.upto(2) NOTES", "1.step(2) NOTES", "[5, 6].each_with_index NOTES",
    "[[5, 6], [7, 8]].each_with_index NOTES", "(5..6).each_with_index NOTES", "[5, 6].inject(1) NOTES", "[5, 6].each_with_object(0.5) NOTES",
    "[[5, 6], [7, 8]].each_with_object(0.5) NOTES", "[5, 6, 7].each_slice(2) NOTES", "[5, 6, 7].each_cons(2) NOTES", "[5, 6].zip([1, 2]) NOTES",
    "[5, 6].sort_by NOTES", "[5, 6].max NOTES", "[5, 6].min_by NOTES", "HASH.each NOTES", "HASH.each_pair NOTES", "HASH.count NOTES", "HASH.find NOTES",
    "HASH.sum NOTES", "HASH.each_with_index NOTES", "HASH.inject(0) NOTES", "HASH.min_by NOTES", "HASH.each_with_object(0.5) NOTES"
  ].freeze

  module_function

  # Lists of required, optional, splat and trailing parameters, in all numbers.
  def lists
    numbers = [0, 1, 2].product([0, 1, 2], [0, 1], [0, 1, 2]).select do |required, optional, rest, post|
      required + optional + rest + post <= 4 && (post == 0 || optional + rest > 0)
    end
    plain = numbers.map do |required, optional, rest, post|
      kinds = Array.new(required, "%s") + Array.new(optional) { |i| "%s = #{90 + i}" } + Array.new(rest, "*%s") + Array.new(post, "%s")
      kinds.zip("a".."d").map { |kind, name| format(kind, name) }.join(", ")
    end
    plain + NESTED
  end

  # The text of a program that gives an array of names and lambdas: one of so many cases, chosen by `random`, or all.
  def program(one_of, random)
    cases = lists.each_with_index.flat_map { |list, number| callers(list, number).map { |code| [list, code] } }
    cases = cases.sample(cases.size / one_of, random: random)
    lambdas = cases.map { |list, code| "[#{"|#{list}| in #{code}".inspect}, lambda { |z| #{code} }]" }
    "#{definitions}\n[\n#{lambdas.join(",\n")}\n]\n"
  end

  def definitions
    gives = GIVEN.each_with_index.map { |values, i| "def self.give#{i} = yield(#{values})" }
    takes = lists.each_with_index.filter_map { |list, i| "def self.take#{i}(#{list}) = #{answer(list)}" unless list.end_with?(",") }
    "module ParameterCases::Program\n#{(gives + takes).join("\n")}\nend\n"
  end

  def answer(list) = "[#{list.scan(/[a-z]/).join(", ")}]"

  def callers(list, number)
    block = "{ |#{list}| #{answer(list)} }"
    given = GIVEN.each_with_index.flat_map do |values, i|
      ["P.give#{i} #{block}", "proc #{block}.call(#{values})",
       *(["lambda #{block}.call(#{values})", "P.take#{number}(#{values})"] unless list.end_with?(","))]
    end
    iterated = ITERATORS.map do |code|
      notes = "{ |#{list}| r = #{answer(list)}; 1 }"
      code.end_with?("NOTES") ? "(r = nil; #{code.sub("NOTES", notes)}; r)" : code.sub("BLOCK", block)
    end
    (given + iterated + assignments(list)).map { |code| code.gsub("P.", "ParameterCases::Program.").gsub("HASH", "ParameterCases::HASH") }
  end

  def assignments(list)
    return [] if list.empty? || list.include?("=")

    targets = list.match?(/[,*]/) ? list : "#{list},"
    ASSIGNED.map { |value| "(#{targets} = #{value}; #{answer(list)})" }
  end
end
