# frozen_string_literal: true

module FlipFlops
  module_function

  def two(list) = list.select { |x| true if (x == 2)..(x == 4) }
  def three(list) = list.select { |x| true if (x == 2)...x.even? }
  def at_once(list) = list.select { |x| true if (x == 2)..x.even? }
  def ternary(list) = list.map { |x| (x == 2)..(x == 4) ? 1 : 0 }
  def negated(list) = list.map { |x| !((x == 2)..(x == 4)) }
  def within(list) = list.map { |x| x > 1 && ((x == 2)...(x == 2)) ? 1 : 2 }
  def nested(rows) = rows.map { |row| row.map { |x| (x == 2)..(x == 4) ? x : 0 } }
  def endless(list) = list.map { |x| (x == 2)..nil ? x : 0 }

  def loop_of(list)
    out = []
    i = 0
    while i < list.size
      out << list[i] unless (list[i] == 2)..(list[i] == 3)
      i += 1
    end
    out
  end

  def in_lambda(list)
    open = ->(x) { (x == 2)..(x == 4) ? true : false }
    list.map { |x| open.call(x) }
  end

  # Each call has a state of its own.
  def once(x) = (x == 2)..(x == 4) ? 1 : 0
  def passes(x) = yield(((x == 2)..(x == 4) ? 1 : 0))
  def fresh(list) = list.map { |x| [once(x), passes(x) { |y| y + 1 }] }
  def twice(list) = list.map { |x| [(x == 2)..(x == 4) ? 1 : 0, (x == 1)...(x == 3) ? 1 : 0] }
end

RSpec.describe "A flip-flop" do
  on_every_backend do
    it "keeps its state in the method around it, over all of its blocks" do
      expect do |list|
        [
          FlipFlops.two(list), FlipFlops.three(list), FlipFlops.at_once(list), FlipFlops.ternary(list), FlipFlops.negated(list),
          FlipFlops.within(list), FlipFlops.endless(list), FlipFlops.loop_of(list), FlipFlops.in_lambda(list), FlipFlops.twice(list),
        ]
      end.to be_same_as_ruby.over([1, 2, 3, 4, 5, 2, 6], [2, 2, 4, 4, 1], [])
    end

    it "goes on from one row to the next" do
      expect { |rows| FlipFlops.nested(rows) }.to be_same_as_ruby.over([[1, 2], [3, 4], [5, 2]], [[2]])
    end

    it "begins anew with each call of its method" do
      expect { |list| FlipFlops.fresh(list) }.to be_same_as_ruby.over([1, 2, 3, 4, 5], [2, 2])
    end
  end

  it "is refused in a section's block, where elements would carry its state" do
    expect { [1].pmap { |x| (x == 2)..(x == 3) ? 1 : 0 } }.to raise_error(Ikra::CompileError, /flip-flop.*section's block.*cannot carry its state/m)
  end
end
