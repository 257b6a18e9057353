# frozen_string_literal: true

# Random loops within jobs, whose repetitions may or may not depend on each other.
TEAMS = <<~'RUBY'
  seed, programs = ARGV.map { |number| Integer(number) }
  dice = Random.new(seed)
  pick = ->(*all) { all.sample(random: dice) }

  # A loop over `at`, which goes through a part of a row.
  around = lambda do |body|
    first, last, step = dice.rand(0..2), pick.("n", "n - 1", "n / 2"), pick.(1, 1, 1, 2, 3)
    pick.(
      "#{last}.times { |at| #{body} }",
      "#{first}.step(#{last} - 1, #{step}) { |at| #{body} }",
      "at = #{first}\n while at < #{last}\n #{body}\n at += #{step}\n end\n k += at",
      "at = #{first}\n loop do\n break if at >= #{last}\n #{body}\n at += #{step}\n end",
      "at = #{first}\n while true\n #{body}\n break if at >= #{last} - #{dice.rand(1..9)}\n at += 1\n break if at >= #{last}\n end\n k += at",
      "(#{first}..#{last} - 1).step(#{step}) { |at| #{body} }",
      "at = #{last} - 1\n while at >= #{first}\n #{body}\n at -= #{step}\n end",
      "#{first}.upto(#{last} - 1) { |at| #{body} }",
    )
  end
  # A place in the job's own part of an array, in rows or in columns.
  columns = false
  own = ->(at) { columns ? "(#{at}) * rows + job" : "job * w + #{at}" }
  place = -> { own.(pick.("at", "at", "at", "at + 1", "at + 2", "n - at", "at / 2", "0")) }
  value = lambda do
    term = -> { pick.("at", "k", "x[job * w + at]", "x[at]", "y[#{place.()}]", "y[#{place.()}]", "x[(at * 7 + 3) % x.size]", "2.5", "x[job * w]") }
    pick.("#{term.()} + #{term.()}", "#{term.()} * 0.5 - #{term.()}", "#{term.()}", "(#{term.()} > #{term.()} ? #{term.()} : 1.5)", "(0...3).sum(0.0) { |u| x[u] + #{term.()} }")
  end
  statement = lambda do
    store = "y[#{place.()}] = (#{value.()}).to_f"
    pick.(store, store, "from, to = k0.even? ? [y, v] : [v, y]\n to[#{place.()}] = from[#{place.()}] + x[at] + from[#{place.()}]", "if #{value.()} > 1\n #{store}\n end", "z[#{place.()}] = #{pick.("at + k", "60 / (m[at] - #{dice.rand(0..9)})", "m[job * w + at] * m[at]")}",
          "t = #{value.()}\n y[#{place.()}] = t + 0.25", "y[#{own.("at")}] = x[c] + #{value.()}\n c += 1", "c += 1\n y[#{own.("at")}] = x[c - 1] + #{value.()}")
  end

  programs.times do |number|
    columns = dice.rand < 0.3
    body = Array.new(dice.rand(1..2)) do
      loops = around.(Array.new(dice.rand(1..2)) { statement.() }.join("\n "))
      # a loop that runs again goes on where its counters are
      dice.rand < 0.3 ? "2.times do |again|\n #{loops}\n end" : loops
    end
    body.insert(dice.rand(0..body.size), pick.("k += y[#{own.("1")}].to_i", "y[#{own.("0")}] = k + 0.5", "next if job == 1", "k = x[job] > 0 ? 3 : 4"))
    made = dice.rand < 0.3 ? "Array.new(n) { |at| #{value.()} }" : "k"
    text = "lambda do |way, rows, n, w, x, y, z, m, v|\n (0...rows).send(way) do |job|\n k = k0 = job\n c = 0\n #{body.join("\n ")}\n #{made}\n end\n end"
    run = eval(text, binding, "random-#{seed}-#{number}.rb")
    rows, n = pick.([1, 7], [3, 40], [5, 33], [2, 300])
    size = rows * (n + 2)
    y, v = Array.new(2) { Array.new(size) { dice.rand.round(2) } }
    x = Array.new(size + (9 * n)) { dice.rand.round(2) }
    z = [0] * size
    m = Array.new(size) { dice.rand(10..99) }
    m[dice.rand(m.size)] = dice.rand(0..9) if dice.rand < 0.5
    plain, parallel = %i[map pmap].map do |way|
      changed = [y, z, v].map(&:dup)
      [run.call(way, rows, n, n + 2, x, *changed.first(2), m, changed.last), *changed]
    rescue Ikra::Error => error
      raise error
    rescue StandardError => error
      [error.class, error.message]
    end
    puts "seed #{seed}, program #{number}:", text, [rows, n].inspect, *[plain, parallel].map { |answer| answer.inspect[0, 400] } unless plain == parallel
  end
  puts "ran"
RUBY

# All ways to count through a line. Its elements are made from three lines of another array, in turn.
LINES = <<~'RUBY'
  forms = [
    "at = first\n while at <= last\n body.(at)\n at += 1\n end", "at = first\n until at > last\n body.(at)\n at += 1\n end",
    "at = last\n while at >= first\n body.(at)\n at -= 1\n end", "at = first\n loop do\n break if at > last\n body.(at)\n at += 1\n end",
    "at = first\n while true\n body.(at)\n break if at >= last\n at += 1\n end", "first.step(last, 1) { |at| body.(at) }",
    "first.step(last, 2) { |at| body.(at) }", "last.step(first, -1) { |at| body.(at) }", "first.step(by: 3, to: last) { |at| body.(at) }",
    "first.upto(last) { |at| body.(at) }", "last.downto(first) { |at| body.(at) }", "(first..last).each { |at| body.(at) }",
    "(first...last).each { |at| body.(at) }", "(first..last).step(2) { |at| body.(at) }", "for at in first..last do\n body.(at)\n end",
    "(row - 2).times { |z| body.(first + z) }"
  ]
  bodies = [
    "if %s.even?\n q[at] = p[at - row] + p[at + row] * a[at] + p[at + 1]\n else\n p[at] = q[at - row] + q[at + row] * a[at] + q[at - 1]\n end",
    "from, to = %s.even? ? [p, q] : [q, p]\n to[at] = from[at - row] + from[at + row] - from[at - 1] * a[at]"
  ]
  forms.product(bodies).each do |form, body|
    parallel, plain = ["Ikra.tick", "tick"].map do |tick|
      size, row = 5, 40
      p, q, a = Array.new(3) { |number| Array.new(size * row) { |at| ((at * 7 + number * 3) % 11) * 0.25 } }
      text = form.gsub(/body\.\(([^()]*)\)/) { (body % tick).gsub(/\bat\b/, "(#{Regexp.last_match(1)})") }
      text = "next if line == 0 || line == size - 1\n first = line * row + 1\n last = line * row + row - 2\n #{text}"
      head = tick == "tick" ? "2.times { |tick| (0...size).each { |line| #{text} } }" : "(0...size).peach(2) { |line| #{text} }"
      eval(head, binding, "lines.rb")
      [p, q]
    end
    puts form, body unless parallel == plain
  end
  puts "ran"
RUBY

# The inner loop goes on with the count of its run before. Nothing else reads that count.
COUNT = <<~'RUBY'
  size, row = 2, 40
  x = Array.new(200) { |at| at * 0.25 }
  plain, parallel = %i[map pmap].map do |way|
    y = [0.0] * (size * row)
    (0...size).send(way) do |line|
      count = 0
      2.times do |again|
        at = row - 2
        while at >= 1
          count += 1
          y[line * row + at] = x[count - 1] + at
          at -= 1
        end
      end
      line
    end
    y
  end
  puts parallel == plain ? "ran" : parallel.inspect
RUBY

# Runs everything by a shim whose teams have so many lanes.
RSpec.describe "Jobs that are run by teams of threads" do
  (Backends.present - [:cuda]).each do |backend|
    it "give plain Ruby's answers for all ways to count, on #{backend}" do
      environment = { "IKRA_BACKEND" => backend.to_s, "IKRA_SHIM_LANES" => "32" }
      expect(run_ruby(LINES, environment:, seconds: 240)).to eq("ran\n")
    end

    it "give plain Ruby's answers for loops that run again, on #{backend}" do
      environment = { "IKRA_BACKEND" => backend.to_s, "IKRA_SHIM_LANES" => "32" }
      expect(run_ruby(COUNT, environment:)).to eq("ran\n")
    end
  end

  shim = { "IKRA_BACKEND" => "cuda_shim" }
  next if (Backends.present & [:cuda_shim]).empty?

  programs = ENV["IKRA_SLOW"] ? 400 : 4
  # One seed, thus the same programs, for all numbers of lanes. A kernel does not depend on this number: it is compiled
  # once, by the first example that needs it.
  seed = 32

  [4, 32, 128].each do |lanes|
    it "give plain Ruby's answers for random loops, with #{lanes} lanes" do
      environment = shim.merge("IKRA_SHIM_LANES" => lanes.to_s)
      expect(run_ruby(TEAMS, seed.to_s, programs.to_s, environment:, seconds: 60 + programs * 10)).to eq("ran\n")
    end
  end
end
