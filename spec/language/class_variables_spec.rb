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

    def self.begin_count = @@count = 1

    def scaled(x) = (@@rate * x) + @@steps[0]
    def missing = @@missing
    def over(list, run) = list.public_send(run) { |x| x + @@rate }
  end

  class Sums
    attr_reader :factor

    def self.start
      @@sum = 0
      @@rest = 1.5
      @@factor = 5
    end

    start

    def initialize(x)
      @@sum += x
      @factor = @@factor * x
    end

    def self.add(x)
      @@sum += x
      true
    end

    def self.add_and_read(x)
      @@sum += x
      @@sum
    end

    def self.count = @@sum += 1
    def self.all = [@@sum, @@rest, @@factor]

    def self.over(list, backend)
      list.peach(backend:) { |x| @@sum += x }
      @@sum
    end
  end

  class Part < Sums
    def initialize; end # rubocop:disable Lint/MissingSuper

    def less(x) = @@rest -= x # rubocop:disable Lint/Void
  end

  class Solid
    @@count = 0

    def self.count = @@count += 1

    freeze
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

    # The class variables after a section, and after plain Ruby.
    def same_sums(list, ticks = 1, &block)
      ikra, ruby = [->(l) { l.peach(ticks, backend:, &block) }, ->(l) { ticks.times { l.each(&block) } }].map do |run|
        ClassVariables::Sums.start
        run.call(list)
        ClassVariables::Sums.all
      end
      expect(ikra).to eq ruby
    end

    it "are added to, as what elements share is" do
      same_sums([1, 2, 3]) { |x| ClassVariables::Sums.add(x) }
      same_sums([1, 2, 3], 3) { |x| ClassVariables::Sums.add(x) && ClassVariables::Part.new.less(x) }
      same_sums((1..1000).to_a) { |x| ClassVariables::Part.new.less(x) }
      ClassVariables::Sums.start
      made = [1, 2, 3].pmap(backend:) { |x| ClassVariables::Sums.new(x) }
      expect([made.map(&:factor), ClassVariables::Sums.all]).to eq [[5, 10, 15], [6, 1.5, 5]]
    end

    it "are added to in a block of the class, in a scope, too" do
      ClassVariables::Sums.start
      ClassVariables::Sums.over([1, 2], backend)
      seen = []
      Ikra.resident { 2.times { seen << ClassVariables::Sums.over([1, 2], backend) } }
      expect(seen).to eq [6, 9]
    end

    it "are as they were where the section raises" do
      ClassVariables::Sums.start
      expect { [1, 0].peach(backend:) { |x| ClassVariables::Sums.add(1 / x) } }.to raise_error(ZeroDivisionError)
      expect(ClassVariables::Sums.all).to eq [0, 1.5, 5]
    end
  end

  def refusal(...)
    [1].pmap(backend: :reference, &proc(...))
    nil
  rescue Ikra::CompileError => e
    e.message.lines.first[/\d+: (.*)/, 1]
  end

  it "are not set by every element, nor read beside additions" do
    expect(refusal { |x| ClassVariables::Base.rate = x }).to eq "every element writes @@rate here"
    expect(refusal { |_| ClassVariables::Sums.count }).to eq "every element writes @@sum here"
    expect(refusal { |x| ClassVariables::Sums.add_and_read(x) })
      .to eq "every element adds to @@sum, and @@sum is read or set in this section as well"
  end

  it "are not assigned where they have no value yet, or their class is frozen" do
    expect(refusal { |_| ClassVariables::Base.begin_count }).to eq "kernels do not assign @@count here"
    expect(refusal { |_| ClassVariables::Solid.count }).to eq "kernels do not assign @@count here"
  end
end
