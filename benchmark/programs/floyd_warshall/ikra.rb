# frozen_string_literal: true

class Program::FloydWarshall
  # A tick is a round. In it nothing changes that other pairs read: the way to the place itself is no detour.
  def compute((size, distance))
    (0...size * size).peach(size) do |pair|
      between = Ikra.tick
      from, to = pair.divmod(size)
      through = distance[from * size + between] + distance[between * size + to]
      distance[pair] = through if through < distance[pair]
    end
  end
end
