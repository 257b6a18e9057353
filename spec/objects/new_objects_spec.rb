# frozen_string_literal: true

module NewObjects
  class Point
    attr_accessor :x, :y

    def initialize(x, y = x * 2, scale: 1)
      @x = x * scale
      @y = y
    end

    def +(other) = self.class.new(@x + other.x, @y + other.y)

    def ==(other) = other.is_a?(Point) && @x == other.x && @y == other.y
  end

  class Pixel < Point
    attr_reader :color

    def initialize(x, color)
      super(x, 7)
      @color = color
    end

    def +(other) = Pixel.new(@x + other.x, @color)
  end

  class Node
    attr_accessor :value, :left, :right, :up

    def initialize(value, up = nil)
      @value = value
      @up = up
    end

    def sprout
      @left = Node.new(@value * 2, self)
      @right = @left
      @left.left = @left
    end
  end

  class Sparse
    attr_accessor :a, :b, :c

    def initialize(i)
      @c = i
      @b = nil
      @a = i if i.even?
    end
  end

  class Strict
    def initialize(i)
      raise ArgumentError, "three" if i == 3

      @i = i
    end
  end

  class Picky
    attr_reader :half

    def initialize(i) = @half = 10 / i
  end

  class Plain; end

  class Private
    private_class_method :new

    def self.build = new
  end

  class Counted
    attr_reader :n

    def self.new(n) = super(n + 100)

    def initialize(n) = @n = n
  end

  class Row
    attr_accessor :cells, :other
  end
end

RSpec.describe "Objects made in kernels" do
  on_every_backend do
    it "come back as results" do
      expect { |run| run.pmap([1, 2, 3]) { |i| NewObjects::Point.new(i, i * 0.5) } }.to be_same_as_ruby
      expect { |run| run.pmap([1, 2, 3]) { |i| NewObjects::Point.new(i) } }.to be_same_as_ruby
      expect { |run| run.pmap([1, 2, 3]) { |i| NewObjects::Point.new(i, scale: 3) } }.to be_same_as_ruby
    end

    it "come back in any mixture of classes and other values" do
      expect do |run|
        run.pmap((0..7).to_a) do |i|
          case i % 5
          when 0 then nil
          when 1 then NewObjects::Point.new(i)
          when 2 then NewObjects::Pixel.new(i, :red)
          when 3 then NewObjects::Plain.new
          else i * 1.5
          end
        end
      end.to be_same_as_ruby
    end

    it "are of the very class, through self.class too" do
      points = [NewObjects::Point.new(1), NewObjects::Pixel.new(2, :blue)]
      sums = points.pmap(backend:) { |point| point + NewObjects::Point.new(5, 5) }
      expect(sums.map(&:class)).to eq([NewObjects::Point, NewObjects::Pixel])
      expect(sums.map(&:x)).to eq([6, 7])
    end

    it "are made once, and known by it" do
      expect do |run|
        nodes = [NewObjects::Node.new(1), NewObjects::Node.new(2)]
        run.peach(nodes, &:sprout)
        nodes.map { |node| [node.left.equal?(node.right), node.left.up.equal?(node)] }
      end.to be_same_as_ruby
    end

    it "are made anew in every tick" do
      expect do |run|
        nodes = [NewObjects::Node.new(1), NewObjects::Node.new(3)]
        run.peach(nodes, 5) do |node|
          node.left = NewObjects::Node.new(node.left ? node.left.value + node.value : 0)
        end
        nodes
      end.to be_same_as_ruby
    end

    it "have the instance variables that they were given, and no others" do
      made = (0..3).pmap(backend:) { |i| NewObjects::Sparse.new(i) }
      expect(made.map { |object| object.instance_variables.sort }).to eq([%i[@a @b @c], %i[@b @c], %i[@a @b @c], %i[@b @c]])
      expect(made[0].instance_variables.first).to eq(:@c)
    end

    it "need no constructor of their own" do
      made = [1, 2].pmap(backend:) { NewObjects::Plain.new }
      expect(made.map(&:class).uniq).to eq([NewObjects::Plain])
      expect(made[0]).not_to equal(made[1])
      expect(made[0].instance_variables).to be_empty
      expect(made).to all(satisfy { |object| !object.frozen? })
    end

    it "may be made without a constructor" do
      made = [1, 2].pmap(backend:) do |i|
        point = NewObjects::Point.allocate
        point.x = i
        point
      end
      expect(made.map(&:x)).to eq([1, 2])
      expect(made.map(&:y)).to eq([nil, nil])
    end

    it "surface what their constructor raises, and nothing changes" do
      nodes = [4, 2, 0, 1].map { |n| NewObjects::Node.new(n) }
      expect { nodes.peach(backend:) { |node| node.left = NewObjects::Picky.new(node.value) } }
        .to raise_error(ZeroDivisionError) { |error| expect(error.ikra.index).to eq(2) }
      expect(nodes.map(&:left)).to eq([nil] * 4)
    end

    it "tell wrong arguments as Ruby does" do
      expect { |run| run.pmap([1]) { NewObjects::Plain.new(1) } }.to be_same_as_ruby
      expect { |run| run.pmap([1]) { NewObjects::Point.new } }.to be_same_as_ruby
      expect { |run| run.pmap([1]) { |i| NewObjects::Point.new(i, foo: 1) } }.to be_same_as_ruby
    end

    it "respect private constructors and those that are written in Ruby" do
      expect { |run| run.pmap([1]) { NewObjects::Private.new } }.to be_same_as_ruby
      expect([1].pmap(backend:) { NewObjects::Private.build }.first).to be_a(NewObjects::Private)
      expect([1].pmap(backend:) { |i| NewObjects::Counted.new(i) }.first.n).to eq(101)
    end

    it "take as many rows as they need" do
      count = 200
      lists = [3, 2000].pmap(backend:) do |n|
        first = nil
        n.times { |i| first = NewObjects::Node.new(i, first) }
        first
      end
      expect(lists.map(&:value)).to eq([2, 1999])
      length = 0
      node = lists[1]
      length += 1 while (node = node.up)
      expect(length).to eq(1999)
      sums = Array.new(count) { |i| i }.pmap(backend:) do |n|
        sum = 0
        n.times { |i| sum += NewObjects::Node.new(i, NewObjects::Plain.new).value }
        sum
      end
      expect(sums).to eq(Array.new(count) { |n| n * (n - 1) / 2 })
    end

    it "are captured locals' values, too" do
      last = nil
      [1, 2, 3].peach(backend:) { |i| last = NewObjects::Point.new(i) }
      expect([last.x, last.y]).to eq([3, 6])
    end

    it "are what a section is left with by break" do
      found = (0..100).peach(backend:) { |i| break NewObjects::Point.new(i) if i == 41 }
      expect(found).to eq(NewObjects::Point.new(41))
    end

    it "are named by messages" do
      message = /undefined method .jump' for (#<|an instance of )NewObjects::Plain/
      expect { [1].pmap(backend:) { NewObjects::Plain.new.jump } }.to raise_error(NoMethodError, message)
    end

    it "are refused where their class is more than instance variables" do
      expect { [1].pmap(backend:) { Thread.new } }.to raise_error(Ikra::CompileError, /Thread/)
      expect { [1].pmap(backend:) { Random.new } }.to raise_error(Ikra::CompileError, /Random/)
      expect { |run| run.pmap([1]) { Integer.new } }.to be_same_as_ruby
      expect { |run| run.pmap([1]) { String.new } }.to be_same_as_ruby
    end

    # See tests/cases/regressions/a_name_that_may_become_anothers.rb.
    it "are written through a second name that may have become another's" do
      cell = Struct.new(:v)
      expect { |i| p = cell.new(i); x = p; 3.times { |k| q = cell.new(k); x = q if i == k; x.v += 7 }; p.v }.to be_same_as_ruby.over(0, 1, 2, 3)
    end

    it "survive the garbage collector", :garbage do
      made = nil
      2.times do |time|
        # The first call compiles. Under stress that takes minutes in a process with many objects.
        GC.stress = time == 1
        made = [1, 2, 3].pmap(backend:) { |i| [NewObjects::Point.new(i, 1e300 * i), [i]] }
      end
      GC.stress = false
      expect(made.map { |point, list| [point.x, point.y, list] }).to eq([[1, 1e300, [1]], [2, 2e300, [2]], [3, 3e300, [3]]])
    ensure
      GC.stress = false
    end
  end

  it "come by the hundred thousand", :slow do
    made = (0...300_000).pmap { |i| NewObjects::Point.new(i, i) }
    expect(made.size).to eq(300_000)
    expect(made.each_with_index).to all(satisfy { |(point, i)| point.x == i })
  end
end

RSpec.describe "Arrays made in kernels" do
  it "are as many as fit into memory, however many kinds of them want room one after the other" do
    expect([1, 70_000]).to map_same_as_ruby(on: :cpu) { |n|
      a = []
      n.times { |i| a << [i] }
      b = []
      n.times { |i| b << [i * 2] }
      c = []
      n.times { |i| c << [i, nil] }
      d = []
      n.times { |i| d << [i.even?] }
      e = []
      n.times { |i| e << [:a, i] }
      a.sum { |x| x[0] } + b.sum { |x| x[0] } + c.sum { |x| x[0] } + d.count { |x| x[0] } + e.sum { |x| x[1] }
    }
  end

  on_every_backend do
    it "come back as results, nested and mixed" do
      expect { |run| run.pmap([1, 2]) { |i| [i, i * 2.5, nil, :a] } }.to be_same_as_ruby
      expect { |run| run.pmap([1, 2]) { |i| [[1, 2.5], [nil, :a], [], [i]] } }.to be_same_as_ruby
      expect { |run| run.pmap([1, 2]) { [] } }.to be_same_as_ruby
      expect { |run| run.pmap([1, 2]) { |i| i == 1 ? [i] : i } }.to be_same_as_ruby
    end

    it "have the length that they are given" do
      expect { |run| run.pmap([0, 1, 5]) { |n| Array.new(n) } }.to be_same_as_ruby
      expect { |run| run.pmap([0, 1, 5]) { |n| Array.new(n, n * 0.5) } }.to be_same_as_ruby
      expect { |run| run.pmap([0, 1, 5]) { Array.new } }.to be_same_as_ruby
      expect { |run| run.pmap([1, -1]) { |n| Array.new(n) } }.to be_same_as_ruby
      expect { |run| run.pmap([1, 2**61]) { |n| Array.new(n) } }.to be_same_as_ruby
    end

    it "hold new objects, and the same one several times" do
      made = [1, 2].pmap(backend:) do |i|
        point = NewObjects::Point.new(i)
        [point, point, NewObjects::Point.new(i)]
      end
      expect(made).to all(satisfy { |a, b, c| a.equal?(b) && !a.equal?(c) && a == c })
    end

    it "hold what was there before" do
      points = [NewObjects::Point.new(1), NewObjects::Point.new(2)]
      made = points.pmap(backend:) { |point| [point, point.x] }
      expect(made.map(&:first).zip(points)).to all(satisfy { |a, b| a.equal?(b) })
    end

    it "are stored into objects and arrays that are there" do
      expect do |run|
        rows = Array.new(3) { NewObjects::Row.new }
        lists = [[], [1], nil]
        rows.each_with_index { |row, i| row.cells = lists[i] }
        run.peach(rows) do |row|
          list = Array.new(2, row.cells ? row.cells.size : -1)
          row.cells = list
          row.other = [list, [3]]
        end
        rows
      end.to be_same_as_ruby
    end

    it "take as many rows as they need" do
      sizes = [1, 100_000, 3]
      expect(sizes.pmap(backend:) { |n| Array.new(n, n) }).to eq(sizes.map { |n| Array.new(n, n) })
    end

    it "that would not fit into memory are told" do
      expect { [1 << 40].pmap(backend:) { |n| Array.new(n) } }
        .to raise_error(Ikra::DeviceMemoryError, /making arrays at .*new_objects_spec\.rb:\d+/)
    end

    it "are made with splats and blocks" do
      expect([1, 2].pmap(backend:) { |i| [*[i], 2, *(1..i)] }).to eq([[1, 2, 1], [2, 2, 1, 2]])
      expect([1, 2].pmap(backend:) { |i| Array.new(3) { |j| i + j } }).to eq([[1, 2, 3], [2, 3, 4]])
    end

    it "meet arrays that are there and that nobody reads" do
      holder = Struct.new(:items)
      holders = [holder.new([7, -3, 2**40]), holder.new([])]
      result = holders.pmap(backend:) { |h| h.items.empty? ? [] : h.items }
      expect(result).to eq([[7, -3, 2**40], []])
      expect(result[0]).to equal(holders[0].items)
    end

    it "are added to arrays alone" do
      x = [[1], 5, nil]
      expect { |i| ([1] + x[i]).size }.to be_same_as_ruby.over(0, 1, 2)
    end
  end

  # Ruby makes and fills them in batches, so there are several batches of each kind here.
  on_every_backend do
    let(:count) { 700 }

    def same(&block) = expect((0...count).pmap(backend:, &block)).to eq((0...count).map(&block))

    it "in great numbers hold numbers, symbols, strings and each other" do
      same { |i| [i, i * 2] }
      same { |i| [i * 1e300, 4_611_686_018_427_387_904 + i, nil] }
      same { |i| [i.even? ? :even : :odd, i.even? ? "even" : "odd", i] }
      same { |i| [[i], [], [[i, 2.5]]] }
      same { |i| i % 3 == 0 ? NewObjects::Point.new(i) : NewObjects::Pixel.new(i, 1.5) }
      same { |i| [Complex(i, 1.5), (i..i + 2)] }
    end

    it "in great numbers are one object where they are referred to twice" do
      lists = (0...count).pmap(backend:) { |i| [[i, i]].then { |list| [list, list] } }
      expect(lists).to all(satisfy { |a, b| a.equal?(b) })
      expect(lists.map { |list,| list.object_id }.uniq.size).to eq(count)
      nodes = (0...count).pmap(backend:) { |i| NewObjects::Node.new(i).tap(&:sprout) }
      expect(nodes).to all(satisfy { |n| n.left.equal?(n.right) && n.left.left.equal?(n.left) && n.left.up.equal?(n) })
    end

    it "in great numbers are frozen one by one" do
      lists = (0...count).pmap(backend:) { |i| i % 3 == 0 ? [i, 1].freeze : [i, 2] }
      expect(lists.map(&:frozen?)).to eq((0...count).map { |i| i % 3 == 0 })
    end

    it "in great numbers are longer than a batch" do
      lists = [3000, 128, 129, 1024, 1025]
      expect(lists.pmap(backend:) { |n| Array.new(n) { |i| [i, n] } }).to eq(lists.map { |n| Array.new(n) { |i| [i, n] } })
    end

    it "in great numbers stay where they are while the collector runs at each allocation" do
      before = <<~RUBY
        class Point
          attr_reader :x, :y
          def initialize(x, y) = (@x, @y = x, y)
          def ==(other) = other.is_a?(Point) && @x == other.x && @y == other.y
        end
        make = ->(i) { [Point.new(i, [i, 1.5]), [[i]], i] }
      RUBY
      found = run_under_gc_stress("(0...150).pmap(backend: :#{backend}, &make)", before:, show: "found == (0...150).map(&make)")
      expect(found).to eq("true\n")
    end
  end
end
