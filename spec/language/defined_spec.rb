# frozen_string_literal: true

def defined_at_the_top; end

module Defined
  class Base
    def inherited(*) = 1
  end

  # An object that responds to a name without having a method for it.
  class Ghost
    def respond_to_missing?(name, _all) = name == :seen
    def method_missing(name, *) = name

    private

    def hidden = 1
  end

  # Each method tests one expression.
  class Asking < Base
    INSIDE = 3
    @@shared = 1

    attr_accessor :plain

    def initialize
      @given = 1
      @plain = 2
    end

    def variables(x)
      [defined?(x), defined?(@given), defined?(@@shared), defined?(@@none), defined?(self), defined?((x)), defined?(())]
    end

    def literals(x) = [defined?(nil), defined?(true), defined?(false), defined?(1), defined?("a"), defined?(:a), defined?([x, 1]), defined?([nope])]

    def constants(x)
      [
        defined?(Asking), defined?(Nope), defined?(INSIDE), defined?(Asking::INSIDE), defined?(Asking::Nope), defined?(Nope::Deep),
        defined?(::String), defined?(::Nope), defined?(Math::PI), defined?(x::Nope)
      ]
    end

    def calls(x)
      [
        defined?(x.succ), defined?(x.nope), defined?(x + 1), defined?(x + nope), defined?(x.succ.succ), defined?(x.nope.succ), defined?(x[0]),
        defined?(-x), defined?(!x), defined?(!nope), defined?(x != nope), defined?(x.then { 1 }), defined?(nope { 1 })
      ]
    end

    def functions(x)
      [
        defined?(calls), defined?(nope), defined?(nope(1)), defined?(calls(nope)), defined?(calls(*[x])), defined?(calls(a: x)),
        defined?(puts), defined?(defined_at_the_top), defined?(hidden), defined?(self.hidden), defined?(Integer(x)), defined?(block_given?)
      ]
    end

    # rubocop:disable Lint/UselessAssignment
    def setters(other) = [defined?(other.plain = 1), defined?(other.nope = 1), defined?(other.plain = nope), defined?(other.plain += 1), defined?(x = 1)]
    # rubocop:enable Lint/UselessAssignment

    def expressions(x) = [defined?(x && nope), defined?(if nope then x end), defined?((x; nope)), defined?(-> { nope }), defined?(x ? 1 : nope), defined?(1..2)]

    def visibility(other, ghost) = [defined?(other.guarded), defined?(other.hidden), defined?(ghost.seen), defined?(ghost.unseen), defined?(ghost.hidden)]

    def raising(x) = [defined?((1 / x).succ), defined?((1 / x).nope)]

    def inherited(x) = [defined?(super), defined?(super(nope)), defined?(yield)]
    def first(_x) = defined?(super)
    def given(x) = block_given? ? [defined?(yield), yield(x)] : defined?(yield)

    protected

    def guarded = 1

    private

    def hidden = 1
  end
end

module Defined
  # Sections within methods that get a block, or none.
  class Sections
    def initialize(backend) = @backend = backend
    def plain(list) = list.pmap(backend: @backend) { |x| [defined?(yield), block_given? ? x : 0] }

    def nested(list)
      asks = ->(x) { defined?(yield) ? x : nil }
      list.pmap(backend: @backend) { |x| [[x].sum { |y| defined?(yield) ? yield(y) : 0 }, asks.(x)] }
    end
  end
end

RSpec.describe "defined?" do
  on_every_backend do
    let(:asking) { Defined::Asking.new }

    it "answers for variables, literals, constants and expressions" do
      object = asking
      expect { |x| [object.variables(x), object.literals(x), object.constants(x), object.expressions(x)] }.to be_same_as_ruby.over(1, 2.5, :a)
    end

    it "answers for methods, their receivers and their arguments" do
      object = asking
      expect { |x| [object.calls(x), object.functions(x), object.setters(object)] }.to be_same_as_ruby.over(1, 2.5)
    end

    it "answers by the kind of the receiver" do
      expect { |x| [defined?(x.succ), defined?(x.nan?), defined?(x.sum), defined?(x.to_i)] }.to be_same_as_ruby.over(1, 2.5, nil, [[1]])
    end

    it "asks for visibility, and respond_to_missing?" do
      object = asking
      ghost = Defined::Ghost.new
      expect { |_| [object.visibility(object, ghost), defined?(object.guarded)] }.to be_same_as_ruby.over(1)
    end

    it "is nil where a receiver raises" do
      object = asking
      expect { |x| object.raising(x) }.to be_same_as_ruby.over(0, 1)
    end

    it "calls what it asks about only as a receiver, and once" do
      expect do |x|
        seen = 0
        count = ->(y) { seen += y }
        [defined?(count.call(x).succ), defined?(count.call(x)), seen]
      end.to be_same_as_ruby.over(1, 2)
    end

    it "answers for super and yield" do
      object = asking
      expect { |x| [object.inherited(x), object.first(x), object.given(x), object.given(x) { |y| y }] }.to be_same_as_ruby.over(1)
    end
  end

  it "is refused for an instance variable that may be nil" do
    ghost = Defined::Asking.new
    ghost.instance_variable_set(:@given, nil)
    expect { [1].pmap { |x| ghost.variables(x) } }.to raise_error(Ikra::CompileError, /defined\?\(@given\) where @given may be nil/)
  end

  # Ruby 3.4 also tests the contents of splats, keywords, Hashes, `&.` and `begin`.
  it "is refused where versions of Ruby give different answers" do
    object = Object.new
    [
      proc { |x| defined?(puts(*object.nope)) }, proc { |x| defined?(puts(a: nope)) }, proc { |x| defined?({ a: nope }) },
      proc { |x| defined?([*nope]) }, proc { |x| defined?(x&.succ) }, proc { |x| defined?(begin; nope; end) }
    ].each { |block| expect { [1].pmap(&block) }.to raise_error(Ikra::CompileError, /some versions of Ruby/) }
  end

  it "is asked again when a constant has come up since" do
    asks = -> { [1].pmap { |_| defined?(Defined::LATER) } }
    expect(asks.call).to eq([nil])
    Defined.const_set(:LATER, 1)
    expect(asks.call).to eq(["constant"])
  ensure
    Defined.send(:remove_const, :LATER)
  end

  it "asks for the block of the method around a section" do
    [:reference, :cpu].each do |backend|
      asked = Defined::Sections.new(backend)
      expect([asked.plain([1]), asked.plain([1]) { |x| x }, asked.plain([1])]).to eq([[[nil, 0]], [["yield", 1]], [[nil, 0]]])
      expect([asked.nested([2]) { |x| x + 1 }, asked.nested([2])]).to eq([[[3, 2]], [[0, nil]]])
    end
  end
end
