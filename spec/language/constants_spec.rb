# frozen_string_literal: true

CONSTANTS_TOP = 1000

module Constants
  INTEGER = 3
  FLOAT = -0.5
  SYMBOL = :weather
  NOTHING = nil
  LIST = [10, 20, 30].freeze
  RANGE = 2..5
  CONSTANTS_TOP = 1

  module Weather
    SUNNY = 1
    RAINY = 2
  end

  class Base
    LIMIT = 50

    def limit = LIMIT
    def own = self.class::LIMIT
    def top = ::CONSTANTS_TOP + CONSTANTS_TOP
    def outer = INTEGER
  end

  class Derived < Base
    LIMIT = 60

    def derived = LIMIT + Base::LIMIT
  end
end

class Constants::Outside
  def outer = INTEGER
end

RSpec.describe "Constants" do
  on_every_backend do
    it "is a value of any kind" do
      expect { |x| x + Constants::INTEGER + Constants::FLOAT }.to be_same_as_ruby.over(1, 2.5)
      expect { |x| x == Constants::SYMBOL ? Constants::NOTHING : Constants::SYMBOL }.to be_same_as_ruby.over(:weather, :other)
      expect { |x| Constants::LIST[x] }.to be_same_as_ruby.over(0, 1, 2, 3, -1)
      expect { |x| Constants::LIST.size + Constants::RANGE.size + x }.to be_same_as_ruby.over(1)
      expect { |x| Constants::RANGE.include?(x) }.to be_same_as_ruby.over(1, 2, 5, 6)
    end

    it "is found through modules" do
      weather = Constants::Weather::RAINY
      expect { |x| x == Constants::Weather::SUNNY ? 1 : weather * 10 }.to be_same_as_ruby.over(1, 2)
    end

    it "is found where the method was written, then in superclasses" do
      objects = [Constants::Base.new, Constants::Derived.new]
      expect { |x| x.limit * 10_000 + x.top + x.outer }.to be_same_as_ruby.over(objects)
      expect { |x| x.derived }.to be_same_as_ruby.over(Constants::Derived.new)
    end

    it "is a NameError where it is not defined" do
      expect { |x| x > 1 ? Constants::Nowhere : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? NOWHERE_AT_ALL : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x.outer }.to be_same_as_ruby.over(Constants::Outside.new)
    end

    it "may be a class or module" do
      expect { |x| x == 1 ? Constants::Base : Constants::Weather }.to be_same_as_ruby.over(1, 2)
      expect { |x| x == 1 ? Integer : Math }.to be_same_as_ruby.over(1, 2)
    end
  end
end
