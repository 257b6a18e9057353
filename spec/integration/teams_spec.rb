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
      "at = #{first}\n while at < #{last}\n #{body}\n at += #{step}\n end",
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
    pick.(store, store, "if #{value.()} > 1\n #{store}\n end", "z[#{place.()}] = #{pick.("at + k", "60 / (m[at] - #{dice.rand(0..9)})", "m[job * w + at] * m[at]")}",
          "t = #{value.()}\n y[#{place.()}] = t + 0.25")
  end

  programs.times do |number|
    columns = dice.rand < 0.3
    body = Array.new(dice.rand(1..2)) { around.(Array.new(dice.rand(1..2)) { statement.() }.join("\n ")) }
    body.insert(dice.rand(0..body.size), pick.("k += y[#{own.("1")}].to_i", "y[#{own.("0")}] = k + 0.5", "next if job == 1", "k = x[job] > 0 ? 3 : 4"))
    made = dice.rand < 0.3 ? "Array.new(n) { |at| #{value.()} }" : "k"
    text = "lambda do |way, rows, n, w, x, y, z, m|\n (0...rows).send(way) do |job|\n k = job\n #{body.join("\n ")}\n #{made}\n end\n end"
    run = eval(text, binding, "random-#{seed}-#{number}.rb")
    rows, n = pick.([1, 7], [3, 40], [5, 33], [2, 300])
    size = rows * (n + 2)
    x, y, z = Array.new(size) { dice.rand.round(2) }, Array.new(size) { dice.rand.round(2) }, [0] * size
    m = Array.new(size) { dice.rand(10..99) }
    m[dice.rand(m.size)] = dice.rand(0..9) if dice.rand < 0.5
    plain, parallel = %i[map pmap].map do |way|
      changed = [y.dup, z.dup]
      [run.call(way, rows, n, n + 2, x, *changed, m), *changed]
    rescue Ikra::Error => error
      raise error
    rescue StandardError => error
      [error.class, error.message]
    end
    puts "seed #{seed}, program #{number}:", text, [rows, n].inspect, *[plain, parallel].map { |answer| answer.inspect[0, 400] } unless plain == parallel
  end
  puts "ran"
RUBY

# Runs everything by a shim whose teams have so many lanes.
RSpec.describe "Jobs that are run by teams of threads" do
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
