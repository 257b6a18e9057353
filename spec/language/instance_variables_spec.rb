# frozen_string_literal: true

module InstanceVariables
  class Account
    def initialize(balance)
      @balance = balance
    end

    def deposit(amount)
      @balance += amount
      @deposits = @deposits.to_i + 1
      @last = amount
    end

    def forget
      @last = nil
    end

    def rate!(rate)
      @rate ||= rate
      @balance &&= @balance * @rate
      @balance, @before = @balance + 1, @balance
    end
  end

  class Everything
    attr_reader :integer, :float, :truth, :symbol, :nothing, :other

    def initialize(integer, float, truth, symbol, other = nil)
      @integer = integer
      @float = float
      @truth = truth
      @symbol = symbol
      @nothing = nil
      @other = other
    end

    def turn
      @integer, @float = @float.to_i, @integer.to_f
      @truth = !@truth
      @symbol = @truth ? :yes : :no
      @nothing = @other
    end
  end
end

RSpec.describe "Instance variables" do
  on_every_backend do
    it "is read and written by methods" do
      expect do |run|
        accounts = [0, 100, -5].map { |n| InstanceVariables::Account.new(n) }
        run.peach(accounts) do |account|
          account.deposit(10)
          account.deposit(5) if account.instance_of?(InstanceVariables::Account)
        end
      end.to be_same_as_ruby
    end

    it "is nil where it was never set" do
      expect do |run|
        accounts = [1, 2].map { |n| InstanceVariables::Account.new(n) }
        accounts[0].forget
        run.peach(accounts, 3) { |account| account.deposit(1) }
      end.to be_same_as_ruby
    end

    it "has operator and multiple assignment" do
      expect do |run|
        accounts = [1, 2.5, nil].map { |n| InstanceVariables::Account.new(n) }
        run.peach(accounts.first(2), 2) { |account| account.rate!(3) }
        accounts
      end.to be_same_as_ruby
    end

    it "holds every kind of value, to the last bit" do
      expect do |run|
        things = [
          InstanceVariables::Everything.new(Values::MIN, -0.0, true, :a),
          InstanceVariables::Everything.new(Values::MAX, 1e-320, false, :"with space"),
          InstanceVariables::Everything.new(0, 5.75, nil, nil, InstanceVariables::Account.new(1))
        ]
        run.peach(things) { |thing| thing.turn }
        things
      end.to be_same_as_ruby
    end

    it "gives back what it holds" do
      things = [
        InstanceVariables::Everything.new(Values::MIN, Float::NAN, true, :a),
        InstanceVariables::Everything.new(Values::MAX, -Float::INFINITY, nil, :"ö", InstanceVariables::Account.new(1))
      ]
      expect { |thing| thing.integer }.to be_same_as_ruby.over(things)
      expect { |thing| thing.float }.to be_same_as_ruby.over(things)
      expect { |thing| thing.truth }.to be_same_as_ruby.over(things)
      expect { |thing| thing.symbol }.to be_same_as_ruby.over(things)
      expect { |thing| thing.nothing }.to be_same_as_ruby.over(things)
      expect { |thing| thing.other }.to be_same_as_ruby.over(things)
    end

    it "may change its type in a kernel" do
      expect do |run|
        accounts = [1, 2].map { |n| InstanceVariables::Account.new(n) }
        run.peach(accounts) { |account| account.deposit(0.5) }
        run.peach(accounts) { |account| account.forget }
        run.pmap(accounts) { |account| account.deposit(2) }
      end.to be_same_as_ruby
    end
  end
end
