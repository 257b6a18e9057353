# frozen_string_literal: true

RSpec.describe "Iterators" do
  on_every_backend do
    it "has times, upto and downto" do
      expect do |x|
        sum = 0
        x.times { |i| sum += i }
        x.upto(5) { |i| sum += 100 * i }
        x.downto(-2) { |i| sum += 10_000 * i }
        sum
      end.to be_same_as_ruby.over(-5, 0, 1, 5, 6, 20)
    end

    it "gives the receiver, or what break gives" do
      expect { |x| 3.times { |i| break i * 10 if i == x } }.to be_same_as_ruby.over(0, 1, 5)
      expect { |x| x.upto(7) { } }.to be_same_as_ruby.over(0, 9)
      expect { |x| 1.step(9, 2) { |i| break i if i > x } }.to be_same_as_ruby.over(0, 4, 20)
    end

    it "steps with Integers" do
      expect do |x|
        sum = 0
        1.step(20, x) { |i| sum = sum * 3 + i }
        20.step(1, -x) { |i| sum = sum * 3 + i }
        1.step(by: x, to: 10) { |i| sum += i }
        sum
      end.to be_same_as_ruby.over(1, 2, 7, 30)
      expect { |x| 1.step(5, x) { break } }.to be_same_as_ruby.over(0)
    end

    it "steps with Floats as Ruby does, without adding up errors" do
      expect do |x|
        sum = 0.0
        n = 0
        0.0.step(1.0, x) { |f| sum += f; n += 1 }
        1.step(2.0, x) { |f| sum += f * 100; n += 1 }
        sum + n * 1000
      end.to be_same_as_ruby.over(0.1, 0.3, 1.5, 0.25)
      expect { |x| (-3.0...x).step(0.3).to_a.size }.to be_same_as_ruby.over(4.2, 4.3, 0.9, -2.7, -3.0, -4.0)
      expect { |x| all = []; 1.0.step(x, 0.3) { |f| all << f }; all }.to be_same_as_ruby.over(4.3, 4.2, 1.0, 0.5)
    end

    it "steps by an endless Float once, or not at all" do
      inf = Float::INFINITY
      expect { |x| all = []; 1.0.step(x, inf) { |f| all << f }; 1.0.step(x, -inf) { |f| all << -f }; all }.to be_same_as_ruby.over(2.0, 1.0, 0.0, inf, -inf)
    end

    it "has each and friends of Ranges" do
      expect do |x|
        sum = 0
        (1..x).each { |i| sum = sum * 2 + i }
        (x...7).each { |i| sum = sum * 2 + i }
        (0..x).reverse_each { |i| sum = sum * 2 + i } if x < 20
        (1..x).step(3) { |i| sum += i * 5 }
        (2..x).each_with_index { |v, i| sum += v * i }
        sum
      end.to be_same_as_ruby.over(-3, 0, 1, 6, 9)
    end

    it "asks Ranges for what they are" do
      expect do |x|
        r = (x..10)
        s = (1...x)
        r.first + r.last + r.size * 100 + s.size * 1000 + (r.include?(5) ? 1 : 2) + (s.cover?(5.5) ? 10_000 : 0) + (s.exclude_end? ? 7 : 0)
      end.to be_same_as_ruby.over(-3, 0, 1, 6, 12)
      expect { |x| (x..10).min }.to be_same_as_ruby.over(0, 10, 11)
      expect { |x| (1...x).max }.to be_same_as_ruby.over(0, 1, 2, 11)
    end

    it "iterates up to the greatest Integer" do
      expect do |x|
        n = 0
        x.upto(9_223_372_036_854_775_807) { n += 1 }
        (x..9_223_372_036_854_775_807).each { n += 10 }
        n
      end.to be_same_as_ruby.over(Values::MAX - 2, Values::MAX)
      expect do |x|
        n = 0
        x.downto(-9_223_372_036_854_775_808) { n += 1 }
        n
      end.to be_same_as_ruby.over(Values::MIN + 2, Values::MIN)
    end

    it "has numbered parameters" do
      expect do |x|
        sum = 0
        3.times { sum += _1 * x }
        sum
      end.to be_same_as_ruby.over(0, 4)
      expect { _1 + 1 }.to be_same_as_ruby.over(0, 4)
    end

    it "nests" do
      expect do |x|
        sum = 0
        x.times do |i|
          (i..x).each do |j|
            next if j == 2
            1.upto(j) do |k|
              break if k > 3
              sum += i * 100 + j * 10 + k
            end
          end
        end
        sum
      end.to be_same_as_ruby.over(0, 1, 5)
    end
  end

  # What a method gives to a block of an Enumerator that yields two values: both, or one pair of them.
  describe "Enumerators with an index" do
    lists = ["list.each_with_index", "list.each.with_index(1)", "list.reverse_each.with_index", "(1..3).each_with_index", "pairs.each_with_index"]
    tests = %w[count all? any? none? one? find_index find take_while select reject partition]
    values = %w[map flat_map filter_map uniq group_by]
    params = { "|p|" => "p", "|p, q|" => "[p, q]", "|p, |" => "p", "|*p|" => "p", "|(p, q)|" => "[p, q]", "|p, *q|" => "[p, q]" }

    lists.each do |list|
      it "give blocks of #{list} what Ruby gives" do
        codes = [*tests.product(["is_a?(Integer)"]), *values.product(["itself"])].product(params.to_a)
        codes.each do |(method, body), (taken, value)|
          code = "#{list}.#{method} { #{taken} x = #{value}; x.#{body} }"
          block = eval("list = [5, 7, 5]; pairs = [[1, 2], [3, 4]]; proc { |_| #{code} }", binding, __FILE__, __LINE__) # rubocop:disable Security/Eval, Style/EvalWithLocation
          expected = block.call(0)
          begin
            found = [0].pmap(backend: :reference, &block)
          rescue Ikra::CompileError
            next
          end
          expect(found).to eq([expected]), "#{code}: #{expected.inspect}, #{found.inspect}"
        end
      end
    end
  end
end
