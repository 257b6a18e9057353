# frozen_string_literal: true

# Constants and methods as blocks and methods see them, and the effect of changes between two calls.
module WorldSpec
  LIMIT = 10

  module Outer
    LIMIT = 20

    class Inner
      def limit = LIMIT
      def top = WorldSpec::LIMIT
      def self.build = new
    end
  end

  class Outer::Compact
    def limit = LIMIT
  end

  class Base
    attr_reader :value

    def initialize(value) = @value = value
    def name = :base
    def described = name == :derived ? value : -value
    def plus(other, twice: false) = twice ? value + other * 2 : value + other
  end

  module Loud
    def name = super == :base ? :loud : :odd
  end

  class Derived < Base
    include Loud
    def name = super == :loud ? :derived : :odd
  end

  class Hidden
    def go = secret
    private def secret = 42
  end
end

RSpec.describe "The live program" do
  it "resolves constants from the scopes around the code" do
    expect([WorldSpec::Outer::Inner.new].pmap(&:limit)).to eq [20]
    expect([WorldSpec::Outer::Inner.new].pmap(&:top)).to eq [10]
    expect([WorldSpec::Outer::Compact.new].pmap(&:limit)).to eq [10]
  end

  it "follows inheritance, modules and super" do
    expect([WorldSpec::Base.new(1), WorldSpec::Derived.new(2)]).to map_same_as_ruby(&:name)
    expect([WorldSpec::Base.new(1), WorldSpec::Derived.new(2)]).to map_same_as_ruby(&:described)
  end

  it "knows what is private" do
    expect([WorldSpec::Hidden.new]).to map_same_as_ruby(&:go)
    expect([WorldSpec::Hidden.new]).to map_same_as_ruby { |o| o.secret }
  end

  it "passes keywords" do
    expect([WorldSpec::Base.new(1), WorldSpec::Base.new(2.5)]).to map_same_as_ruby { |o| o.plus(3, twice: true) }
  end

  it "sees a method that is defined again" do
    shape = Class.new { def area = 1 }
    call = -> { [shape.new].pmap(&:area) }
    expect(call.call).to eq [1]
    redefine = ->(body) { shape.class_eval("remove_method :area; def area = #{body}", __FILE__, __LINE__) }
    redefine.call("2")
    expect(call.call).to eq [2]
    redefine.call("@side")
    expect(call.call).to eq [nil]
    shape.send(:private, :area)
    expect { [shape.new].pmap { |s| s.area } }.to raise_error(NoMethodError, /private method/)
  end

  it "sees a method that comes between" do
    parent = Class.new { def kind = 1 }
    child = Class.new(parent)
    call = -> { [child.new].pmap { |o| o.kind } }
    expect(call.call).to eq [1]
    child.class_eval("def kind = 2", __FILE__, __LINE__)
    expect(call.call).to eq [2]
    child.prepend(Module.new { def kind = 3 })
    expect(call.call).to eq [3]
  end

  it "sees a constant that changes" do
    stub_const("WorldSpec::CHANGING", 1)
    call = -> { [1].pmap { |x| x + WorldSpec::CHANGING } }
    expect(call.call).to eq [2]
    stub_const("WorldSpec::CHANGING", 5)
    expect(call.call).to eq [6]
    stub_const("WorldSpec::CHANGING", 0.5)
    expect(call.call).to eq [1.5]
  end

  it "sees a constant that appears" do
    call = -> { [1].pmap { |x| x > 0 ? WorldSpec::APPEARING : x } }
    expect { call.call }.to raise_error(NameError, "uninitialized constant WorldSpec::APPEARING")
    stub_const("WorldSpec::APPEARING", 7)
    expect(call.call).to eq [7]
  end

  it "uses the methods of one object's singleton class" do
    one, other = Array.new(2) { WorldSpec::Base.new(1) }
    def one.name = :singular
    expect([one, other].pmap(&:name)).to eq %i[singular base]
  end

  it "sees self of the caller, its ivars and private methods" do
    @offset = 10
    def self.shifted(x) = x + @offset
    expect([1, 2].pmap { |x| shifted(x) + @offset }).to eq [21, 22]
    @offset = 0.5
    expect([1, 2].pmap { |x| shifted(x) + @offset }).to eq [2.0, 3.0]
  end

  it "keeps apart the types of different calls" do
    add = ->(values) { values.pmap { |x| x + 1 } }
    expect([[1], [1.5], [2], [2.5], [1, 2.5]].map(&add)).to eq [[2], [2.5], [3], [3.5], [2, 3.5]]
  end
end
