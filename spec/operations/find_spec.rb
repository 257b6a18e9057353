# frozen_string_literal: true

RSpec.describe "pfind, pfind_index, pall?, pany?, pnone?, pone?" do
  questions = %i[find find_index all? any? none? one?]

  questions.each do |method|
    it "#{method} is answered as by Ruby" do
      [[], [1], [4], [1, 4], [4, 1], [4, 4], [1, 1, 1], [1, 4, 4, 1], Array.new(1000) { |i| i }].each do |list|
        expect(list).to(do_as_ruby(method) { |x| x > 3 })
        expect(list).to(do_as_ruby(method) { |x| x > 2000 })
      end
      expect([1.5, nil, 2]).to(do_as_ruby(method) { |x| x })
      expect([nil, false]).to(do_as_ruby(method) { |x| x })
      expect(5..8).to do_as_ruby(method, &:even?)
      expect { Array.new(33) { |i| DoAsRuby::Person.new(:a, i) } }.to(do_as_ruby(method) { |person| person.age == 32 })
    end

    it "#{method} does not come to what Ruby does not come to" do
      expect([5, 3, 2, 1, 0]).to(do_as_ruby(method) { |x| 12 / x > 4 })
      expect([1, 1, 0]).to(do_as_ruby(method) { |x| 12 / x > 4 })
      expect([20, 30, 1, 0]).to(do_as_ruby(method) { |x| 12 / x > 4 })
      expect([0, 1, 2]).to(do_as_ruby(method) { |x| 12 / x > 4 })
    end

    it "#{method} does to variables and elements what is done up to there" do
      expect { [1, 2, 3, 4, 5, 6].map { |i| DoAsRuby::Person.new(:a, i) } }.to(do_as_ruby(method) { |person| (person.age += 1) == 4 })
      run = lambda do |name|
        sum = 0
        answer = [1, 5, 2, 7, 9].public_send(name) do |x|
          sum += x
          x > 4
        end
        [answer, sum]
      end
      expect(run.call(:"p#{method}")).to eq run.call(method)
    end

    it "#{method} ends by break with its value" do
      expect([1, 2, 3].public_send(:"p#{method}") { |x| break x * 10 if x == 2 }).to eq(%i[all?].include?(method) ? false : 20)
    end
  end

  %i[all? any? none? one?].each do |method|
    it "#{method} takes a pattern, or nothing" do
      expect([1, 2.5]).to do_as_ruby(method, Integer)
      expect([1, nil]).to do_as_ruby(method)
      expect([]).to do_as_ruby(method)
      expect(1..4).to do_as_ruby(method, 2..3)
    end
  end

  it "gives the very object, and what is called for where there is none" do
    people = Array.new(5) { |i| DoAsRuby::Person.new(:a, i) }
    expect(people.pfind { |person| person.age > 2 }).to equal people[3]
    expect(people.pdetect { |person| person.age > 7 }).to be_nil
    expect(people.pfind(-> { :nobody }) { |person| person.age > 7 }).to eq :nobody
    expect([nil, 1].pfind(&:nil?)).to be_nil
    expect([1, 2, 3].pfind_index(3)).to eq 2
  end

  it "finds the first among many" do
    expect((1..1_000_000).pfind { |x| x * x > 999_999 }).to eq 1000
    expect((1..1_000_000).pall? { |x| x < 900_000 }).to be false
    expect((1..1_000_000).pone? { |x| x == 900_000 }).to be true
  end
end
