# frozen_string_literal: true

module Traffic
  module Weather
    # rubocop:disable Naming/ConstantName
    Sunny = :sunny
    Rainy = :rainy
    Snowy = :snowy
    # rubocop:enable Naming/ConstantName
  end
end
