# frozen_string_literal: true

# Prices of European options by the formula of Black and Scholes, each option an object.
#
#   ruby -Ilib examples/black_scholes.rb [options]

require_relative "support/comparison"

module BlackScholes
  Market = Struct.new(:rate, :volatility, keyword_init: true)

  class Option
    attr_reader :spot, :strike, :years

    def initialize(spot:, strike:, years:)
      raise ArgumentError, "an option without time" unless years.positive?

      @spot = spot
      @strike = strike
      @years = years
    end

    def price(market)
      spread = market.volatility * Math.sqrt(years)
      d1 = (Math.log(spot / strike) + (market.rate + market.volatility**2 / 2) * years) / spread
      value(d1, d1 - spread, strike * Math.exp(-market.rate * years))
    end

    private

    # The cumulative normal distribution.
    def normal(x) = 0.5 * Math.erfc(-x / Math.sqrt(2))
  end

  class Call < Option
    private

    def value(d1, d2, present) = spot * normal(d1) - present * normal(d2)
  end

  class Put < Option
    private

    def value(d1, d2, present) = present * normal(-d2) - spot * normal(-d1)
  end

  def self.options(count, random: Random.new(3))
    Array.new(count) do
      kind = random.rand < 0.5 ? Call : Put
      kind.new(spot: 5.0 + random.rand * 25, strike: 1.0 + random.rand * 99, years: 0.25 + random.rand * 9.75)
    end
  end

  # The price of each option.
  def self.run(count)
    market = Market.new(rate: 0.02, volatility: 0.30)
    options(count).pmap { |option| option.price(market) }
  end
end

if $PROGRAM_NAME == __FILE__
  prices = Comparison.run(500_000) { |count| BlackScholes.run(count) }
  puts format("%d options, %.2f on average, %.2f at most.", prices.size, prices.sum / prices.size, prices.max)
end
