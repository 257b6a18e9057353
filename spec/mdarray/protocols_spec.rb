# frozen_string_literal: true

require "pp"

RSpec.describe Ikra::MDArray do
  let(:array) { md([[1, 2], [3, 4]]) }

  on_quick_backends do
    it "equals arrays of the same shape and elements" do
      expect(array).to eq(md([[1, 2], [3, 4]]))
      expect(array == md([[1.0, 2.0], [3.0, 4.0]])).to be(true)
      expect(array.t.t).to eq(array)
      expect([array == array.t, array == md([[1, 2], [3, 5]]), array == array.flatten, array == [[1, 2], [3, 4]], array == nil]).to all(be(false))
      expect(md([Float::NAN]) == md([Float::NAN])).to be(false)
      expect(md([true]) == md([1])).to be(false)
      expect(md(["a"]) == md(["a"])).to be(true)
      expect(md([]) == md([])).to be(true)
    end

    it "takes no other number of elements from Marshal than its shape has" do
      expect { described_class.allocate.marshal_load([1, :i64, [1000], "abcdefgh"]) }.to raise_error(ArgumentError, "there are 1 elements for shape [1000]")
      expect { described_class.allocate.marshal_load([1, :i64, [1], "abcdefghi"]) }.to raise_error(ArgumentError, /1 elements/)
      expect { described_class.allocate.marshal_load([1, :i64, [-1], ""]) }.to raise_error(ArgumentError, "dimension 0 is negative: -1")
      expect { described_class.allocate.marshal_load([1, :i9, [1], ""]) }.to raise_error(ArgumentError, /dtype: :i9/)
    end

    it "is a key by its bits", :stress do
      keys = { array => 1 }
      expect([keys[array.dup], keys[array.t.t], keys[array.to(:f64)], keys[array + 1]]).to eq([1, 1, nil, nil])
      expect([array.eql?(array.dup), array.eql?(array.to(:f64)), md([0.0]).eql?(md([-0.0])), md([Float::NAN]).eql?(md([Float::NAN]))]).to eq([true, false, false, true])
    end
  end

  it "goes through Marshal", :stress do
    [array, array.t, md([0.5, Float::NAN]), md([[true], [false]]), md([1, 2], dtype: :u8), md(["a", nil]), array * 2, md([])].each do |original|
      copy = Marshal.load(Marshal.dump(original))
      expect([copy.to_a.inspect, copy.shape, copy.dtype]).to eq([original.to_a.inspect, original.shape, original.dtype])
    end
  end

  it "shows what it is, and no more than a few elements" do
    expect(array.inspect).to eq("#<Ikra::MDArray 2×2 i64, on the host: [[1, 2], [3, 4]]>")
    expect(md((0...100).to_a).to_s).to eq("#<Ikra::MDArray 100 i64, on the host: [0, 1, 2, 3, 4, 5, …]>")
    expect((array * 2).inspect).to eq("#<Ikra::MDArray 2×2 i64, pending>")
    expect(md(Array.new(8) { [0.5] * 9 }).inspect).to include("[0.5, 0.5, 0.5, 0.5, 0.5, 0.5, …], …]")
    expect(md(["a"]).inspect).to eq('#<Ikra::MDArray 1 object, on the host: ["a"]>')
    expect(md([]).inspect).to eq("#<Ikra::MDArray 0 f64, on the host: []>")
    expect(md(Array.new(4) { |i| [i * 1000] * 9 }).pretty_inspect.lines.size).to be > 3
    expect(array[0].inspect).to eq("#<Ikra::MDArray 2 i64, on the host: [1, 2]>")
    expect(md(Array.new(9, 1)).pretty_inspect.delete("\n")).to end_with("[1, 1, 1, 1, 1, 1, …]>")
    expect(md([:…]).inspect).to end_with("[:…]>")
  end

  it "does not move a large array from the device to show it" do
    large = md(Array.new(100) { 1.5 })
    buffer = large.__storage.buffer
    allow(large).to receive(:where).and_return(:device)
    [large.inspect, large.to_html, large.pretty_inspect].each { |shown| expect(shown).not_to include("1.5") }
    expect(buffer.where).to be(:host)
  end

  it "is a table in IRuby" do
    expect(array.to_iruby).to eq(["text/html", array.to_html])
    expect(array.to_html).to eq("<p>MDArray 2×2 i64, on the host</p><table><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>")
    expect(md(["<a>"]).to_html).to include("<td>&quot;&lt;a&gt;&quot;</td>").or include("<td>\"&lt;a&gt;\"</td>")
    expect(md(1, 1, 1).to_html).to eq("<p>MDArray 1×1×1 f64, on the host</p>").or eq("<p>MDArray 1×1×1 f64, nowhere yet</p>")
  end

  it "is shown where it is among its own elements, and before it has any" do
    own = described_class.new(2, dtype: :object)
    own[0] = own
    inner = "#<Ikra::MDArray 2 object, on the host: [...]>"
    expect([own.inspect, own.inspect]).to all(eq("#<Ikra::MDArray 2 object, on the host: [#{inner}, nil]>"))
    expect(own.pretty_inspect).to match(/\A#<Ikra::MDArray 2 object, on the host:\s+\[#<Ikra::MDArray:0x\h+\s+\.\.\.>, nil\]>\n\z/)
    none = described_class.allocate
    expect([none.inspect, none.pretty_inspect]).to eq(["#<Ikra::MDArray uninitialized>", "#<Ikra::MDArray uninitialized>\n"])
    expect { none.shape }.to raise_error(ArgumentError, "uninitialized Ikra::MDArray")
    expect { none == array }.to raise_error(ArgumentError, "uninitialized Ikra::MDArray")
  end

  it "says where it is" do
    pending = array + 1
    expect([array.where, pending.where, md(["a"]).where]).to eq(%i[host pending host])
    expect(pending.sync).to be(pending)
    expect(pending.where).to be(:host).or be(:device).or be(:both)
  end
end
