# frozen_string_literal: true

require_relative "model"

class Program::Kmeans
  def compute((points, clusters, rounds))
    rounds.times do
      points.each { |point| point.join(clusters) }
      clusters.each(&:settle)
    end
  end
end
