# frozen_string_literal: true

module Dynamic
  class Ghost
    def initialize(v) = @v = v

    def method_missing(name, n = 1, **)
      case name
      when :double then @v * 2 * n
      when :triple then @v * 3 * n
      else super
      end
    end

    def respond_to_missing?(name, _all) = name == :double || name == :triple

    def known = 5

    private

    def hidden(n) = n + @v
  end

  class Swallow
    def method_missing(*) = 7
    def respond_to_missing?(*) = true
  end
end

RSpec.describe "Names that are known when compiling" do
  on_every_backend do
    it "calls by name" do
      g = Dynamic::Ghost.new(3)
      expect([1, 2]).to map_same_as_ruby { |x| g.send(:hidden, x) + g.public_send(:known) + x.__send__(:+, 4) + x.send(:fdiv, 2) }
      expect { |x| g.public_send(:hidden, x) }.to be_same_as_ruby.over(1)
    end
  end

  on_every_backend do
    it "reads and writes instance variables by name" do
      expect { |run| run.peach([Dynamic::Ghost.new(1), Dynamic::Ghost.new(2)]) { |g| g.instance_variable_set(:@v, g.instance_variable_get(:@v) + 5) } }
        .to be_same_as_ruby
    end
  end

  it "calls method_missing with the name, and asks respond_to_missing?" do
    g = Dynamic::Ghost.new(3)
    s = Dynamic::Swallow.new
    expect([1, 2]).to map_same_as_ruby { |x|
      sum = g.double + g.triple(x) + s.anything(x, 5)
      sum += 100 if g.respond_to?(:double)
      sum += 200 if g.respond_to?(:other)
      sum += 400 if s.respond_to?(:other)
      sum
    }
  end

  it "refuses a name that is found at run time" do
    names = %i[succ pred]
    expect { [1].pmap { |x| x.send(names[0]) } }.to raise_error(Ikra::CompileError, /literal Symbol/)
  end
end
