# frozen_string_literal: true

require "pp"

# A world whose objects refer to it, and that runs kernels in its own methods.
class ResidentWorld
  attr_reader :wind, :kites

  def initialize
    @wind = 1.0
    @kites = Array.new(4) { |i| ResidentKite.new(self, i.to_f) }
  end

  def fly(each) = 3.times { tick(each) }

  def tick(each)
    each.call(@kites) { |kite| kite.height += kite.world.wind }
    @wind += 0.5
    each.call(@kites) { |kite| kite.height *= @wind }
    @wind -= 0.25
  end
end

class ResidentKite
  attr_accessor :world, :height

  def initialize(world, height)
    @world = world
    @height = height
  end

  # Runs kernels that change itself.
  def pull(each, kites)
    Array.new(3) do
      each.call(kites) { |kite| kite.height += 1.5 }
      @height *= 2.0
    end
  end

  def method_missing(name, *arguments)
    case name
    when :lift then @height += arguments.first
    when :now then @height
    else super
    end
  end

  def respond_to_missing?(name, _) = name == :now ? @height > 2 : name == :lift
end

class ResidentStep
  attr_accessor :count

  def initialize(count) = @count = count
  def step(by = 1) = @count += by
end

class ResidentDouble < ResidentStep
  def step(by = 1) = super(by) + super
end

class ResidentPair
  attr_accessor :x, :y

  def initialize(x, y)
    @x = x
    @y = y
  end
end

class ResidentTwin < ResidentPair; end

RSpec.describe "Ikra.resident" do
  extend MDArrays::Groups

  def steps = Array.new(6) { |i| (i.odd? ? ResidentDouble : ResidentStep).new(i) }

  # The block gives in a scope what it gives in plain Ruby.
  def as_ruby
    plain = yield ->(list, &block) { list.each(&block) }
    resident = Ikra.resident { yield ->(list, &block) { list.peach(&block) } }
    expect(resident).to eq(plain)
  end

  on_quick_backends do
    it "keeps the order of blocks that write the same" do
      as_ruby do |each|
        list = steps
        seen = []
        one = -> { each.call(list) { |o| o.count += 1 } }
        other = -> { each.call(list) { |o| o.count *= 3 } }
        [one, other, one].each(&:call)
        seen << list[0].count
        [one, other, other, one].each(&:call)
        seen << list[1].count
        [other, one].each(&:call)
        seen + list.map(&:count)
      end
    end

    it "takes the newest of each column, or none" do
      3.times do
        as_ruby do |each|
          worlds = Array.new(4) { |i| (i < 2 ? ResidentPair : ResidentTwin).new(i, i * 2) }
          swap = -> { each.call(worlds) { |o| o.x, o.y = o.y, o.x } }
          swap.call
          each.call(worlds.grep(ResidentTwin)) { |o| o.y = o.x * 2 }
          each.call(worlds) { |o| o.x += 1 }
          swap.call
          worlds.map { |o| [o.x, o.y] }
        end
      end
    end

    it "keeps texts as they are from a block to one with other texts" do
      as_ruby do |each|
        list = Array.new(4) { |i| ResidentPair.new(i.even? ? "left" : "right", "none") }
        each.call(list) { |o| o.x, o.y = o.y, o.x }
        each.call(list) { |o| o.x = "somewhere between" if o.y == "left" }
        each.call(list) { |o| o.x, o.y = o.y, o.x }
        each.call(list) { |o| o.y = "right again" if o.x == "right" }
        list.map { |o| [o.x, o.y] }
      end
    end

    it "takes any number of lists" do
      as_ruby do |each|
        list = steps
        50.times { |i| each.call(list.rotate(i)) { |o| o.count += 1 } }
        list.map(&:count)
      end
    end

    it "knows classes that call super" do
      as_ruby do |each|
        list = steps
        3.times { each.call(list) { |o| o.step } }
        list[1].step
        each.call(list) { |o| o.step(2) }
        list.map(&:count)
      end
    end

    it "sees what the object changes whose method runs kernels" do
      as_ruby do |each|
        world = ResidentWorld.new
        world.fly(each)
        [world.wind, *world.kites.map(&:height)]
      end
      as_ruby do |each|
        world = ResidentWorld.new
        3.times { world.tick(each) }
        [world.wind, *world.kites.map(&:height)]
      end
    end

    it "sees it when the scope is opened in that method" do
      world = ResidentWorld.new
      def world.all = Ikra.resident(@kites) { 3.times { @kites.peach { |kite| kite.height += @wind }; @wind += 1.0 } }
      world.all
      expect(world.kites.map(&:height)).to eq([6.0, 7.0, 8.0, 9.0])
    end

    it "sees each change of it, after many calls between which there was none" do
      changes = [
        ->(world) { world.instance_eval { @wind = 3 } }, ->(world) { world.instance_eval { @gust = 1.0 } },
        ->(world) { world.instance_eval { remove_instance_variable(:@gust) } }, lambda(&:freeze)
      ]
      fly = lambda do |world, each, change|
        world.instance_exec do
          3.times { each.call(@kites) { |kite| kite.height += @wind + (@gust ? 10.0 : 0.0) } }
          change.call(self)
          3.times { each.call(@kites) { |kite| kite.height += @wind + (@gust ? 10.0 : 0.0) } }
        end
      end
      as_ruby do |each|
        world = ResidentWorld.new
        changes.map do |change|
          fly.call(world, each, change)
          [world.frozen?, world.instance_variables, *world.kites.map(&:height)]
        end
      end
    end

    it "shows an element what kernels do to it that it runs" do
      as_ruby do |each|
        kites = ResidentWorld.new.kites
        kites.each { |kite| kite.world = nil }
        [*kites[1].pull(each, kites), *kites[2].pull(each, kites), *kites.map(&:height)]
      end
    end

    it "notices blocks that run as the object, and methods that are missing" do
      as_ruby do |each|
        kites = ResidentWorld.new.kites
        up = lambda { |*| each.call(kites) { |kite| kite.height += 1.0 } }
        2.times(&up)
        seen = [kites[0].instance_eval { @height }, kites[1].instance_exec(2.0) { |by| @height += by }]
        up.call
        seen += [kites[0].respond_to?(:now), kites[0].now]
        kites[2].lift(10.0)
        up.call
        def (kites[3]).top = @height += 5.0
        seen << kites[3].top
        up.call
        seen + kites.map(&:height)
      end
    end

    it "shows Marshal what kernels did" do
      list = steps
      copies = Ikra.resident do
        list.peach { |o| o.count += 1 }
        Marshal.load(Marshal.dump(list))
      end
      expect(copies.map(&:count)).to eq([1, 2, 3, 4, 5, 6])
    end

    it "leaves frozen objects as they were when they were frozen" do
      list = steps
      Ikra.resident do
        2.times { list.peach { |o| o.count += 1 } }
        list[2].freeze
        expect { list.peach { |o| o.count += 1 } }.to raise_error(FrozenError)
        list.each(&:freeze)
      end
      expect(list.map(&:count)).to eq([2, 3, 4, 5, 6, 7])
    end

    it "knows patterns over Structs, and those with keywords" do
      struct = Struct.new(:a, :b, keyword_init: true) { def total = a + b }
      as_ruby do |each|
        list = Array.new(3) { |i| struct.new(a: i, b: 2) }
        2.times { each.call(list) { |s| s.a += s.b } }
        list[0] => { a: }
        list[1].a = 60
        each.call(list) { |s| s.a += s.b }
        [a, list[0].to_s, list[1].total, *list.map(&:to_h)]
      end
    end
  end

  it "notices methods that a class is given while a scope is open" do
    as_ruby do |each|
      kind = Class.new { attr_accessor :x; def initialize(x) = @x = x }
      list = Array.new(4) { |i| kind.new(i) }
      up = lambda { |*| each.call(list) { |o| o.x += 1 } }
      2.times(&up)
      kind.class_eval do
        def peek = @x
        def poke = @x = 50
        define_method(:"odd name") { |by = 3| @x += by }
      end
      seen = [list[0].peek, list[1].poke]
      up.call
      kind.include(Module.new { def far = @x += 100 })
      kind.prepend(Module.new { def near = @x += 1000 })
      seen += [list[0].public_send(:"odd name"), list[2].far, list[3].near]
      up.call
      seen + list.map(&:x)
    end
  end

  it "lets aliases, and what takes a method's place, call the method" do
    kind = Class.new { attr_accessor :x; def initialize(x) = @x = x; def get = @x; def other = @x }
    list = Array.new(2) { |i| kind.new(i) }
    Ikra.resident do
      2.times { list.peach(backend: :cpu) { |o| o.x += 1 } }
      kind.class_eval do
        alias_method :plain_get, :get
        def get = plain_get + 100
        undef_method :other
      end
      expect([list[0].get, list[0].plain_get, list[0].respond_to?(:other)]).to eq([102, 2, false])
    end
    expect([list[1].get, list[1].plain_get]).to eq([103, 3])
  end

  it "notices the methods of modules that an object is extended by, or whose singleton class includes them, while a scope is open" do
    seen = Module.new { def now = @count }
    list = steps
    up = -> { list.peach(backend: :cpu) { |o| o.count += 1 } }
    Ikra.resident do
      3.times { up.call }
      list[0].extend(seen)
      expect(list[0].now).to eq(3)
      up.call
      list[1].singleton_class.include(seen)
      expect([list[0].now, list[1].now]).to eq([4, 5])
      up.call
      class << list[2]
        def now = @count
      end
      expect(list.first(3).map(&:now)).to eq([5, 6, 7])
      up.call
      expect(list.first(3).map(&:now)).to eq([6, 7, 8])
    end
    expect(list.first(3).map(&:now)).to eq([6, 7, 8])
  end

  it "shows ivars that kernels were the first to assign" do
    kind = Class.new { def initialize(x) = @x = x; def note = @note = @x }
    list = Array.new(3) { |i| kind.new(i) }
    Ikra.resident do
      2.times { list.peach(backend: :cpu) { |o| o.note } }
      expect(list[0].instance_variable_defined?(:@note)).to be(true)
      expect(list[1].instance_variables).to eq(%i[@x @note])
    end
  end

  it "leaves what is shown of objects as it is: by inspect and pp, in a scope and behind it" do
    stub_const("ResidentPlain", Class.new { attr_accessor :x, :other; def initialize(x) = @x = x })
    stub_const("ResidentShown", Class.new(ResidentPlain) { def inspect = "shown #{@x}" })
    stub_const("ResidentPrinted", Class.new(ResidentPlain) { def pretty_print(printer) = printer.text("printed #{@x}") })
    list = [ResidentPlain.new(1), ResidentShown.new(2), ResidentPrinted.new(3)]
    list[0].other = list[1]
    show = -> { [*list, ResidentPlain.new(9)].map { |o| [o.inspect, o.pretty_inspect].map { |text| text.gsub(/0x\h+/, "0x") } } }
    expected = lambda do |by|
      plain = ->(x, others = "") { "#<ResidentPlain:0x @x=#{x}#{others}>" }
      [[plain.call(1 + by, ", @other=shown #{2 + by}"), "#<ResidentPlain:0x @other=shown #{2 + by}, @x=#{1 + by}>\n"], ["shown #{2 + by}", "shown #{2 + by}\n"],
       ["#<ResidentPrinted:0x @x=#{3 + by}>", "printed #{3 + by}\n"], [plain.call(9), "#{plain.call(9)}\n"]]
    end
    expect(show.call).to eq(expected.call(0))
    Ikra.resident do
      2.times { list.peach(backend: :cpu) { |o| o.x += 1 } }
      expect(show.call).to eq(expected.call(2))
      list.peach(backend: :cpu) { |o| o.x += 1 }
      expect(show.call.map(&:reverse)).to eq(expected.call(3).map(&:reverse))
    end
    expect(show.call).to eq(expected.call(3))
    expect([ResidentPlain.method_defined?(:pretty_print), ResidentPlain.instance_method(:inspect).owner]).to eq([true, Kernel])
  end

  it "shows methods behind the scope as they were written, and their arity in it" do
    kind = Class.new do
      attr_accessor :x

      def initialize(x) = @x = x
      def none = @x
      def two(one, other) = [one, other, @x]
      def some(one, other = 2, &block) = [one, other, @x, block&.call]
      def late(one = 1, other) = [one, other, @x]
      def many(*all, last) = [all, last]
      def named(one, key:, other: 3) = [one, key, other]
      def parts((one, other), last) = [one, other, last]

      protected

      def guarded(one) = one
    end
    list = [kind.new(1)]
    names = %i[x x= none two some late many named parts guarded dup instance_variable_get]
    facts = ->(method) { [method.arity, method.parameters, method.owner, method.source_location, method.original_name] }
    look = -> { names.map { |name| [facts.call(kind.instance_method(name)), facts.call(list[0].method(name))] } }
    before = look.call
    Ikra.resident do
      2.times { list.peach(backend: :cpu) { |o| o.x += 1 } }
      %i[x x= none two some parts guarded].each { |name| expect(kind.instance_method(name).arity).to eq(before[names.index(name)][0][0]), name.to_s }
      object = list[0]
      expect([object.none, object.two(1, 2), object.some(1), object.some(1, 3) { 4 }, object.late(2), object.many(1, 2, 3), object.named(1, key: 2), object.parts([1, 2], 3)])
        .to eq([3, [1, 2, 3], [1, 2, 3, nil], [1, 3, 3, 4], [1, 2, 3], [[1, 2], 3], [1, 2, 3], [1, 2, 3]])
      expect { object.two(1) }.to raise_error(ArgumentError, "wrong number of arguments (given 1, expected 2)")
      expect { object.some(1, 2, 3) }.to raise_error(ArgumentError, "wrong number of arguments (given 3, expected 1..2)")
      kind.remove_method(:none)
      kind.class_eval { def none(one) = [one, @x] }
      list.peach(backend: :cpu) { |o| o.x += 1 }
      expect(object.none(5)).to eq([5, 4])
      kind.remove_method(:none)
      kind.class_eval { def none = @x }
      # A Method that is taken here may be called here.
      expect(object.method(:none).call).to eq(4)
    end
    after = look.call
    expect(after.zip(before).each_index.reject { |i| names[i] == :none || after[i] == before[i] }.map { |i| names[i] }).to eq([])
    expect(list[0].method(:none).arity).to eq(0)
  end

  it "lets an object have a method of its own called method" do
    kind = Class.new { attr_accessor :method, :x; def initialize(x) = (@x = x) && @method = "get" }
    list = [kind.new(1)]
    Ikra.resident { 2.times { list.peach(backend: :cpu) { |o| o.x += 1 } } }
    expect([list[0].method, list[0].x]).to eq(["get", 3])
  end

  it "watches a class whose subclass came first" do
    list = steps
    Ikra.resident do
      list.grep(ResidentDouble).peach(backend: :cpu) { |o| o.count += 1 }
      list.peach(backend: :cpu) { |o| o.count += 1 }
      expect([list[0].instance_variable_get(:@count), list[1].instance_variable_get(:@count)]).to eq([1, 3])
    end
  end

  it "watches a class whose first watch was interrupted, wherever" do
    %i[fill write parameters watcher].each do |where|
      kind = Class.new { attr_accessor :x; def initialize(x) = @x = x }
      list = [kind.new(0)]
      up = -> { list.peach(backend: :cpu) { |o| o.x += 1 } }
      interrupt = TracePoint.new(:call, :return) do |trace|
        next unless trace.method_id == where && trace.self == Ikra::Resident

        interrupt.disable
        raise "interrupted"
      end
      expect { interrupt.enable { Ikra.resident { up.call } } }.to raise_error("interrupted"), where.to_s
      list[0].x = 0
      Ikra.resident do
        up.call
        expect(list[0].x).to eq(1), where.to_s
        list[0].x = 10
        up.call
        expect(list[0].x).to eq(11), where.to_s
      end
    end
  end

  it "watches a subclass of a class that is watched already" do
    base = Class.new { attr_accessor :x; def initialize(x) = @x = x }
    [base, Class.new(base), Class.new(base) { def x = super }].each do |kind|
      list = [kind.new(0)]
      Ikra.resident do
        2.times { list.peach(backend: :cpu) { |o| o.x += 1 } }
        list[0].x = 7
        list.peach(backend: :cpu) { |o| o.x += 1 }
        expect(list[0].x).to eq(8)
      end
    end
  end

  it "watches methods that are given by a thread that is interrupted while others watch" do
    kind = Class.new { attr_accessor :x; def initialize(x) = @x = x }
    list = Array.new(2) { |i| kind.new(i) }
    lock = Ikra::Resident.instance_variable_get(:@lock)
    interrupted = lambda do |&change|
      lock.synchronize do
        thread = Thread.new(&change)
        thread.report_on_exception = false
        Thread.pass until thread.stop?
        thread.raise("interrupted")
        thread
      end.then { |thread| expect { thread.join }.to raise_error("interrupted") }
    end
    Ikra.resident do
      2.times { list.peach(backend: :cpu) { |o| o.x += 1 } }
      interrupted.call { kind.class_eval { def peek = @x } }
      expect(list[0].peek).to eq(2)
      list.peach(backend: :cpu) { |o| o.x += 1 }
      interrupted.call { kind.include(Module.new { def far = @x }) }
      expect(list[0].far).to eq(3)
    end
  end

  it "watches methods of a class whose method_added raises, or takes them away" do
    hook = Module.new do
      def method_added(name)
        remove_method(name) if name == :taken
        raise "refused" if %i[refused taken].include?(name)
      end
    end
    kind = Class.new { extend hook; attr_accessor :x; def initialize(x) = @x = x }
    list = [kind.new(0)]
    Ikra.resident do
      2.times { list.peach(backend: :cpu) { |o| o.x += 1 } }
      expect { kind.class_eval { def refused = @x } }.to raise_error("refused")
      expect(list[0].refused).to eq(2)
      expect { kind.class_eval { def taken = @x } }.to raise_error("refused")
      expect(list[0].respond_to?(:taken)).to be(false)
    end
  end

  it "leaves methods as private and protected as they become, behind the scope" do
    kind = Class.new do
      attr_reader :n

      def initialize = @n = 1
      def go = @n += 1
      def known(x) = x
    end
    list = [kind.new]
    Ikra.resident(list) { list.peach(backend: :cpu, &:go) }
    kind.class_eval do
      def secret = 1
      private :secret
      def shared = 2
      protected :shared
      def go = @n += 10
      private :go
      undef_method :known
      def known(x, y = 1) = x + y + @n
    end
    %i[secret shared go].each { |name| expect { list[0].public_send(name) }.to raise_error(NoMethodError) }
    expect { list.pmap(backend: :cpu) { |late| late.secret } }.to raise_error(NoMethodError, /private method [`']secret'/)
    Ikra.resident(list) do
      list.peach(backend: :cpu) { |late| late.instance_variable_set(:@n, 5) }
      expect([list[0].known(1), list[0].known(1, 2), list[0].__send__(:secret)]).to eq([7, 8, 1])
      expect { list[0].secret }.to raise_error(NoMethodError)
    end
    expect(kind.instance_method(:known).arity).to eq(-2)
  end

  it "leaves methods as private and protected as they are" do
    kind = Class.new do
      attr_accessor :x

      def initialize(x) = @x = x
      def more?(other) = mine > other.mine

      protected

      def mine = @x

      private

      def hidden = @x
    end
    list = Array.new(2) { |i| kind.new(i) }
    Ikra.resident do
      2.times { list.peach(backend: :cpu) { |o| o.x += 1 } }
      kind.class_eval do
        private

        def later = @x
      end
      expect([list[1].more?(list[0]), list[0].__send__(:later)]).to eq([true, 2])
      %i[mine hidden later].each { |name| expect { list[0].public_send(name) }.to raise_error(NoMethodError) }
    end
  end
end
