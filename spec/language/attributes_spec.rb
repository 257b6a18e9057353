# frozen_string_literal: true

module Attributes
  class Point
    attr_accessor :x, :y
    attr_reader :moves
    attr_writer :name

    def initialize(x, y)
      @x = x
      @y = y
      @moves = 0
    end

    def shift(dx)
      self.x += dx
      self.y = x + y
      self.name = :moved
      @moves += 1
    end

    private

    attr_accessor :secret
  end

  class Line
    attr_reader :from, :to

    def initialize(from, to)
      @from = from
      @to = to
    end
  end
end

RSpec.describe "Attributes" do
  on_every_backend do
    it "is read and written" do
      expect do |run|
        points = [Attributes::Point.new(1, 2), Attributes::Point.new(-1.5, 0)]
        run.peach(points, 2) do |point|
          point.shift(0.5)
          point.x *= 2
          point.y -= 1 if point.y > 0
        end
      end.to be_same_as_ruby
    end

    it "has ||= and &&=" do
      expect do |run|
        points = [Attributes::Point.new(nil, 2), Attributes::Point.new(3, nil)]
        run.peach(points) do |point|
          point.x ||= 7
          point.y &&= point.y + 1
        end
      end.to be_same_as_ruby
    end

    it "gives the assigned value" do
      points = [Attributes::Point.new(1, 2)]
      expect { |point| (point.x = 5) + point.x }.to be_same_as_ruby.over(points)
    end

    it "follows references" do
      line = Attributes::Line.new(Attributes::Point.new(1, 2), Attributes::Point.new(3, 4))
      expect { |l| l.to.x - l.from.x + l.to.y * 10 }.to be_same_as_ruby.over(line)
    end

    it "is not there where there is only a reader, or only a writer" do
      points = [Attributes::Point.new(1, 2)]
      expect { |point| point.moves = 1 }.to be_same_as_ruby.over(points)
      expect { |point| point.name }.to be_same_as_ruby.over(points)
    end

    it "takes no keywords, which Ruby counts as one more argument" do
      points = [Attributes::Point.new(1, 2)]
      expect { |point| point.x(a: 1) }.to be_same_as_ruby.over(points)
      expect { |point| point.x(1, a: 1) }.to be_same_as_ruby.over(points)
      expect { |point| point.send(:x=, 1, a: 1) }.to be_same_as_ruby.over(points)
      expect { |point| point.x(**{}) }.to be_same_as_ruby.over(points)
      expect { |point| Attributes::Point.allocate(a: point.x) }.to be_same_as_ruby.over(points)
      expect { points.pmap(backend: backend) { |point| point.send(:x=, a: 1) } }.to raise_error(Ikra::CompileError, /make no Hash of keywords/)
    end

    it "may be private" do
      points = [Attributes::Point.new(1, 2)]
      expect { |point| point.secret }.to be_same_as_ruby.over(points)
      expect { |point| point.secret = 1 }.to be_same_as_ruby.over(points)
    end
  end
end
