# frozen_string_literal: true

module Independence
  class Board
    attr_accessor :best, :count, :total

    def initialize
      @best = 0
      @count = 0
      @total = 0.0
    end

    def add(n) = @count += n
  end
end

RSpec.describe "Elements that touch the same thing" do
  on_every_backend do
    it "may add to it" do
      expect do |run|
        board = Independence::Board.new
        run.peach((1..100).to_a, 2) do |x|
          board.count += x
          board.add(2)
        end
        board
      end.to be_same_as_ruby
    end

    it "may count in a shared array" do
      expect do |run|
        counts = [0] * 10
        run.peach((1..500).to_a) { |x| counts[x * x % 10] += 1 }
        counts
      end.to be_same_as_ruby
    end

    it "may each write a slot of their own" do
      expect do |run|
        squares = [0] * 50
        run.peach((0..49).to_a) { |i| squares[i] = i * i }
        squares
      end.to be_same_as_ruby
    end

    it "may not carry a variable from one to the next" do
      previous = 0
      expect { [1, 2, 3].pmap(backend:) { |x| d = x - previous; previous = x; d } }.to raise_error(Ikra::CompileError, /previous.*pscan/m)
      expect(previous).to eq(0)
    end

    it "may not read a sum while it grows" do
      sum = 0
      expect { [1, 2, 3].pmap(backend:) { |x| sum += x; sum } }.to raise_error(Ikra::CompileError, /sum/)
    end

    it "may not write what the others read" do
      board = Independence::Board.new
      expect { [3, 1].pmap(backend:) { |x| board.best = x if x > board.best; board.best } }.to raise_error(Ikra::CompileError, /best/)
      expect(board.best).to eq(0)
    end

    it "may not return from the method around the block" do
      expect { [3, 1].pmap(backend:) { |x| return x } }.to raise_error(Ikra::CompileError, /return.*next/m)
    end
  end
end
