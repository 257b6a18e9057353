# frozen_string_literal: true

require "ikra/refinements"

RSpec.describe "options of operations" do
  it "are those of every parallel method, and are checked also where Ruby does the work" do
    expect([1, 2].pselect(backend: :cpu, block_size: 64, blocks: 3) { |x| x > 1 }).to eq [2]
    expect { [1].psum(backend: :abacus) }.to raise_error(ArgumentError, /backend: :abacus is not one of/)
    expect { [1].pcount(speed: 9) }.to raise_error(ArgumentError, /unknown option speed/)
    expect { [1].ptally(blocks: 0) }.to raise_error(ArgumentError, "blocks: 0 is not a positive Integer")
    expect { [1].pmap(block_size: -1) { |x| x } }.to raise_error(ArgumentError, /block_size/)
    expect { [1].preduce(:+, block_size: 0) }.to raise_error(ArgumentError, /block_size/)
  end

  it "are shown as Ruby shows them where they are none, beside those that there are", unless: ENV["IKRA_BACKEND"] == "cuda-shim" do
    messages = [{ backend: nil }, { backend: "abacus" }, { fast_math: 3 }, { check: :all }, { precision: 1.5 }, { unsupported: [1] }].map do |options|
      [1].pmap(**options) { |x| x }
    rescue ArgumentError => e
      e.message
    end
    expect(messages).to eq [
      "backend: nil is not one of :auto, :cpu, :cuda, :reference", 'backend: "abacus" is not one of :auto, :cpu, :cuda, :reference',
      "fast_math: 3 is not one of false, true", "check: :all is not one of nil, :races, :associative",
      "precision: 1.5 is not one of :f64, :f32", "unsupported: [1] is not one of :raise, :ruby"
    ]
  end

  it "name the backend for tests where that is what is configured" do
    before = Ikra.config.backend
    Ikra.config.backend = :cuda_shim
    expect { [1].pmap(backend: 5) { |x| x } }.to raise_error(ArgumentError, "backend: 5 is not one of :auto, :cpu, :cuda, :cuda_shim, :reference")
  ensure
    Ikra.config.backend = before
  end

  it "are not those that Ikra's own code gives to sections" do
    expect { [1].pmap(into: :numbers) { |x| x } }.to raise_error(ArgumentError, /\Aunknown option into: Ikra's options are backend, /)
    expect { [1, 2].pmap(reduce: :sum, into: :numbers) { |x| x } }.to raise_error(ArgumentError, /\Aunknown option reduce: Ikra's options are backend, /)
    expect { Ikra::MDArray[1].map(into: :f64) { |x| x } }.to raise_error(ArgumentError, /\Aunknown option into: /)
  end

  it "reach the Enumerator's operation" do
    expect { [1].pmap(backend: :abacus).with_index { |x, _| x } }.to raise_error(ArgumentError, /abacus/)
    expect([2**62].pmap(overflow: :wrap).with_index { |x, _| x + x }).to eq [-(2**63)]
  end

  it "show the operation in explanations" do
    explanation = Ikra.explain { [1, 2].pselect { |number| number > 1 } }
    section = explanation.sections.first
    expect([section.operation, section.elements, section.source]).to eq [:pselect, 2, "{ |number| number > 1 }"]
    expect(section.types).to eq({ __LINE__ - 3 => { "number" => "Integer" } })
    expect(section.to_s).to include("pselect at #{__FILE__}:#{__LINE__ - 4}, over 2 elements").and include("Result: true | false")
    expect(Ikra.explain { [1, 2].pmap.with_index(1) { |x, i| x * i } }.sections.first.types.values).to eq [{ "x" => "Integer", "i" => "Integer" }]
    expect(Ikra.explain { (1..300).preduce { |a, b| a > b ? a : b } }.sections.map(&:elements)).to eq [2, 1]
  end

  it "point at the user's line for what does not compile and for what an argument holds" do
    expect { [1].pselect { |x| [x].pack("C") } }.to raise_error(Ikra::CompileError, /\A#{__FILE__}:#{__LINE__}:\d+: kernels do not know Array#pack/)
    expect { [1].pcombine([$stdout]) { |x, y| x + (y ? 1 : 2) } }
      .to raise_error(Ikra::CompileError, /\A#{__FILE__}:#{__LINE__ - 1}:\d+: kernels cannot hold an IO/)
    expect { [1].pselect { |_x| return 1 } }.to raise_error(Ikra::CompileError, /return would leave the method/)
  end

  it "check for races" do
    list = [1, 2, 3]
    expect { list.pselect(check: :races) { |x| (list[0] += x) > 2 } }.to raise_error(Ikra::RaceError)
  end
end

RSpec.describe "operations while the heap moves and threads run" do
  on_every_backend do
    it "gives the very objects while garbage is collected at every allocation" do
      output = run_ruby(<<~RUBY)
        Person = Struct.new(:age)
        people = Array.new(4) { |i| Person.new(i) }
        run = lambda do
          [people.pselect(backend: :#{backend}) { |person| person.age > 1 },
           people.psort_by(backend: :#{backend}) { |person| -person.age },
           people.pgroup_by(backend: :#{backend}) { |person| person.age % 2 },
           people.pcombine([1, 2], backend: :#{backend}) { |person, n| n ? person.age + n : nil },
           people.pscan(backend: :#{backend}) { |a, b| a.age > b.age ? a : b },
           people.pmap(backend: :#{backend}).with_index(1) { |person, i| person.age * i }]
        end
        quiet = run.call
        GC.stress = true
        known = run.call
        GC.stress = false
        p known == quiet, known[0][0].equal?(people[2])
      RUBY
      expect(output).to eq("true\ntrue\n")
    end
  end

  # In a process of its own: where many Symbols of other examples are dead, Ruby 3.1 itself may fail while it moves
  # their names ("can't remove str from str_id").
  it "survives compaction" do
    skip "this Ruby does not compact" unless GC.respond_to?(:auto_compact=)
    output = run_ruby(<<~RUBY)
      class Person
        attr_reader :name, :age
        def initialize(name, age)
          @name = name
          @age = age
        end
      end
      GC.auto_compact = true
      answers = Array.new(20) do
        list = Array.new(300) { |i| Person.new(:a, i.to_f) }
        same = [list.pselect { |person| person.age > 150.0 }.map(&:age) == list.select { |person| person.age > 150.0 }.map(&:age)]
        same << (list.pscan { |a, b| a.age > b.age ? a : b } == list)
        # Made here, and kept alive only by the chain's result.
        same << (list.plazy.map { |person| [person.age] }.reject { |row| row[0] < 9.0 }.to_a == list.drop(9).map { |person| [person.age] })
        GC.compact
        same
      end
      p answers.uniq
    RUBY
    expect(output).to eq("[[true, true, true]]\n")
  end

  it "gives each thread its answer" do
    answers = Array.new(4) { |n| Thread.new { 20.times.map { (1..500).pselect { |x| x % 7 == n }.size }.uniq } }.map(&:value)
    expect(answers).to eq(Array.new(4) { |n| [(1..500).count { |x| x % 7 == n }] })
  end

  it "works in a child process, with threads that sort" do
    list = Array.new(70_000) { |i| (i * 7919) % 70_001 }
    expect(list.psort).to eq list.sort
    reader, writer = IO.pipe
    pid = fork do
      # A child cannot use a device that its parent has opened.
      writer << (list.psort == list.sort && list.pselect(backend: :cpu, &:even?) == list.select(&:even?))
      exit!(0)
    end
    writer.close
    Process.wait(pid)
    expect(reader.read).to eq "true"
  end
end

module WithRefinements
  using Ikra::Refinements

  def self.answers = [[3, 1].psort_by { |x| x }, [1, 2].pmap.with_index { |x, i| x * i }, Array.pnew(2) { |i| i }, [1, 2].pmap! { |x| x + 1 }]
end

RSpec.describe Ikra::Refinements do
  it "has the operations, too" do
    expect(WithRefinements.answers).to eq [[1, 3], [0, 2], [0, 1], [2, 3]]
  end
end
