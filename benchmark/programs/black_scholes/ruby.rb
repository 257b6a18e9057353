# frozen_string_literal: true

require_relative "model"

class Program::BlackScholes
  def compute((market, options))
    options.map { |option| option.price(market) }
  end
end
