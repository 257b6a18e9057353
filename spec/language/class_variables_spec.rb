# frozen_string_literal: true

module ClassVariables
  class Base
    @@rate = 3
    @@steps = [1, 2]

    class << self
      def inner = @@rate
      def nothing = @@nothing
    end

    def self.rate = @@rate
    def self.rate=(rate)
      @@rate = rate
    end

    def self.count = @@count += 1

    def scaled(x) = (@@rate * x) + @@steps[0]
    def missing = @@missing
    def over(list, run) = list.public_send(run) { |x| x + @@rate }
  end

  class Derived < Base
    def own = @@rate
  end
end

RSpec.describe "Class variables" do
  on_every_backend do
    after { ClassVariables::Base.rate = 3 }

    it "are read from their class, its singleton and its subclasses" do
      base = ClassVariables::Base.new
      derived = ClassVariables::Derived.new
      expect { |x| [ClassVariables::Base.rate, ClassVariables::Base.inner, base.scaled(x), derived.own] }.to be_same_as_ruby.over(1, 2)
    end

    it "are read anew at each call" do
      base = ClassVariables::Base.new
      block = ->(x) { base.scaled(x) }
      [3, 4, 2.5, nil.to_i].each do |rate|
        ClassVariables::Base.rate = rate
        expect([1, 2].pmap(backend:, &block)).to eq([1, 2].map(&block))
      end
    end

    it "are NameErrors where there are none" do
      base = ClassVariables::Base.new
      expect { |_| base.missing }.to be_same_as_ruby.over(1)
      expect { |_| ClassVariables::Base.nothing }.to be_same_as_ruby.over(1)
    end

    it "are those of the class around a section's block" do
      expect(ClassVariables::Base.new.over([1, 2], :pmap)).to eq([4, 5])
    end
  end

  it "are not written, as elements share them" do
    expect { [1].pmap { |x| ClassVariables::Base.rate = x } }.to raise_error(Ikra::CompileError, /an assignment to a class variable/)
    expect { [1].pmap { |_| ClassVariables::Base.count } }.to raise_error(Ikra::CompileError, /an assignment to a class variable/)
  end
end
