# frozen_string_literal: true

module Exceptions
  class Account
    attr_accessor :balance, :log

    def initialize(balance)
      @balance = balance
      @log = [0, 0]
    end

    def withdraw(amount)
      @log[0] += 1
      @balance -= amount
      check
    end

    def check
      100 / (@balance < 0 ? 0 : 1)
    end
  end
end

RSpec.describe "An exception in a block" do
  accounts = ->(*balances) { balances.map { |balance| Exceptions::Account.new(balance) } }

  on_every_backend do
    it "is of a method that a Range or a lambda lacks, and of a Symbol where it stands" do
      expect { [1].pmap(backend:) { |x| (0..x) < 0 } }.to raise_error(NoMethodError, /undefined method [`']<' for an instance of Range/)
      adding = ->(x) { x + 1 }
      expect { [1].pmap(backend:) { |x| adding < x } }.to raise_error(NoMethodError, /undefined method [`']<' for an instance of Proc/)
      [-> { [2**63 - 1].pmap(backend:, &:succ) },
       -> { [2**63 - 1].pmap(backend:, &:succ) }].each do |call|
        place = "#{__FILE__}:#{call.source_location[1]}:"
        expect(&call).to raise_error(Ikra::IntegerOverflow) { |error| expect(error.backtrace.first).to start_with(place) }
        expect { [1].pmap(backend:, &:singleton_methods) }.to raise_error(Ikra::CompileError, /\A#{__FILE__}:#{__LINE__}:1: kernels do not know \w+#singleton_methods/)
      end
    end

    it "is Ruby's own, and tells element, tick and line", :stress do
      error = nil
      begin
        [4, 2, 0, 1].pmap(backend:) { |x| 8 / x }
      rescue ZeroDivisionError => error
      end
      expect([error.message, error.ikra.index, error.ikra.tick]).to eq(["divided by 0", 2, 0])
      expect(error.backtrace.first).to start_with("#{__FILE__}:#{__LINE__ - 4}")
      expect(error.backtrace[1]).to start_with("#{__FILE__}:#{__LINE__ - 5}")
      expect(error.backtrace.grep(%r{lib/ikra})).to be_empty
      expect(error.ikra.to_a).to eq([2, 0])
      expect(error).not_to be_a(Ikra::Error)
    end

    it "is of every class that blocks can raise" do
      list = [1, 2].freeze
      expect { |x| x / (x - 1) }.to be_same_as_ruby.over(2, 1)
      expect { |x| x.foo }.to be_same_as_ruby.over(nil)
      expect { |x| x > 1 ? x + nil : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x.to_i }.to be_same_as_ruby.over(1.0, Float::NAN, Float::INFINITY, -Float::INFINITY)
      expect { |x| x < 1 ? 1 : x < nil }.to be_same_as_ruby.over(0, 2)
      expect { |x| list[0] = x }.to be_same_as_ruby.over(1)
      expect { |x| x.zero? ? 1 : 1 << 100 }.to be_same_as_ruby.over(0, 1)
      expect { |x| Math.sqrt(x) }.to be_same_as_ruby.over(4.0, -1.0)
      expect { |x| x.clamp(3, 2) }.to be_same_as_ruby.over(1)
    end

    it "names the line in a method where it happened" do
      expect do |run|
        run.peach(accounts[10, 20], 3) { |account| account.withdraw(8) }
      end.to be_same_as_ruby
    end

    it "is the one that sequential Ruby meets first: of the least tick, then of the least index" do
      expect { |run| run.peach(accounts[50, 9, 30, 5], 10) { |account| account.withdraw(2) } }.to be_same_as_ruby
      expect { |run| run.pmap((0..9999).to_a) { |i| i > 500 && i % 7 == 0 ? i / 0 : i } }.to be_same_as_ruby
      expect { (0..999).peach(5, backend:) { |i| i == 900 ? 1 / 0 : i == 300 && Ikra.tick == 1 ? nil.foo : i } }
        .to raise_error(ZeroDivisionError) { |error| expect(error.ikra.to_a).to eq([900, 0]) }
    end

    it "leaves every object, array and captured variable as it was" do
      list = accounts[5, 50, 0]
      sum = 1
      last = :none
      before = Graph.of(list)
      expect do
        list.peach(5, backend:) do |account|
          sum += 1
          last = account.balance
          account.withdraw(10)
        end
      end.to raise_error(ZeroDivisionError)
      expect(Graph.of(list)).to eq(before)
      expect([sum, last]).to eq([1, :none])
    end

    it "does not come from elements after a break", :stress do
      result = [1, 2, 3, 0].pmap(backend:) do |x|
        break :early if x == 3
        6 / x
      end
      expect(result).to eq(:early)
      expect { [1, 0, 3].pmap(backend:) { |x| x == 3 ? (break :late) : 6 / x } }.to raise_error(ZeroDivisionError)
    end

    it "comes from the same element whatever the number of elements" do
      numbers = Array.new(100_000) { |i| i == 77_777 || i == 99_999 ? 0 : 3 }
      expect { numbers.pmap(backend:) { |x| 6 / x } }.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq(77_777) }
    end

    it "can be rescued as Ikra::Error where it is Ikra's own", :stress do
      expect { [2**62].pmap(backend:) { |x| x * 4 } }.to raise_error(Ikra::Error)
      expect { [1].pmap(backend:) { |x| puts x } }.to raise_error(Ikra::Error)
    end
  end
end
