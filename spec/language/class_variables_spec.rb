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

  # Blocks that set class variables.
  class Kept
    @@other = 0

    def self.other = @@other
    def self.note(x) = @@kept = x

    def self.start
      @@kept = 2
      @@list = [5]
    end

    BLOCKS = {
      last: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept = x } },
      sometimes: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept = x * 1.5 if x > 1 && x < 4 } },
      never: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept = x if x > 100 } },
      read: ->(list, *run, **options) { list.public_send(*run, **options) { |x| (@@kept = x * 2) && @@kept + 1 } },
      product: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept *= x } },
      power: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept = x; @@kept **= 2 } }, # rubocop:disable Style/Semicolon
      most: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept = x if x > @@kept } },
      least: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept = [@@kept, -x].min } },
      less: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept -= x } },
      sum: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept = @@kept + x } }, # rubocop:disable Style/SelfAssignment
      pair: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept, @@list = x, [x, x] } },
      other: ->(list, *run, **options) { list.public_send(*run, **options) { |x| (@@kept = x) + Kept.other } },
      within: ->(list, *run, **options) { list.public_send(*run, **options) { |x| [x, 1].each { |y| @@kept = y } } },
      with: ->(list, *run, **options) { list.public_send(*run, **options) { |x| @@kept = x; @@other += @@kept } } # rubocop:disable Style/Semicolon
    }.freeze

    def self.all = [@@kept, @@list, @@other]
    def self.before(list, backend) = list.pmap(backend:) { |x| [@@kept, @@kept = x] }
    def self.carried(list, backend) = list.pmap(backend:) { |x| @@kept = [x] if @@kept.nil? }
    def self.elsewhere(list, backend) = list.pmap(backend:) { |x| (@@kept = x) && note(x) }
    def self.first(list, backend) = list.pmap(backend:) { |x| @@first = x }
  end

  # Sees a variable of its superclass.
  class Keeping < Kept
    def self.over(list, backend) = list.peach(backend:) { |x| @@kept = x + 0.5 }
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

    it "are set and combined by a block of the class as captured variables are" do
      ClassVariables::Kept::BLOCKS.each do |name, block|
        runs = { peach: :each }
        runs[:pmap] = :map if %i[last sometimes read pair other within].include?(name)
        runs.each do |run, plain|
          results = [[run, { backend: }], [plain, {}]].map do |called, options|
            ClassVariables::Kept.start
            ran = block.call([3, 1, 4], called, **options)
            [name, ran, ClassVariables::Kept.all]
          end
          others = results.map { |result| result[2].pop }
          expect(results[0]).to eq results[1]
          expect(others[1] - others[0]).to eq(name == :with ? 8 : 0)
        end
      end
    end

    it "are set by the last tick, in a scope, too, and through a subclass" do
      ClassVariables::Kept.start
      Ikra.resident { 2.times { ClassVariables::Keeping.over([1, 2], backend) } }
      expect(ClassVariables::Kept.all.first).to eq 2.5
      ClassVariables::Kept.start
      ClassVariables::Kept::BLOCKS[:product].call([1, 2], :peach, 3, backend:)
      expect(ClassVariables::Kept.all.first).to eq 16
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

  it "are not read before they are set, nor used elsewhere where a block sets them" do
    kept = ClassVariables::Kept
    kept.start
    refused = ->(name) { kept.public_send(name, [1], :reference) }
    expect { refused.(:before) }.to raise_error(Ikra::CompileError, /@@kept is read here before this element has assigned it/)
    expect { refused.(:carried) }.to raise_error(Ikra::CompileError, /@@kept is read here before this element has assigned it/)
    expect { refused.(:elsewhere) }.to raise_error(Ikra::CompileError, /@@kept is used here, and the section's block sets it/)
    expect { refused.(:first) }.to raise_error(Ikra::CompileError, /kernels do not assign @@first here/)
  end

  it "are not assigned where they have no value yet, or their class is frozen" do
    expect(refusal { |_| ClassVariables::Base.begin_count }).to eq "kernels do not assign @@count here"
    expect(refusal { |_| ClassVariables::Solid.count }).to eq "kernels do not assign @@count here"
  end
end
