# frozen_string_literal: true

require_relative "../programs/black_scholes/model"

class Program::BlackScholes
  # Options that look otherwise than those of the program.
  module Made
    def state(input)
      puts, *numbers = %i[put spot strike years].map { |name| input.fetch(name).values }
      [Market.new(input[:rate], input[:volatility]), puts.zip(*numbers).map { |put, *rest| option(put == 1, *rest) }]
    end

    def compute((market, options)) = options.pmap { |option| option.price(market) }
  end

  phrasing "subclasses, a market made in each block" do
    def compute((market, options))
      rate = market.rate
      volatility = market.volatility
      options.pmap { |option| option.price(Market.new(rate, volatility)) }
    end
  end

  # One class with a flag, temporaries and an early return.
  class Flagged
    def initialize(put, spot, strike, years)
      @put = put
      @spot = spot
      @strike = strike
      @years = years
    end

    def price(market)
      root = Math.sqrt(@years)
      spread = market.volatility * root
      ratio = Math.log(@spot / @strike)
      drift = (market.rate + market.volatility * market.volatility / 2.0) * @years
      d1 = (ratio + drift) / spread
      d2 = d1 - spread
      present = @strike * Math.exp(-market.rate * @years)
      return present * normal(-d2) - @spot * normal(-d1) if @put

      @spot * normal(d1) - present * normal(d2)
    end

    def normal(x) = 0.5 * Math.erfc(-x / Math.sqrt(2.0))
  end

  phrasing "one class with a flag, temporaries, an early return" do
    include Made

    def option(...) = Flagged.new(...)
  end

  # A Struct with a Symbol for its kind, and methods cut small.
  Contract = Struct.new(:kind, :spot, :strike, :years) do
    def price(market)
      case kind
      when :call then spot * normal(d1(market)) - present(market) * normal(d2(market))
      when :put then present(market) * normal(-d2(market)) - spot * normal(-d1(market))
      end
    end

    def spread(market) = market.volatility * Math.sqrt(years)
    def drift(market) = market.rate + market.volatility * market.volatility / 2.0
    def d1(market) = (Math.log(spot / strike) + drift(market) * years) / spread(market)
    def d2(market) = d1(market) - spread(market)
    def present(market) = strike * Math.exp(-market.rate * years)
    def normal(x) = 0.5 * Math.erfc(-x / Math.sqrt(2.0))
  end

  phrasing "a Struct, case over a Symbol, methods cut small" do
    include Made

    def option(put, *rest) = Contract.new(put ? :put : :call, *rest)
  end

  # One class whose sign is a number: puts and calls have one formula.
  class Signed < Flagged
    attr_reader :sign, :spot, :strike, :years

    def initialize(put, ...)
      super
      @sign = put ? -1.0 : 1.0
    end

    def price(market)
      spread = market.volatility * Math.sqrt(years)
      d1 = (Math.log(spot / strike) + (market.rate + market.volatility * market.volatility / 2.0) * years) / spread
      sign * (spot * normal(sign * d1) - strike * Math.exp(-market.rate * years) * normal(sign * (d1 - spread)))
    end
  end

  phrasing "one class with a sign, attributes, no branch" do
    include Made

    def option(...) = Signed.new(...)
  end

  # Arrays of numbers in place of objects.
  module Flat
    def state(input) = [input[:rate], input[:volatility], *%i[put spot strike years].map { |name| input.fetch(name).values }]
    def normal(x) = 0.5 * Math.erfc(-x / Math.sqrt(2.0))

    def value(put, spot, strike, years, rate, volatility)
      spread = volatility * Math.sqrt(years)
      d1 = (Math.log(spot / strike) + (rate + volatility * volatility / 2.0) * years) / spread
      d2 = d1 - spread
      present = strike * Math.exp(-rate * years)
      put == 1 ? present * normal(-d2) - spot * normal(-d1) : spot * normal(d1) - present * normal(d2)
    end
  end

  phrasing "flat Arrays, indices, a ternary" do
    include Flat

    def compute((rate, volatility, put, spot, strike, years))
      (0...spot.size).pmap { |i| value(put[i], spot[i], strike[i], years[i], rate, volatility) }
    end
  end

  phrasing "flat Arrays, zipped" do
    include Flat

    def compute((rate, volatility, put, spot, strike, years))
      put.zip(spot, strike, years).pmap { |numbers| value(numbers[0], numbers[1], numbers[2], numbers[3], rate, volatility) }
    end
  end

  phrasing "MDArrays, combined" do
    include Flat

    def state(input)
      rate, volatility, *columns = super
      [rate, volatility, *columns.map { |column| Ikra::MDArray.new(column) }]
    end

    def outputs(_state, result) = { price: result.to_a }

    def compute((rate, volatility, put, spot, strike, years))
      put.combine(spot, strike, years) { |which, price, limit, time| value(which, price, limit, time, rate, volatility) }
    end
  end
end
