# frozen_string_literal: true

module TypeQuestions
  module Flying
    def fly = 1
  end

  class Bird
    def sing = 1

    private

    def hide = 1
  end

  class Eagle < Bird
    include Flying
  end

  class Plane
    include Flying

    attr_accessor :speed
  end
end

RSpec.describe "Questions about types" do
  eagle = TypeQuestions::Eagle.new
  values = [0, 1.5, nil, true, false, :a, eagle, TypeQuestions::Bird.new, TypeQuestions::Plane.new]

  on_every_backend do
    it "has is_a?, kind_of? and instance_of?" do
      expect { |x| x.is_a?(Integer) ? 1 : x.is_a?(Numeric) ? 2 : x.kind_of?(Comparable) ? 3 : 4 }.to be_same_as_ruby.over(values)
      expect { |x| x.is_a?(TypeQuestions::Flying) ? 1 : x.is_a?(TypeQuestions::Bird) ? 2 : x.is_a?(Object) ? 3 : 4 }.to be_same_as_ruby.over(values)
      expect { |x| x.instance_of?(TypeQuestions::Bird) ? 1 : x.instance_of?(NilClass) ? 2 : x.instance_of?(Numeric) ? 3 : 4 }.to be_same_as_ruby.over(values)
      expect { |x| TypeQuestions::Flying === x || Float === x }.to be_same_as_ruby.over(values)
      expect { |x| x > 0 ? x.is_a?(3) : x }.to be_same_as_ruby.over(0, 1)
    end

    it "has nil?" do
      expect { |x| x.nil? }.to be_same_as_ruby.over(values)
    end

    it "has class" do
      expect { |x| x.class }.to be_same_as_ruby.over(values)
      expect { |x| x.class == Integer ? 1 : x.class == TypeQuestions::Eagle ? 2 : 3 }.to be_same_as_ruby.over(values)
    end

    it "has == and equal? of objects" do
      expect { |x| x == eagle }.to be_same_as_ruby.over(values + [TypeQuestions::Eagle.new])
      expect { |x| x.equal?(eagle) }.to be_same_as_ruby.over(TypeQuestions::Bird.new, eagle, TypeQuestions::Eagle.new, nil)
      expect { |x| x != eagle && eagle != x }.to be_same_as_ruby.over(values)
      expect { |x| x.equal?(nil) ? 1 : x.equal?(:a) ? 2 : x.equal?(true) ? 3 : 4 }.to be_same_as_ruby.over(values - [1.5])
    end

    it "has respond_to?" do
      expect { |x| x.respond_to?(:sing) ? 1 : x.respond_to?(:fly) ? 2 : x.respond_to?(:abs) ? 3 : 4 }.to be_same_as_ruby.over(values)
      expect { |x| x.respond_to?(:speed=) ? 1 : x.respond_to?(:hide) ? 2 : x.respond_to?(:nan?) ? 3 : 4 }.to be_same_as_ruby.over(values)
      expect { |x| x.respond_to?(:hide, true) ? 2 : x.respond_to?(:hide, false) ? 3 : x.respond_to?(:nothing, true) ? 4 : 5 }.to be_same_as_ruby.over(values)
    end

    it "has itself and frozen? of numbers" do
      expect { |x| x.itself }.to be_same_as_ruby.over(values)
      expect { |x| x.frozen? }.to be_same_as_ruby.over(1, 2.5, nil, :a)
    end

    it "has freeze, dup and clone of what is frozen from the start" do
      expect { |x| [x.freeze, x.dup, x.clone, x.dup.frozen?] }.to be_same_as_ruby.over(1, 2.5, nil, :a, true, false)
      expect { |x| (1..x).freeze.sum }.to be_same_as_ruby.over(1, 3)
    end

    it "calls what each class has" do
      expect { |x| x.fly }.to be_same_as_ruby.over(eagle, TypeQuestions::Plane.new, TypeQuestions::Bird.new, 5, nil)
    end
  end
end
