# frozen_string_literal: true

# Generates programs of any length, for the benchmark of the compiler. `Generated.write(directory, kind, lines)` gives a
# file that defines `BLOCK`.
#
# [straight] One block. Each line is a new variable, computed from those before.
# [branches] One block of conditionals and loops over a variable for every ten lines.
# [methods] Methods of ten lines, each of which calls the one before.
# [iterators] The same methods, each with three iterators. Their blocks and methods are inlined.
module Generated
  KINDS = %i[straight branches methods iterators].freeze

  class << self
    def write(directory, kind, lines)
      path = File.join(directory, "#{kind}_#{lines}.rb")
      File.write(path, "# frozen_string_literal: true\n\n#{__send__(kind, lines).join("\n")}\n")
      path
    end

    private

    def straight(lines)
      body = Array.new(lines - 1) do |at|
        before = ->(back) { at >= back ? "v#{at - back}" : "x" }
        ["(#{before[1]} + #{at}) % 1009", "#{before[1]} * #{before[3]} % 9973", "#{before[2]} ^ #{at * 7}", "(#{before[1]} & 0xffff) + #{before[5]}"][at % 4]
          .then { |value| "  v#{at} = #{value} & 0xffff_ffff" }
      end
      ["BLOCK = proc do |x|", *body, "  v#{lines - 2}", "end"]
    end

    def branches(lines)
      variables = [lines / 10, 1].max
      body = Array.new(variables) { |at| "  v#{at} = x + #{at}" }
      at = 0
      while body.size < lines - 1
        a, b, c = 3.times.map { |step| "v#{(at * 7 + step * 3) % variables}" }
        body.concat(PIECES[at % PIECES.size].map { |line| format("  #{line}", a: a, b: b, c: c, n: at) })
        at += 1
      end
      ["BLOCK = proc do |x|", *body, "  v0", "end"]
    end

    PIECES = [
      ["if %{a} > %{n}", "  %{b} = (%{b} + %{c}) & 0xffff", "else", "  %{b} = %{a} & 0xffff", "end"],
      ["i%{n} = 0", "while i%{n} < 3", "  %{a} = (%{a} * 31 + i%{n}) %% 1009", "  i%{n} += 1", "end"],
      ["case %{a} %% 3", "when 0 then %{b} = 1", "when 1 then %{b} = (%{c} & 0xff) + 2", "else %{b} = %{n}", "end"],
      ["%{c} = %{a} > %{b} ? %{a} & 0xffff : %{b} & 0xffff"],
      ["2.times do |t|", "  next if t > %{a}", "  %{b} = (%{b} + t) & 0xffff", "end"]
    ].freeze

    def methods(lines)
      count = [lines / 10, 1].max
      methods = Array.new(count) do |at|
        call = at.zero? ? "x + 1" : "step#{at - 1}(x + 1)"
        ["  def self.step#{at}(x)", "    a = x * 3 % 1009", "    b = a + #{at}", "    if a > b", "      a = b & 0xff", "    else",
         "      b = a ^ #{at}", "    end", "    (a + b + #{call}) & 0xffff", "  end"]
      end
      ["module Steps", *methods.flatten, "end", "BLOCK = proc { |x| Steps.step#{count - 1}(x) }"]
    end

    def iterators(lines)
      count = [lines / 10, 1].max
      methods = Array.new(count) do |at|
        call = at.zero? ? "x + 1" : "step#{at - 1}(x + 1)"
        ["  def self.step#{at}(x)", "    a = (1..3).sum { |e| (e * x) & 0xff }", "    b = (0..4).count do |e|", "      e > a % #{at + 1}", "    end",
         "    (1..2).each_with_index do |e, i|", "      a = (a + e * i) & 0xffff", "    end", "    (a + b + #{call}) & 0xffff", "  end"]
      end
      ["module Steps", *methods.flatten, "end", "BLOCK = proc { |x| Steps.step#{count - 1}(x) }"]
    end
  end
end
