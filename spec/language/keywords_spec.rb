# frozen_string_literal: true

# Keywords for methods without keyword parameters: Ruby makes a Hash of them.
module Keywords
  class Base
    def size(hash) = hash.size
    def any(*list) = list.size
    def maybe(hash = nil) = hash.nil? ? 0 : 1
    def ==(other) = !other.nil?
    def [](index) = index.nil?
    def method_missing(name, *args) = name == :any_name ? args.size : super
    def respond_to_missing?(name, all = false) = name == :any_name || super
  end

  class Derived < Base
    def size(x) = super(a: x)
    def any(x) = super(a: x)
  end

  class Made
    attr_reader :given

    def initialize(hash = nil)
      @given = hash.nil? ? 0 : 1
    end
  end

  def self.yields(x) = yield(a: x)
  def self.declares(x, by: 1) = x * by
  def self.needs(x, by:, to: 1) = x * by + to
  def self.needs_two(by:, to:) = by * to
  def self.forwards(...) = declares(...)

  FORMS = {
    "a method" => ->(x) { Base.new.size(a: x) }, "a method with a splat" => ->(x) { Base.new.any(a: x) }, "both" => ->(x) { Base.new.any(x, a: x) },
    "an optional parameter" => ->(x) { Base.new.maybe(a: x) }, "super" => ->(x) { Derived.new.size(x) }, "super with a splat" => ->(x) { Derived.new.any(x) },
    "send" => ->(x) { Base.new.send(:maybe, a: x) }, "public_send" => ->(x) { Base.new.public_send(:any, a: x) }, "method_missing" => ->(x) { Base.new.any_name(a: x) },
    "an operator" => ->(x) { Base.new.==(a: x) }, "an index" => ->(x) { Base.new[a: x] }, "new" => ->(x) { Made.new(a: x).given }, "yield" => ->(x) { Keywords.yields(x) { |h| h.nil? } },
    "yield to a splat" => ->(x) { Keywords.yields(x) { |*h| h.size } }, "a proc" => ->(x) { proc { |h| h.nil? }.call(a: x) }, "a lambda" => ->(x) { ->(h) { h.nil? }.call(a: x) },
    "push" => ->(x) { list = []; list.push(a: x); list.size }
  }.freeze
end

RSpec.describe "Keywords" do
  on_every_backend do
    it "are refused by what declares none, whatever rescues" do
      Keywords::FORMS.each do |what, form|
        expect { [1].pmap(backend:, &form) }.to raise_error(Ikra::CompileError, /Hash of keywords|Array#push/), what
      end
      expect { [1].pmap(backend:) { |x| Keywords::Base.new.size(a: x) rescue 0 } }.to raise_error(Ikra::CompileError, /Keywords::Base#size declares none/)
      expect { [1].pmap(backend:) { |x| loop(a: x) { break x } } }.to raise_error(Ikra::CompileError, /loop with keywords/)
    end

    it "are ArgumentErrors where others are declared" do
      expect { |x| Keywords.declares(x, by: x) }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? Keywords.declares(x, to: 1) : 0 }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? Keywords.declares(by: 1) : 0 }.to be_same_as_ruby.over(1, 2)
      expect { |x| Keywords.yields(x) { 3 } }.to be_same_as_ruby.over(1, 2)
    end

    it "that are required are named with wrong numbers of arguments" do
      expect { |x| x > 1 ? Keywords.needs(by: 1) : 0 }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? Keywords.needs(x, x, by: 1) : 0 }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? Keywords.needs_two(x) : 0 }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? ->(a, by:) { a + by }.call(by: 1) : 0 }.to be_same_as_ruby.over(1, 2)
    end

    it "of procs, and `...`, are refused" do
      expect { [1].pmap(backend:) { |x| proc { |a, by:| a + by }.call(x, by: 2) } }.to raise_error(Ikra::CompileError, /only plain parameters of blocks/)
      expect { [1].pmap(backend:) { |x| Keywords.forwards(x, x) } }.to raise_error(Ikra::CompileError, /argument forwarding/)
    end

    it "or other arguments find no method of instances in their class" do
      expect { [1].pmap(backend:) { |x| Hash[x, 2].size } }.to raise_error(Ikra::CompileError, /kernels do not know Hash\.\[\]/)
    end
  end
end
