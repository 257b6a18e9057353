# frozen_string_literal: true

class Traffic::Benchmark
  def compute((actors, weather, ticks))
    actors.peach(ticks) { |actor| actor.move(weather) }
  end
end
