# frozen_string_literal: true

module Traffic
  module Weather
    Sunny = :sunny
    Rainy = :rainy
    Snowy = :snowy
  end
end
