# frozen_string_literal: true

module Inheritance
  module Loud
    def volume = super * 2
  end

  module Named
    def label = :named
    def order = 1000 + super
  end

  module Quiet
    def volume = 1
  end

  class Animal
    include Comparable

    def initialize(size)
      @size = size
    end

    attr_reader :size

    def volume = @size
    def describe(factor = 2, plus: 1) = volume * factor + plus
    def order = 1
    def label = :plain
    def <=>(other) = size <=> other.size
  end

  class Dog < Animal
    include Named

    def volume = super + 10
    def describe(factor = 3, plus: 2) = super + super(1) + super(factor, plus: 5)
    def order = 100 + super
    def label = super
  end

  class Puppy < Dog
    prepend Loud

    def volume = super() - 1
    def order = 10_000 + super
  end

  class Fish < Animal
    include Quiet

    def describe(factor, plus: 0)
      factor += 1
      super
    end
  end

  class Lonely
    def missing = super
  end
end

RSpec.describe "Inheritance" do
  on_every_backend do
    it "finds methods in superclasses and modules" do
      animals = [Inheritance::Animal.new(1), Inheritance::Dog.new(2), Inheritance::Puppy.new(3), Inheritance::Fish.new(4.5)]
      expect { |a| a.volume }.to be_same_as_ruby.over(animals)
      expect { |a| a.order }.to be_same_as_ruby.over(animals)
      expect { |a| a.label }.to be_same_as_ruby.over(animals)
    end

    it "calls super with and without arguments" do
      animals = [Inheritance::Animal.new(1), Inheritance::Dog.new(2), Inheritance::Puppy.new(3)]
      expect { |a| a.describe }.to be_same_as_ruby.over(animals)
      expect { |a| a.describe(7, plus: 9) }.to be_same_as_ruby.over(animals + [Inheritance::Fish.new(4.5)])
    end

    it "passes on what a parameter has become to a bare super" do
      expect { |a| a.describe(10) }.to be_same_as_ruby.over(Inheritance::Fish.new(1))
    end

    it "raises NoMethodError where super finds nothing" do
      expect { |a| a.missing }.to be_same_as_ruby.over(Inheritance::Lonely.new)
    end

    it "has Comparable over <=>" do
      low = Inheritance::Dog.new(1)
      animals = [low, Inheritance::Fish.new(0), Inheritance::Puppy.new(5)]
      expect { |a| a <=> low }.to be_same_as_ruby.over(animals)
    end
  end
end
