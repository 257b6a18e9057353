# frozen_string_literal: true

# Traffic in Saint-Germain-en-Laye: cars, buses and pedestrians on the town's real streets. Every one is an ordinary
# Ruby object that moves by itself.
#
#   ruby -Ilib examples/traffic.rb --actors 50000 --ticks 1000 --backend cpu
#
# Prints what became of them, and writes a picture of the town with its traffic.

require "optparse"
require_relative "traffic/model"
require_relative "traffic/picture"
require_relative "traffic/report"

module Traffic
  class Program
    TOWN = File.expand_path("data/saint-germain-en-laye", __dir__)
    BACKENDS = %i[auto cpu cuda reference ruby].freeze
    WEATHERS = { sunny: Weather::Sunny, rainy: Weather::Rainy, snowy: Weather::Snowy }.freeze
    KINDS = { "Cars" => Car, "Buses" => Bus, "Pedestrians" => Pedestrian }.freeze

    def initialize(arguments)
      @options = { actors: 50_000, ticks: 1_000, backend: :auto, seed: 1, out: "traffic.svg", deterministic: false, weather: :rainy }
      parser.parse!(arguments, into: @options)
      abort "traffic: --actors and --ticks must be at least 1" unless @options.values_at(:actors, :ticks).all?(&:positive?)
    end

    def run
      require "ikra" unless sequential?
      Ikra.srand(seed) unless sequential?
      srand(seed)
      network = Network.load(TOWN)
      actors = population(network).actors(@options[:actors])
      puts "#{count(actors.size)} actors on #{count(network.streets.size)} streets, #{count(@options[:ticks])} seconds of #{@options[:weather]} weather"

      took = simulate(actors, @options[:ticks] - 1)
      before = actors.map { |actor| [actor.street, actor.progress] }
      took += simulate(actors, 1)
      velocities = actors.zip(before).to_h { |actor, place| [actor, velocity(actor, *place)] }
      summary(actors, velocities, took, sequential_time(network))
      puts "\nPicture: #{picture(network, actors)}"
    end

    private

    # The simulation itself. It runs in parts only to show its progress.
    def simulate(actors, ticks)
      weather = WEATHERS.fetch(@options[:weather])
      part = (ticks / 20.0).ceil.clamp(1..)
      started = clock
      0.step(ticks - 1, part) do |done|
        now = [part, ticks - done].min
        if sequential?
          now.times { actors.each { |actor| actor.move(weather) } }
        else
          actors.peach(now, backend: @options[:backend]) { |actor| actor.move(weather) }
        end
        Report.progress(done + now, ticks) if ticks > 1
      end
      clock - started
    end

    # Metres in the last second. After a turn, it is the rest of that second on the next street.
    def velocity(actor, street, progress)
      return (actor.progress - progress).abs if actor.street.equal?(street)

      street.length - progress + actor.progress
    end

    # Runs plain Ruby over a few of the actors for about half a second. Gives the seconds for one actor and one tick.
    def sequential_time(network)
      few = population(network).actors([@options[:actors], 2_000].min)
      weather = WEATHERS.fetch(@options[:weather])
      ticks = 0
      started = clock
      while clock - started < 0.5
        few.each { |actor| actor.move(weather) }
        ticks += 1
      end
      (clock - started) / (ticks * few.size)
    end

    def summary(actors, velocities, took, sequential)
      rows = KINDS.map do |name, kind|
        them = actors.grep(kind)
        mean = them.empty? ? 0.0 : them.sum { |actor| velocities[actor] } / them.size
        [name, count(them.size), "#{format("%.1f", mean / KMH)} km/h"]
      end
      puts
      Report.table([["", "number", "mean speed"], *rows])
      puts
      Report.table(timings(took, sequential))
    end

    def timings(took, sequential)
      per_tick = took / @options[:ticks]
      whole = sequential * @options[:actors] * @options[:ticks]
      [["Backend", @options[:backend]],
       ["Whole run", Report.seconds(took)],
       ["Time per tick", Report.seconds(per_tick)],
       ["Sequential Ruby (#{jit}), from a slice", Report.seconds(whole)],
       ["Speed-up", "#{(whole / took).round(1)} ×"]]
    end

    def jit
      defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? "YJIT" : "no JIT"
    end

    def picture(network, actors)
      subtitle = ["#{count(actors.size)} actors after #{count(@options[:ticks])} seconds",
                  "of #{@options[:weather]} weather, simulated by #{sequential? ? "plain Ruby" : "Ikra, #{@options[:backend]}"}"]
      path = File.expand_path(@options[:out])
      Picture.new(network, actors, title: "Saint-Germain-en-Laye", subtitle: subtitle).write(path)
    end

    def population(network)
      Population.new(network, seed: seed, deterministic: @options[:deterministic])
    end

    def sequential?
      @options[:backend] == :ruby
    end

    def seed
      @options[:seed]
    end

    def count(number)
      Report.with_commas(number)
    end

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def parser
      OptionParser.new do |options|
        options.banner = "Usage: ruby -Ilib examples/traffic.rb [options]"
        options.on("--actors N", Integer, "how many are on the streets (50000)")
        options.on("--ticks N", Integer, "how many seconds to simulate (1000)")
        options.on("--backend NAME", BACKENDS, "auto, cpu, cuda, reference, or ruby for plain sequential Ruby")
        options.on("--weather NAME", WEATHERS.keys, "sunny, rainy or snowy")
        options.on("--seed N", Integer, "where the actors begin, and their dice (1)")
        options.on("--deterministic", "each actor throws its own dice: the same result on every backend and in plain Ruby")
        options.on("--out FILE", "the picture, an SVG file (traffic.svg)")
      end
    end
  end
end

begin
  Traffic::Program.new(ARGV).run if $PROGRAM_NAME == __FILE__
rescue OptionParser::ParseError => e
  abort "traffic: #{e.message}"
end
