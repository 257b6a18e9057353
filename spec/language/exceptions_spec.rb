# frozen_string_literal: true

require "timeout"

module LanguageExceptions
  class Broke < StandardError; end

  # Its message and its data come from an initialize of its own.
  class Overdrawn < Broke
    attr_reader :amount, :account

    def initialize(amount, account: nil)
      @amount = amount
      @account = account
      super("overdrawn by #{amount}")
    end
  end

  class Worded < StandardError
    def message = "said: #{super}"
  end

  module Temporary; end

  class Busy < IOError
    include Temporary
  end

  class Account
    attr_accessor :balance, :failures

    def initialize(balance)
      @balance = balance
      @failures = 0
    end

    def withdraw(amount)
      raise Overdrawn.new(amount - @balance, account: self) if amount > @balance

      @balance -= amount
    end

    def try(amount)
      withdraw(amount)
    rescue Broke
      @failures += 1
    end
  end

  class << self
    def divide(x, y)
      x / y
    end

    def or_else(x, y)
      divide(x, y)
    rescue ZeroDivisionError, TypeError => e
      e.is_a?(TypeError) ? :type : :zero
    else
      :fine
    ensure
      x + y unless y.nil?
    end

    def returns(x)
      begin
        return x if x < 2
        raise "lost" if x < 4

        10
      ensure
        return 100 + x if x.odd?
      end
    end

    def down(n)
      raise Broke, "at the bottom" if n.zero?

      begin
        down(n - 1) + 1
      ensure
        raise KeyError if n == 4
      end
    end

    def twice(x) = x * 2

    def swallows(x)
      tries = 0
      begin
        tries += 1
        twice(x)
      rescue StandardError
        retry if tries < 3
        :swallowed
      end
    end

    def again = raise

    def modifier(x) = (10 / x rescue -1)

    def sum_of_inverses(list)
      list.each_index do |i|
        100 / list[i]
      rescue ZeroDivisionError
        return i
      end
      -1
    end
  end
end

module Messages
  class TooFar < StandardError; end

  def self.check(x, by: 1)
    raise TooFar, "#{x} is #{by} too far" if x > 5
    raise ArgumentError, "#{x}#{nil}" unless by
    raise IndexError.new("at #{x.abs} of #{:all}, #{x / 2.0}") if x < 0

    x
  end
end

RSpec.describe "Exceptions" do
  on_every_backend do
    it "have messages with interpolation, in the method that raises and elsewhere" do
      expect do |x|
        Messages.check(x)
      rescue Messages::TooFar, IndexError => e
        e.message.upcase
      end.to be_same_as_ruby.over(1, -3, 7)
      expect do |x, by|
        [Messages.check(x, by: by), ""]
      rescue => e
        [0, e.message]
      end.to be_same_as_ruby.over([1, 2], [9, "é"], [9, 2.5], [1, nil], [-1, :b])
      expect do |x|
        raise IOError, (x > 1 ? "no #{x}" : "yes")
      rescue => e
        "#{e.message}!"
      end.to be_same_as_ruby.over(1, 2)
    end

    it "keep messages with interpolation where others are asked for theirs" do
      expect do |x|
        Messages.check(x)
      rescue IndexError => e
        e.message
      end.to be_same_as_ruby.over(7, 1, -3)
      expect { |x| raise IOError, (x > 1 ? "no #{x}" : "yes") }.to be_same_as_ruby.over(1, 2)
    end

    it "are rescued by class, in order" do
      expect { |x| LanguageExceptions.or_else(10, x) }.to be_same_as_ruby.over(2, 0, nil, -3)
      expect { |x| LanguageExceptions.modifier(x) }.to be_same_as_ruby.over(3, 0, 2.5)
      expect do |x|
        case x
        when 0 then 1 / x
        when 1 then nil.foo
        when 2 then Float::NAN.to_i
        when 3 then x + nil
        else Integer.sqrt(x)
        end
      rescue ZeroDivisionError, FloatDomainError
        :number
      rescue NameError
        :name
      rescue => e
        e.is_a?(TypeError) ? :type : :other
      end.to be_same_as_ruby.over(0, 1, 2, 3, 9, -4)
    end

    it "are rescued by lists of classes" do
      few = [ZeroDivisionError, TypeError]
      none = []
      modules = [Comparable, ArgumentError]
      expect { |x| begin; 6 / x; rescue *few => e; e.is_a?(TypeError) ? :type : :zero; end }.to be_same_as_ruby.over(0, 2, nil)
      expect { |x| begin; 6 / x; rescue *modules, *none, NoMethodError, *few; -1; end }.to be_same_as_ruby.over(0, 2)
      expect { |x| begin; x > 2 ? Integer("z") : 6 / x; rescue *few; 1; rescue *modules; 2; end }.to be_same_as_ruby.over(0, 2, 3)
      expect { |x| begin; 6 / x; rescue *none; -1; end }.to be_same_as_ruby.over(0, 2)
      expect { |x| begin; 6 / 0; rescue *[[TypeError], [ZeroDivisionError]][x]; 3; rescue ZeroDivisionError; 5; end }.to be_same_as_ruby.over(0, 1)
      expect { [1].pmap(backend: backend) { |x| begin; x; rescue *[x]; 3; end } }.to raise_error(Ikra::CompileError, /classes and modules/)
    end

    it "match no clause of another class" do
      expect do |x|
        begin
          raise LanguageExceptions::Broke if x == 1
          raise LanguageExceptions::Busy, "busy #{x}" if x == 2
          raise NotImplementedError if x == 3

          10 / x
        rescue KeyError, FrozenError
          :wrong
        end
      rescue LanguageExceptions::Temporary
        :temporary
      rescue
        :standard
      end.to be_same_as_ruby.over(0, 1, 2, 5)
    end

    it "leave the section with their own class, message, place and line" do
      error = nil
      begin
        [5, 3, 0, 1].pmap(backend:) do |x|
          raise LanguageExceptions::Worded, "#{x} and #{x * 0.5} and #{:sym} and #{nil}." if x < 1

          x
        end
      rescue LanguageExceptions::Worded => error
      end
      expect(error.message).to eq("said: 0 and 0.0 and sym and .")
      expect(error.ikra.to_a).to eq([2, 0])
      expect(error.backtrace.first).to start_with("#{__FILE__}:#{__LINE__ - 8}")
    end

    it "are made by their own initialize" do
      accounts = [10, 2, 7].map { |balance| LanguageExceptions::Account.new(balance) }
      expect { accounts.peach(3, backend:) { |account| account.withdraw(3) } }
        .to raise_error(LanguageExceptions::Overdrawn) { |error|
          expect(error.message).to eq("overdrawn by 1")
          expect(error.amount).to eq(1)
          expect(error.account).to be(accounts[1])
          expect(error.ikra.to_a).to eq([1, 0])
          line = LanguageExceptions::Account.instance_method(:withdraw).source_location.last + 1
          expect(error.backtrace.first).to start_with("#{__FILE__}:#{line}")
        }
      expect(accounts.map(&:balance)).to eq([10, 2, 7])
    end

    it "that are rescued leave done what was done" do
      expect do |run|
        accounts = [10, 2, 7].map { |balance| LanguageExceptions::Account.new(balance) }
        run.peach(accounts, 4) { |account| account.try(3) }
      end.to be_same_as_ruby
    end

    it "run ensure on every way out" do
      expect { |x| LanguageExceptions.returns(x) }.to be_same_as_ruby.over(0, 1, 2, 3, 4, 5)
      expect do |x|
        n = 0
        r = 4.times do |i|
          begin
            next if x == 1 && i == 0
            break i * 100 if i == x
            raise LanguageExceptions::Broke if x == 3
          rescue LanguageExceptions::Broke
            n += 1000
          ensure
            n += 1
          end
        end
        r * 10 + n
      end.to be_same_as_ruby.over(0, 1, 2, 3, 9)
    end

    it "climb out of recursion and iterators" do
      expect do |x|
        LanguageExceptions.down(x)
      rescue LanguageExceptions::Broke, IndexError => e
        KeyError === e ? :key : :broke
      end.to be_same_as_ruby.over(0, 1, 3, 4, 9)
      list = [1, 2, 0, 4]
      expect { |x| LanguageExceptions.sum_of_inverses(list) + x }.to be_same_as_ruby.over(1, 2)
    end

    it "let retry begin again" do
      expect do |x|
        tries = 0
        begin
          tries += 1
          raise "again" if tries < x
          tries
        rescue
          retry if tries < 5
          :given_up
        end
      end.to be_same_as_ruby.over(0, 3, 5, 6)
    end

    it "stop a retry that never ends" do
      expect do
        Timeout.timeout(0.5) do
          [1].pmap(backend:) do |x|
            raise "again" if x > 0
          rescue StandardError
            retry
          end
        end
      end.to raise_error(Timeout::Error)
    end

    it "are raised again" do
      expect do |x|
        kept = nil
        begin
          x > 2 ? raise(LanguageExceptions::Busy, "x is #{x}") : 7 / x
        rescue ZeroDivisionError => kept
          raise if x == 0
        rescue => e
          raise e if x == 3
          kept = e
        end
        raise kept if x == 4
        x
      end.to be_same_as_ruby.over(1, 0, 3, 4)
    end

    it "are TypeErrors where something else is raised" do
      expect { |x| raise x if x }.to be_same_as_ruby.over(nil, 1, 2.5, :a)
      expect { |x| raise Integer if x > 0; x }.to be_same_as_ruby.over(0, 1)
    end

    it "that the program handles when it calls the section are not raised again without a name" do
      run = -> { [1, 2].pmap(backend: backend) { |x| begin; raise if x == 2; x; rescue ArgumentError; 5; rescue RuntimeError; 6; end } }
      nested = -> { [1, 2].pmap(backend: backend) { |x| begin; begin; 1 / 0; rescue ZeroDivisionError; raise; end; rescue StandardError; x; end } }
      expect(run.call).to eq([1, 6])
      begin
        raise ArgumentError
      rescue ArgumentError
        expect(&run).to raise_error(Ikra::CompileError, /raise without arguments stands for the exception that is being handled/)
        expect(nested.call).to eq([1, 2])
      end
      expect(run.call).to eq([1, 6])
    end

    it "are RuntimeErrors where nothing is said" do
      expect { |x| x > 1 ? raise : x }.to be_same_as_ruby.over(1, 2)
      expect { |x| x > 1 ? raise("no") : fail("never") }.to be_same_as_ruby.over(1, 2)
    end

    it "of Ikra alone leave the section, whatever rescues" do
      overflows = {
        ->(x) { x * 2 rescue 0 } => 2**62,
        ->(x) { begin; x + x; rescue RangeError; :big; end } => 2**62,
        ->(x) { begin; [x, x].sum; rescue Exception; :big; end } => 2**62, # rubocop:disable Lint/RescueException
        ->(x) { [x].map { |y| -y rescue 1 } } => -(2**63),
        ->(x) { LanguageExceptions.swallows(x) } => 2**62,
        ->(x) { begin; LanguageExceptions.twice(x); ensure; next 1; end } => 2**62,
        ->(x) { x.to_f.to_i rescue 1 } => 2**63 - 1,
        ->(x) { Rational(1, x) / x rescue 1 } => 2**62
      }
      overflows.each do |block, large|
        expect { [1, large].pmap(backend:, &block) }.to raise_error(Ikra::IntegerOverflow) { |error| expect(error.ikra.index).to eq(1) }
        expect([1, 2].pmap(backend:, &block)).to eq([1, 2].map(&block))
      end
    end

    it "that stand for values which kernels lack leave the section, too" do
      {
        ->(x) { x**-1 rescue 0 } => [RangeError, [1, 2]],
        ->(x) { x**0.5 rescue 0 } => [RangeError, [4.0, -8.0]],
        ->(x) { x.round(x > 1 ? 16 : 2) rescue 0 } => [RangeError, [0.5, 1.0 / 3 + 1]],
        ->(x) { x.equal?(x) rescue 0 } => [RangeError, [1, 2**62]],
        ->(x) { begin; a = [1]; a[x] = 2; a.size; rescue IndexError; 0; end } => [IndexError, [0, 1]],
        ->(x) { begin; x > 1 ? "a".tr("^b", "é").size : x; rescue StandardError; 0; end } => [Ikra::CompileError, [1, 2]]
      }.each do |block, (error, elements)|
        expect { elements.pmap(backend:, &block) }.to raise_error(error)
        expect(elements.take(1).pmap(backend:, &block)).to eq(elements.take(1).map(&block)) unless error == Ikra::CompileError
      end
    end

    it "are refused where a kernel cannot tell what Ruby would rescue or raise" do
      expect { [1].pmap(backend:) { |x| begin; x * 2; rescue Ikra::IntegerOverflow; 0; end } }
        .to raise_error(Ikra::CompileError, /kernels do not rescue Ikra's own errors/)
      expect { [1].pmap(backend:) { |x| begin; x * 2; rescue Ikra::Error; 0; end } }
        .to raise_error(Ikra::CompileError, /kernels do not rescue Ikra's own errors/)
      expect { [1].pmap(backend:) { |x| begin; case x; in 2 then 1; end; rescue NoMatchingPatternKeyError; 0; end } }
        .to raise_error(Ikra::CompileError, /kernels do not rescue NoMatchingPatternKeyError/)
      expect { [1].pmap(backend:) { |x| loop { raise StopIteration }; x } }
        .to raise_error(Ikra::CompileError, /kernels do not raise StopIteration/)
      expect { [1].pmap(backend:) { |x| begin; x / 0; rescue; LanguageExceptions.again; end } }
        .to raise_error(Ikra::CompileError, /this method raises what a rescue clause that calls it has rescued/)
    end

    it "are not raised by catch without a tag, which is refused" do
      expect { [1].pmap(backend:) { |x| catch { |tag| throw tag, x } } }.to raise_error(Ikra::CompileError, /catch without a tag/)
      expect { [1].pmap(backend:) { |x| method(:Integer).lambda? && x } }.to raise_error(Ikra::CompileError, /lambda\? of a Method object/)
      expect { [1].pmap(backend:) { |x| Complex([x, 2]) rescue 0 } }.to raise_error(Ikra::CompileError, /Complex/)
    end

    it "are not what throw is, which goes to its catch" do
      expect do |x|
        n = 0
        r = catch(:outer) do
          catch(:inner) do
            5.times do |i|
              throw :outer, i * 10 if i == x
              throw :inner if i > x + 1
            rescue StandardError
              n += 1000
            ensure
              n += 1
            end
          end
          n += 100
          :inner
        end
        r == :inner ? n : r + n
      end.to be_same_as_ruby.over(-3, 0, 3, 9)
    end

    it "count by the least tick and index, where some elements rescue" do
      expect do |run|
        run.peach((1..50).map { |i| LanguageExceptions::Account.new(i % 7) }, 3) do |account|
          account.try(2)
          account.withdraw(9) if account.failures > 1
        end
      end.to be_same_as_ruby
    end

    it "names a lambda or a Range by its class in messages" do
      expect { |x| f = -> { 1 }; x + f }.to be_same_as_ruby.over(1, 2.5)
      expect { |x| f = -> { 1 }; [x].fetch(f) }.to be_same_as_ruby.over(1)
      expect { |x| x < (0..1) }.to be_same_as_ruby.over("a", 1, 2.5)
      expect { |x| [x] + (0..x) }.to be_same_as_ruby.over(1)
    end
  end
end
