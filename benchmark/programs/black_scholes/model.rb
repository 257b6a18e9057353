# frozen_string_literal: true

class Program::BlackScholes
  class Option
    def initialize(spot, strike, years)
      @spot = spot
      @strike = strike
      @years = years
    end

    def price(market)
      spread = market.volatility * Math.sqrt(@years)
      d1 = (Math.log(@spot / @strike) + (market.rate + market.volatility * market.volatility / 2.0) * @years) / spread
      value(d1, d1 - spread, @strike * Math.exp(-market.rate * @years))
    end

    private

    # The cumulative normal distribution.
    def normal(x) = 0.5 * Math.erfc(-x / Math.sqrt(2.0))
  end

  class Call < Option
    private

    def value(d1, d2, present) = @spot * normal(d1) - present * normal(d2)
  end

  class Put < Option
    private

    def value(d1, d2, present) = present * normal(-d2) - @spot * normal(-d1)
  end
end
