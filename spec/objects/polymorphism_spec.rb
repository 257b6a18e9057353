# frozen_string_literal: true

module Polymorphism
  class Actor
    attr_reader :at, :log

    def initialize(at)
      @at = at
    end

    def move(by)
      @at += by * factor
      arrive if @at > 100
    end

    def factor = 1
    def arrive = @at = 0
  end

  # Fifty classes, every one with a method of its own; every third below another.
  KINDS = Array.new(50) do |i|
    parent = i % 3 == 2 ? const_get("Kind#{i - 1}") : Actor
    kind = const_set("Kind#{i}", Class.new(parent))
    kind.class_eval("def factor = #{i} + super", __FILE__, __LINE__) if i.even?
    kind.class_eval("def arrive = @at -= #{100 + i}", __FILE__, __LINE__) if i % 5 == 0
    kind
  end

  # A hierarchy of its own.
  class Machine
    attr_accessor :at, :next_machine

    def initialize(at, next_machine = nil)
      @at = at
      @next_machine = next_machine
    end

    def move(by)
      @at -= by
      @next_machine
    end
  end

  class Holder
    def initialize(*things)
      @first, @second, @third = things
    end

    def total
      value(@first) + value(@second) * 10 + value(@third) * 100
    end

    def value(thing)
      case thing
      when Numeric then thing
      when nil, false then -1
      when true then 1
      when Symbol then 2
      else thing.at
      end
    end

    def rotate
      @first, @second, @third = @second, @third, @first
    end
  end
end

RSpec.describe "Objects of many classes" do
  on_every_backend do
    it "dispatches to fifty classes of one hierarchy" do
      expect do |run|
        actors = Array.new(200) { |i| Polymorphism::KINDS[i * 7 % 50].new(i) }
        run.peach(actors, 5) { |actor| actor.move(3) }
        run.pmap(actors) { |actor| actor.at }
      end.to be_same_as_ruby
    end

    it "dispatches across hierarchies, where elements are objects of unrelated classes" do
      expect do |run|
        mixed = Array.new(40) { |i| i % 3 == 0 ? Polymorphism::Machine.new(i) : Polymorphism::KINDS[i].new(i) }
        run.peach(mixed, 3) { |thing| thing.move(2) }
        run.pmap(mixed) { |thing| thing.at }
      end.to be_same_as_ruby
    end

    it "takes numbers, nil and objects in one array" do
      expect do |run|
        mixed = [1, Polymorphism::Machine.new(5), 2.5, nil, Polymorphism::KINDS[2].new(7), :a, true]
        run.pmap(mixed) do |thing|
          case thing
          when Integer then thing * 2
          when Float then thing / 2
          when nil then :nothing
          when Symbol, true then thing
          else thing.move(1)
          end
        end
      end.to be_same_as_ruby
    end

    it "takes an array with numbers of both kinds" do
      expect { |x| x * 2 + 1 }.to be_same_as_ruby.over(1, 2.5, -3, 1e300)
    end

    it "stores values of three types and more in one variable" do
      expect do |run|
        machine = Polymorphism::Machine.new(9)
        holders = [[1, 2.5, nil], [machine, true, :a], [Polymorphism::KINDS[0].new(3), 7, machine], [false, nil, -0.0]]
        holders.map! { |things| Polymorphism::Holder.new(*things) }
        run.peach(holders, 2) { |holder| holder.rotate }
        run.pmap(holders) { |holder| holder.total }
      end.to be_same_as_ruby
    end

    it "answers for a method that one of ten classes lacks only where an object of it comes" do
      classes = Array.new(10) do |i|
        Class.new do
          define_singleton_method(:name) { "Kind#{i}" }
          class_eval("def number = #{i}", __FILE__, __LINE__) unless i == 7
        end
      end
      expect { |x| x.number }.to be_same_as_ruby.over(classes.first(7).map(&:new))
      expect { |x| x.respond_to?(:number) ? x.number : -1 }.to be_same_as_ruby.over(classes.map(&:new))
      expect { classes.map(&:new).pmap(backend:) { |x| x.number } }
        .to raise_error(NoMethodError, /undefined method .number. for (#<.*>|an instance of Kind7)/) { |error| expect(error.ikra.index).to eq(7) }
    end

    it "gives each class its own idea of an instance variable" do
      expect do |run|
        things = [Polymorphism::Machine.new(1, 2), Polymorphism::Machine.new(1.5, :a), Polymorphism::Machine.new(nil, 2.5), Polymorphism::Machine.new(0)]
        run.pmap(things) { |thing| thing.next_machine }
      end.to be_same_as_ruby
    end

    it "refuses objects of more classes than tags tell apart, unless these have a superclass in common" do
      objects = lambda do |count, superclass|
        Array.new(count) { |i| Class.new(superclass) { def number = @number }.new.tap { |x| x.instance_variable_set(:@number, i) } }
      end
      expect(objects.(240, Object).pmap(backend:) { |x| x.number }).to eq((0...240).to_a)
      expect { objects.(241, Object).pmap(backend:) { |x| x.number } }.to raise_error(Ikra::CompileError, /too many unrelated classes.*240 classes.*common superclass/m)
      expect(objects.(260, Class.new).pmap(backend:) { |x| x.number }).to eq((0...260).to_a)
    end
  end
end
