# frozen_string_literal: true

module UnusualObjects
  class Item
    attr_accessor :a, :b

    def initialize(a = 1, b = 2)
      @a = a
      @b = b
    end

    def sum = @a + @b
    def swap = (@a, @b = @b, @a)
    def late = @late.nil? ? 0 : @late
    def set_late(v) = @late = v
  end

  class Sub < Item
    def sum = super * 10
  end

  class Other
    attr_accessor :a

    def initialize(a) = @a = a
  end

  Member = Struct.new(:a)

  # Instance variables in another order.
  class Reversed < Item
    def initialize(a, b)
      @b = b
      @a = a
    end
  end

  # More instance variables than fit into an object's own slot.
  class Wide
    def initialize(n)
      @v0 = @v1 = @v2 = @v3 = @v4 = @v5 = @v6 = @v7 = @v8 = n
      @v9 = n * 2
    end

    def shift
      @v0, @v9 = @v9, @v0
      @v5 += 1
    end
  end
end

RSpec.describe "Objects out of the ordinary" do
  on_every_backend do
    it "may be frozen, as long as nobody writes to them" do
      items = [UnusualObjects::Item.new.freeze, UnusualObjects::Item.new(3, 4)]
      expect { |item| item.sum }.to be_same_as_ruby.over(items)
    end

    it "raises FrozenError where a frozen object is written, and changes nothing" do
      expect do |run|
        items = [UnusualObjects::Item.new, UnusualObjects::Item.new(3, 4).freeze, UnusualObjects::Item.new]
        run.peach(items) { |item| item.swap }
      end.to be_same_as_ruby
    end

    it "asks for frozenness only where the write is reached" do
      expect do |run|
        items = [UnusualObjects::Item.new, UnusualObjects::Item.new(3, 4).freeze]
        run.peach(items) { |item| item.swap if item.a == 1 }
      end.to be_same_as_ruby
    end

    it "may be of a subclass, with instance variables in another order" do
      expect do |run|
        items = [UnusualObjects::Item.new, UnusualObjects::Sub.new(5, 6), UnusualObjects::Reversed.new(7, 8), UnusualObjects::Reversed.new(9.5, nil)]
        run.peach(items) { |item| item.swap }
        run.pmap(items.first(3)) { |item| item.sum }
      end.to be_same_as_ruby
    end

    it "may have methods of its own", :stress do
      expect do |run|
        items = Array.new(3) { |i| UnusualObjects::Item.new(i) }
        def (items[1]).sum = super + 1000
        run.pmap(items) { |item| item.sum }
      end.to be_same_as_ruby
    end

    it "may be extended by a module", :stress do
      extension = Module.new { def sum = super * 7 }
      expect do |run|
        items = Array.new(3) { |i| UnusualObjects::Item.new(i) }
        items[2].extend(extension)
        run.peach(items) { |item| item.swap }
        run.pmap(items) { |item| item.sum }
      end.to be_same_as_ruby
    end

    it "may lack instance variables that others have" do
      expect do |run|
        items = Array.new(6) { |i| UnusualObjects::Item.new(i) }
        items.each_with_index { |item, i| item.set_late(i * 100) if i.even? }
        run.pmap(items) { |item| item.late }
      end.to be_same_as_ruby
    end

    it "gets an instance variable that it did not have" do
      expect do |run|
        items = Array.new(4) { |i| UnusualObjects::Item.new(i) }
        run.peach(items) { |item| item.set_late(7) if item.a > 1 }
      end.to be_same_as_ruby
    end

    it "may have many instance variables" do
      expect { |run| run.peach([UnusualObjects::Wide.new(1), UnusualObjects::Wide.new(2.5)], 3) { |wide| wide.shift } }.to be_same_as_ruby
    end

    it "may hold what kernels cannot, as long as nobody looks" do
      expect do |run|
        items = [UnusualObjects::Item.new("text", { a: 1 }), UnusualObjects::Item.new(2**100, /x/)]
        run.peach(items) { |item| item.set_late(1) }
      end.to be_same_as_ruby
    end

    it "says which value of which object kernels cannot hold" do
      items = [UnusualObjects::Item.new(1, /text/)]
      expect { items.pmap(backend:) { |item| item.b } }.to raise_error(Ikra::CompileError, /a Regexp.*@b/m)
      items = [UnusualObjects::Item.new(1, 2**64)]
      expect { items.pmap(backend:) { |item| item.b } }.to raise_error(Ikra::CompileError, /64 bits.*@b/m)
    end

    it "says so wherever in the list, and in whatever class, it is, and when it appears" do
      {
        "an Integer beyond 64 bits" => 2**64, "a Regexp" => /text/, "a String in UTF-16LE" => "text".encode("UTF-16LE"),
        "an Array with methods of its own" => [1].tap { |list| def list.own = 1 }
      }.each do |what, value|
        [0, 1, 700].each do |before|
          items = Array.new(before) { |i| UnusualObjects::Item.new(i) }
          refused = raise_error(Ikra::CompileError, /kernels cannot hold #{what}, which @a of UnusualObjects::Other/)
          block = ->(list) { list.peach(backend:) { |x| x.a = x.a.nil? ? 1 : x.a } }
          block.call(items)
          expect { block.call([*items, UnusualObjects::Other.new(value), UnusualObjects::Item.new]) }.to refused
          expect { block.call([UnusualObjects::Item.new, UnusualObjects::Other.new(value), *items]) }.to refused
          block.call([*items, UnusualObjects::Other.new(1)])
        end
      end
    end

    it "says so of what another object, an array or a Struct holds" do
      list = ->(value) { [UnusualObjects::Item.new([1]), UnusualObjects::Other.new([2, value])] }
      expect { list.call(2**64).pmap(backend:) { |x| x.a[-1] } }.to raise_error(Ikra::CompileError, /64 bits, which an element of an array is/)
      inner = [UnusualObjects::Item.new(UnusualObjects::Item.new(1)), UnusualObjects::Item.new(UnusualObjects::Other.new(2**64))]
      expect { inner.pmap(backend:) { |x| x.a.a } }.to raise_error(Ikra::CompileError, /64 bits, which @a of UnusualObjects::Other is/)
      members = [UnusualObjects::Item.new(1), UnusualObjects::Member.new(2**64)]
      expect { members.pmap(backend:) { |x| x.a } }.to raise_error(Ikra::CompileError, /64 bits, which a of UnusualObjects::Member is/)
    end

    it "keeps what it is: its class, its identity, its other variables", :stress do
      item = UnusualObjects::Sub.new(1, 2)
      item.instance_variable_set(:@untouched, +"text")
      id = item.object_id
      [item].peach(3, backend:) { |x| x.swap }
      expect([item.class, item.object_id, item.a, item.b, item.instance_variable_get(:@untouched)]).to eq([UnusualObjects::Sub, id, 2, 1, "text"])
    end
  end
end
