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
    def divmod(other) = [size * other, other]
  end

  # Compares with any number of others.
  class Herd
    include Comparable

    def initialize(size)
      @size = size
    end

    attr_reader :size

    def <=>(*others) = size <=> others[0].size
  end

  class Dog < Animal
    include Named

    def volume = super + 10
    def describe(factor = 3, plus: 2) = super + super(1) + super(factor, plus: 5)
    def order = 100 + super
    def label = super
  end

  # Aliases of inherited methods, and of one that is redefined later.
  class Terrier < Dog
    alias loudness volume
    alias_method :manner, :order
    alias text label
    alias old_size_of size
    def text2 = text
    def volume = super + 5
    alias shouting volume
    def volume = loudness + 1 # rubocop:disable Lint/DuplicateMethods
  end

  class Echo < Terrier
    alias again loudness
    def loudness = super + 0.5
    def shouting = super * 3
  end

  # An alias of a method that its class had.
  class Cat < Animal
    def volume = super - 1
  end

  class Kitten < Cat
    alias soft volume
  end

  class Cat
    def volume = super - 2 # rubocop:disable Lint/DuplicateMethods
  end

  class Copycat < Animal
    def volume(*) = super
    def describe((factor, plus)) = super
    def order(*others) = super(*others)
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

  module Hushed
    include Named

    private :label
  end

  # Classes that only change the visibility of inherited methods.
  class Shy < Dog
    private :volume, :order, :<=>
    protected :size

    def sum = volume + order + size
    def larger?(other) = size > other.size
  end

  class Bold < Shy
    public :volume, :order
  end

  class Bolder < Bold
    include Hushed

    def volume = super + 1
    def name = label
  end

  # Has Dog's code a second time, and `super` in it finds that code again.
  class Twin < Dog
    define_method(:volume, Dog.instance_method(:volume))
  end

  class Lonely
    def missing = super
  end

  # An alias of an alias has the first name again.
  class Renamed < Dog
    include Hushed
    alias other volume
    def volume = 0
    alias volume other # rubocop:disable Lint/DuplicateMethods
  end

  class Counted
    def first = [:first]
    def last = [:last]
  end

  class Passing < Counted
    def last = [:passing] + super
  end

  # Two names of one inherited method, of which one is the name that it had.
  class Crossed < Passing
    alias first last
    def last = []
    alias last first # rubocop:disable Lint/DuplicateMethods
  end

  # The name that an alias's `super` goes by is another method's by now.
  class Exchanged < Counted
    def first = [:exchanged] + super
    def last = [:later]
    alias other first
    alias first last # rubocop:disable Lint/DuplicateMethods
  end

  # A module that occurs twice among the ancestors of a class.
  module Twice
    def count = [1] + super
  end

  class Base
    prepend Twice
    def count = [2]
  end

  class Above < Base
    prepend Twice
    def count = [3] + super
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

    it "knows a method whose visibility alone a class changes for the inherited one" do
      animals = [Inheritance::Shy.new(1), Inheritance::Bold.new(2), Inheritance::Bolder.new(3)]
      expect { |a| a.sum + (a.larger?(a) ? 100 : 10) }.to be_same_as_ruby.over(animals)
      expect { |a| [a.volume, a.order] }.to be_same_as_ruby.over(animals.drop(1))
      expect { |a| a.name }.to be_same_as_ruby.over(animals.last)
      order = animals.last.method(:order)
      expect { |x| order.call + x }.to be_same_as_ruby.over(1)
    end

    it "lets nobody call what a class has made private or protected" do
      shy = Inheritance::Shy.new(1)
      expect { |a| a.volume }.to be_same_as_ruby.over(shy)
      expect { |a| a <=> a }.to be_same_as_ruby.over(shy)
      expect { |a| a.size }.to be_same_as_ruby.over(shy)
      expect { |a| a.label }.to be_same_as_ruby.over(Inheritance::Bolder.new(1))
    end

    it "calls code again that super finds again" do
      expect { |a| a.volume }.to be_same_as_ruby.over(Inheritance::Twin.new(1))
    end

    it "refuses a bare super that has lists to pass on" do
      cats = [Inheritance::Copycat.new(1)]
      expect { cats.pmap(backend: backend) { |cat| cat.volume } }.to raise_error(Ikra::CompileError, /a bare super in a method with `\*`.*write down what it is to pass on/m)
      expect { cats.pmap(backend: backend) { |cat| cat.describe([1, 2]) } }.to raise_error(Ikra::CompileError, /parameters in parentheses/)
      expect { |cat| cat.order }.to be_same_as_ruby.over(cats)
    end

    it "raises NoMethodError where super finds nothing" do
      expect { |a| a.missing }.to be_same_as_ruby.over(Inheritance::Lonely.new)
    end

    it "has Comparable over <=>" do
      low = Inheritance::Dog.new(1)
      animals = [low, Inheritance::Fish.new(0), Inheritance::Puppy.new(5)]
      expect { |a| a <=> low }.to be_same_as_ruby.over(animals)
      expect { |a| [a < low, a >= low, a == low, a.between?(low, low), a.clamp(low, low).size] }.to be_same_as_ruby.over(animals)
    end

    it "has no Comparable over a <=> of any number of arguments, nor with lambdas" do
      herds = [Inheritance::Herd.new(1), Inheritance::Herd.new(3)]
      expect { |herd| herd <=> herds[0] }.to be_same_as_ruby.over(herds)
      expect { herds.pmap(backend: backend) { |herd| herd < herds[0] } }.to raise_error(Ikra::CompileError, /do not compare by Inheritance::Herd#<=>, which takes any number/)
      adding = ->(x) { x + 1 }
      expect { ["a"].pmap(backend: backend) { |text| text < adding } }.to raise_error(Ikra::CompileError, /give no blocks or lambdas to String#<=>/)
    end

    it "begins super in an alias above the class that defined the method" do
      animals = [Inheritance::Terrier.new(3), Inheritance::Echo.new(4)]
      expect do |animal|
        [animal.volume, animal.loudness, animal.shouting, animal.manner, animal.text, animal.text2, animal.old_size_of]
      end.to be_same_as_ruby.over(animals)
      expect { |echo| echo.again }.to be_same_as_ruby.over(animals.drop(1))
      expect { |animal| animal.volume }.to be_same_as_ruby.over([Inheritance::Kitten.new(9)])
      expect { [Inheritance::Kitten.new(9)].pmap(backend:) { |animal| animal.soft } }
        .to raise_error(Ikra::CompileError, /the method that `super` calls/)
    end

    it "begins super in an alias of an alias there, too" do
      expect { |animal| animal.volume }.to be_same_as_ruby.over([Inheritance::Renamed.new(3)])
    end

    it "begins super in two aliases of one inherited method there, too" do
      expect { |crossed| [crossed.first, crossed.last] }.to be_same_as_ruby.over([Inheritance::Crossed.new])
    end

    it "refuses super in an alias whose first name is another method's alias by now" do
      expect(Inheritance::Exchanged.new.other).to eq(%i[exchanged first])
      expect { [Inheritance::Exchanged.new].pmap(backend:) { |one| one.other } }.to raise_error(Ikra::CompileError, /the method that `super` calls/)
    end

    it "refuses super in a module that is an ancestor at several places" do
      expect { |base| base.count }.to be_same_as_ruby.over([Inheritance::Base.new])
      expect { [Inheritance::Above.new].pmap(backend:) { |above| above.count } }.to raise_error(Ikra::CompileError, /the method that `super` calls/)
    end

    it "calls an own divmod whose results go to two variables" do
      expect do |a|
        q, r = a.divmod(3)
        q - r
      end.to be_same_as_ruby.over([Inheritance::Dog.new(1), Inheritance::Puppy.new(5)])
    end
  end
end
