# frozen_string_literal: true

class Program::FloydWarshall
  def compute((size, distance))
    size.times do |between|
      size.times do |from|
        start = distance[from * size + between]
        size.times do |to|
          through = start + distance[between * size + to]
          distance[from * size + to] = through if through < distance[from * size + to]
        end
      end
    end
  end
end
