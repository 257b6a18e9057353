# frozen_string_literal: true

module LiveProgram
  FACTOR = 2

  class Thing
    attr_accessor :value, :list

    def initialize(value)
      @value = value
      @list = [1]
    end

    def worth = value * 10
    def scaled = value * FACTOR
  end

  class Special < Thing
  end

  module Bonus
    def worth = super + 1
  end
end

# Values are parameters of kernels, and code is read at every call: the next call sees what changed.
RSpec.describe "The program between two calls" do
  on_every_backend do
    it "may assign captured variables, also values of other types" do
      factor = 2
      results = [3, 2.5, nil, -1].map do |next_factor|
        now = [1, 2].pmap(backend:) { |x| factor.nil? ? 0 : x * factor }
        factor = next_factor
        now
      end
      expect(results).to eq([[2, 4], [3, 6], [2.5, 5.0], [0, 0]])
    end

    it "may fill what was empty: captured arrays, arrays in objects, the elements themselves" do
      thing = LiveProgram::Thing.new(1)
      results = [[], [3, 4], []].map do |list|
        thing.list = list
        each = [1].pmap(backend:) do |x|
          sum = 0
          list.each { |y| sum += y }
          thing.list.each { |y| sum += y * 10 }
          for y in list do sum += y * 100 end # rubocop:disable Style/For
          sum += 1000 if thing.list.any? { |y| y > x }
          sum + (list[0] || 5)
        end
        each + list.pmap(backend:) { |y| y + 1 }
      end
      expect(results).to eq([[5], [1780, 4, 5], [5]])
    end

    it "may reopen a class" do
      things = [LiveProgram::Thing.new(1), LiveProgram::Thing.new(2)]
      read = -> { things.pmap(backend:) { |thing| thing.worth } }
      expect(read.call).to eq([10, 20])
      original = LiveProgram::Thing.instance_method(:worth)
      begin
        LiveProgram::Thing.class_eval("def worth = value * 100 + 5", __FILE__, __LINE__)
        expect(read.call).to eq([105, 205])
      ensure
        LiveProgram::Thing.define_method(:worth, original)
      end
      expect(read.call).to eq([10, 20])
    end

    it "may override, include, prepend, and define for one object" do
      kind = Class.new(LiveProgram::Thing)
      things = [kind.new(1), kind.new(2)]
      read = -> { things.pmap(backend:) { |thing| thing.worth } }
      expect(read.call).to eq([10, 20])
      kind.class_eval("def worth = super + 3", __FILE__, __LINE__)
      expect(read.call).to eq([13, 23])
      kind.prepend(LiveProgram::Bonus)
      expect(read.call).to eq([14, 24])
      kind.class_eval("def worth = super + 5", __FILE__, __LINE__)
      expect(read.call).to eq([16, 26])
      def (things[1]).worth = -1
      expect(read.call).to eq([16, -1])
      kind.send(:undef_method, :value)
      expect { read.call }.to raise_error(NameError, /value/)
    end

    it "may set a constant anew" do
      things = [LiveProgram::Thing.new(3)]
      read = -> { things.pmap(backend:) { |thing| thing.scaled } }
      expect(read.call).to eq([6])
      begin
        silently { LiveProgram.const_set(:FACTOR, 2.5) }
        expect(read.call).to eq([7.5])
        LiveProgram.send(:remove_const, :FACTOR)
        expect { read.call }.to raise_error(NameError, /FACTOR/)
      ensure
        silently { LiveProgram.const_set(:FACTOR, 2) }
      end
      expect(read.call).to eq([6])
    end

    it "may change objects, arrays and the elements" do
      things = [LiveProgram::Thing.new(1)]
      read = -> { things.pmap(backend:) { |thing| thing.value.to_i + thing.list.size + thing.list.last } }
      expect(read.call).to eq([3])
      things[0].list << 5
      things[0].value = 2.75
      expect(read.call).to eq([9])
      things.unshift(LiveProgram::Special.new(nil))
      expect(read.call).to eq([2, 9])
      things[0].list = [3, 1.5]
      expect(read.call).to eq([3.5, 9])
    end

    it "may give an accessor or a member another's name, in whose line it was" do
      object = Class.new do
        attr_reader :first, :second

        def initialize
          @first = 1
          @second = 2
        end
      end
      member = Struct.new(:first, :second)
      stub_const("LiveProgram::Pair", object)
      stub_const("LiveProgram::Members", member)
      [[object.new], [member.new(1, 2)]].each do |things|
        read = -> { things.pmap(backend:) { |thing| thing.first } }
        watched = -> { Ikra.resident(things) { read.call } }
        expect([read.call, watched.call, read.call]).to eq([[1]] * 3)
        silently { things.first.class.class_eval { alias_method :first, :second } }
        expect([read.call, watched.call, read.call]).to eq([[2]] * 3)
      end
    end

    it "may redefine a method of a class that a scope was over" do
      stub_const("LiveProgram::Gain", Class.new { def gain = 2 })
      things = [LiveProgram::Gain.new]
      read = -> { things.pmap(backend:) { |thing| thing.gain } }
      expect([Ikra.resident(things) { read.call }, read.call]).to eq([[2], [2]])
      silently { LiveProgram::Gain.class_eval("def gain = 100", __FILE__, __LINE__) }
      expect([read.call, Ikra.resident(things) { read.call }]).to eq([[100], [100]])
      LiveProgram::Gain.include(Module.new { def gain = 5 })
      LiveProgram::Gain.remove_method(:gain)
      expect(read.call).to eq([5])
    end

    it "is looked at without a call of Ruby's methods, where an exception may come" do
      output = run_ruby(<<~RUBY, backend.to_s)
        backend = ARGV[0].to_sym
        Thing = Struct.new(:size) { def grow = self.size += gain; def gain = 2 }
        things = [Thing.new(0), Thing.new(1)]
        go = -> { things.peach(backend: backend) { |thing| thing.grow } }
        go.call
        Ikra.resident(things) { 2.times { go.call } }
        Symbol.define_method(:name) { raise "asked for \#{inspect}" }
        Thing.class_eval("def other = 1")
        Ikra.resident(things) { 2.times { go.call } }
        go.call
        p things.map(&:size)
      RUBY
      expect(output).to eq("[12, 13]\n")
    end

    it "may redefine an operator of Integer, and take it back" do
      read = -> { [7, 8].pmap(backend:) { |x| x.succ } }
      expect(read.call).to eq([8, 9])
      original = Integer.instance_method(:succ)
      begin
        silently { Integer.class_eval("def succ = self + 100", __FILE__, __LINE__) }
        expect(read.call).to eq([107, 108])
      ensure
        silently { Integer.define_method(:succ, original) }
      end
    end
  end

  def silently
    verbose, $VERBOSE = $VERBOSE, nil
    yield
  ensure
    $VERBOSE = verbose
  end
end
