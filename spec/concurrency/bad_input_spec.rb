# frozen_string_literal: true

require "tmpdir"
require_relative "../support/stand_in"

module BadInput
  class Body
    attr_accessor :a, :b

    def initialize(a, b = 1)
      @a = a
      @b = b
    end
  end
end

RSpec.describe "Sections that run at once" do
  bodies = ->(count = 5) { Array.new(count) { |i| BadInput::Body.new(i) } }
  policies = %i[auto paper plain serial]
  let(:list) { bodies.call }

  on_every_backend do |name|
    it "run a thousand at a time, whatever the policy" do
      own = bodies.call
      policies.each do |policy|
        own.each_with_index { |o, i| o.a = i }
        found = Ikra.concurrently(policy: policy) do
          Array.new(1000) { |i| i % 10 == 9 ? own.peach(backend: backend) { |o| o.a += 1 } : [i, i + 1].pmap(backend: backend) { |x| x * 3 } }
        end
        expect(found.each_slice(10).map(&:first)).to eq(Array.new(100) { |i| [i * 30, (i * 30) + 3] })
        expect(own.map(&:a)).to eq [100, 101, 102, 103, 104]
      end
    end

    # cuda_shim runs one kernel at a time, and kernels on a GPU wait for those that share their connection.
    it "end beside endless ones", if: %i[cpu reference].include?(name) do
      others = Array.new(6) { |k| bodies.call(3 + k) }
      lists = Array.new(4) { bodies.call }
      # the endless ones are called first, so the values of others come after they are cancelled
      endless = lists.map { |own| own.async.peach(backend: backend) { |o| o.a += 1 while o.b == 1 } }
      sections = others.map { |own| own.async.peach(backend: backend) { |o| o.a += 1 } }
      expect(sections.map(&:wait)).to eq sections
      expect(endless.map { |section| section.wait(0) }).to eq [nil] * 4
      endless.each(&:cancel)
      endless.each { |section| expect { section.value }.to raise_error(Ikra::Cancelled) }
      expect(sections.map { |section| section.value.map(&:a) }).to eq(others.map { |own| [*1..own.size] })
      expect(lists.map { |own| own.map(&:a) }.uniq).to eq [[0, 1, 2, 3, 4]]
    end

    it "change no frozen object, and nothing after that" do
      own, frozen, later = Array.new(3) { bodies.call }
      frozen[3].freeze
      policies.each_with_index do |policy, turn|
        work = lambda do
          own.peach(backend: backend) { |o| o.a += 1 }
          frozen.peach(backend: backend) { |o| o.a += 1 }
          later.peach(backend: backend) { |o| o.a += 1 }
        end
        expect { Ikra.concurrently(policy: policy, &work) }.to raise_error(FrozenError)
        expect([own, frozen, later].map { |group| group.map(&:a) }).to eq [[*(turn + 1)..(turn + 5)], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
      end
    end

    it "change no Array that is frozen before they write" do
      cells = [1, 2, 3]
      section = (0...3).async.peach(backend: backend) { |i| cells[i] += 1 }
      cells.freeze
      expect { section.value }.to raise_error(FrozenError)
      expect(cells).to eq [1, 2, 3]
      expect { [0].async.peach(backend: backend) { |i| cells[i] = 5 }.value }.to raise_error(FrozenError)
    end

    it "overwrite what Ruby changes meanwhile, also by other kinds of values" do
      section = list.async.peach(backend: backend) { |o| o.a += 1 }
      list.each { |o| o.a = "text" }
      list[0].b = nil
      expect(section.value.map(&:a)).to eq [1, 2, 3, 4, 5]
      expect(list.map(&:b)).to eq [nil, 1, 1, 1, 1]
      summed = list.async.psum(backend: backend, &:a)
      list.each { |o| o.a = :symbol }
      expect(summed.value).to eq 15
    end

    it "give their values to many threads at once" do
      section = list.async.peach(backend: backend) { |o| o.a += 1 }
      found = Array.new(8) { Thread.new { section.value.map(&:a) } }.map(&:value)
      expect(found.uniq).to eq [[1, 2, 3, 4, 5]]
      failing = list.async.peach(backend: backend) { |o| o.a / (o.b - 1) }
      errors = Array.new(8) do
        Thread.new do
          failing.value
        rescue StandardError => error
          error.class
        end
      end
      expect(errors.map(&:value).uniq).to eq [ZeroDivisionError]
      expect(list.map(&:a)).to eq [1, 2, 3, 4, 5]
    end
  end

  it "have values after the block has raised" do
    policies.each do |policy|
      sections = []
      work = lambda do
        sections << list.peach { |o| o.a += 1 } << [1, 2].pmap { |x| x + 1 }
        raise "own"
      end
      before = list.map(&:a)
      expect { Ikra.concurrently(policy: policy, &work) }.to raise_error(RuntimeError, "own")
      expect(sections.map(&:value)).to eq [list, [2, 3]]
      expect(list.map(&:a)).to eq(before.map { |a| a + 1 })
    end
  end

  it "raise their own errors after the block has raised" do
    policies.each do |policy|
      sections = []
      work = lambda do
        sections << list.peach { |o| o.a += 1 } << list.pmap { |o| o.a / (o.b - 1) } << [1].pmap { |x| x }
        raise "own"
      end
      expect { Ikra.concurrently(policy: policy, &work) }.to raise_error(ZeroDivisionError)
      expect(sections[0].value).to be list
      sections.drop(1).each { |section| expect { section.value }.to raise_error(ZeroDivisionError) }
    end
  end

  it "are cancelled in the middle of others" do
    policies.each do |policy|
      own = Array.new(3) { bodies.call }
      sections = nil
      Ikra.concurrently(policy: policy) do
        sections = own.map { |group| group.peach { |o| o.a += 1 } }
        sections[1].cancel
        nil
      end
      expect(own.map { |group| group.map(&:a) }.values_at(0, 2)).to eq [[1, 2, 3, 4, 5]] * 2
      next if policy == :serial # it had ended

      expect { sections[1].value }.to raise_error(Ikra::Cancelled)
      expect([own[1].map(&:a), sections[1].error.class, sections[1].cancel]).to eq [[0, 1, 2, 3, 4], Ikra::Cancelled, false]
    end
  end

  it "wait neither for themselves nor for later ones, within Ikra.concurrently" do
    %i[auto paper plain].each do |policy|
      later = nil
      expect do
        Ikra.concurrently(policy: policy) do
          first = [1].pmap { |x| x }
          waits = first.then { later.value }
          later = waits.then { 1 }
          waits
        end
      end.to raise_error(ThreadError, /waits for itself, or for one that is called after it/)
      expect(Ikra.concurrently(policy: policy) { [[3].pmap { |x| x }] }).to eq [[3]]
    end
  end

  it "may have a later one as a captured variable, which is not there yet" do
    later = nil
    first = [1].async.pmap { |x| later.nil? ? x : 0 }
    later = [2].async.pmap { |x| x }
    expect([first.value, later.value]).to eq [[1], [2]]
  end

  it "may be asked for by the thread of another group" do
    ours = list.async.peach { |o| o.a += 1 }
    theirs = Thread.new do
      Ikra.concurrently do
        own = bodies.call.peach { |o| o.a += 2 }
        [own, ours.value.map(&:a), [1].pmap { |x| x }]
      end
    end.value
    expect([theirs[0].map(&:a), *theirs.drop(1)]).to eq [[2, 3, 4, 5, 6], [1, 2, 3, 4, 5], [1]]
  end

  it "may share objects between threads" do
    shared = bodies.call(40)
    threads = Array.new(4) do |at|
      Thread.new do
        own = bodies.call(30)
        20.times do
          Ikra.concurrently do
            own.peach { |o| o.a += 1 }
            shared.drop(at * 10).first(10).peach { |o| o.a += 1 }
            shared.psum(&:b)
          end
        end
        own.map(&:a)
      end
    end
    expect(threads.map(&:value)).to eq [[*20..49]] * 4
    expect(shared.map(&:a)).to eq [*20..59]
  end

  it "may be under way when the process forks, and the child runs its own in another Fiber" do
    policies.each do |policy|
      reading, writing = IO.pipe
      found = Ikra.concurrently(policy: policy) do
        section = list.map(&:dup).peach(backend: :cpu) { |o| o.a += 1 }
        child = fork do
          inherited = begin
            section.value.map(&:a)
          rescue RuntimeError => error
            error.message
          end
          own = Thread.new { Ikra.concurrently(policy: policy) { [[1, 2].pmap(backend: :cpu) { |x| x + 1 }, [3].psum(backend: :cpu) { |x| x }] } }.value
          writing.write(Marshal.dump([inherited, own]))
        ensure
          exit!(0)
        end
        Process.wait(child)
        section
      end
      writing.close
      expect(Marshal.load(reading.read)).to match [eq([1, 2, 3, 4, 5]).or(match(/under way when the process forked/)), [[2, 3], 3]]
      expect(found.map(&:a)).to eq [1, 2, 3, 4, 5]
    end
  end
end

RSpec.describe "Sections over MDArrays that run at once" do
  on_every_backend do
    it "raise what poisons their arrays, and go on with others" do
      %i[auto paper plain serial].each do |policy|
        poisoned = Ikra::MDArray.new([1, 2, 3]).map(backend: backend) { |x| 6 / (x - 2) }
        sound = Ikra::MDArray.new([1, 2, 3])
        own = Array.new(3) { |i| BadInput::Body.new(i) }
        work = lambda do
          own.peach(backend: backend) { |o| o.a += 1 }
          doubled = sound.map(backend: backend) { |x| x * 2 }
          bad = (0...3).pmap(backend: backend) { |i| poisoned[i] + 1 }
          later = own.peach(backend: backend) { |o| o.a += 1 }
          [doubled, bad, later]
        end
        expect { Ikra.concurrently(policy: policy, &work) }.to raise_error(ZeroDivisionError)
        expect(own.map(&:a)).to eq [1, 2, 3]
        expect(Ikra.concurrently(policy: policy) { [sound.map(backend: backend) { |x| x * 2 }, (0...3).pmap(backend: backend) { |i| sound[i] }] }.map(&:to_a)).to eq [[2, 4, 6], [1, 2, 3]]
      end
    end
  end
end

RSpec.describe "Sections at once on a device" do
  around { |example| Dir.mktmpdir("ikra") { |folder| (@folder = folder) && example.run } }

  it "run one after the other where memory suffices for one of two" do
    found = run_ruby(<<~RUBY, environment: StandIn.environment(@folder).merge("IKRA_BACKEND" => "cuda", "STAND_IN_MEMORY" => "40000000"), folder: @folder)
      numbers = Array.new(2) { |k| Array.new(1_000_000) { |i| i + k } }
      sums = numbers.map { |list| list.pmap { |x| x * 3 } } # each fits
      %i[auto paper plain].each do |policy|
        both = Ikra.concurrently(policy: policy) { numbers.map { |list| list.pmap { |x| x * 3 } } }
        puts both == sums
      end
      puts (numbers[0] * 4).pmap { |x| x }.size rescue puts $!.class
    RUBY
    expect(found).to eq "true\ntrue\ntrue\nIkra::DeviceMemoryError\n"
  end
end
