# frozen_string_literal: true

# A thread of a GPU computes several consecutive elements of 8 bytes or less. Only the time shows it.
RSpec.describe "MDArrays of narrow elements" do
  def single(number) = [number].pack("e").unpack1("e")

  def list(dtype, size)
    case dtype
    when :f32 then Array.new(size) { |i| ((i * 37 + 11) % 1000) / 8.0 - 50.0 }
    when :bool then Array.new(size) { |i| i * i % 7 < 3 }
    else Array.new(size) { |i| (i * 37 + 11) % 100 }
    end
  end

  def narrow(dtype, numbers) = md(numbers).then { |array| dtype == :bool ? array : array.to(dtype).sync }

  it "are as many for each thread as 16 bytes hold" do
    code = ->(array) { Ikra.explain { (array + 1).sync }.sections.last.code(:cuda) }
    found = { f32: "Rows<float, 4>", i32: "Rows<i32, 4>", u8: "Rows<u8, 16>", i64: "Rows<i64, 2>" }
    found.each { |dtype, text| expect(code.call(narrow(dtype, [1, 2, 3]))).to include text }
  end

  on_all_backends do |name|
    # The last sizes are so large that a GPU's threads have several elements each.
    sizes = [1, 5, 33, 64, 131, 515] + (name == :cuda ? [600_001, 2_200_003] : [])

    it "compute what Ruby computes, of all lengths" do
      sizes.each do |size|
        floats, bytes, integers, truths = %i[f32 u8 i32 bool].map { |dtype| list(dtype, size) }
        f, u, i, b = narrow(:f32, floats), narrow(:u8, bytes), narrow(:i32, integers), narrow(:bool, truths)
        expect((f * 2.5 + f * 0.5 * f).to_a).to eq(floats.map { |x| single(single(x * 2.5) + single(single(x * 0.5) * x)) })
        expect((u + 55).to_a).to eq(bytes.map { |x| x + 55 })
        expect((i * i - 7).to_a).to eq(integers.map { |x| x * x - 7 })
        expect((b ^ (f > 3.0)).to_a).to eq(truths.zip(floats).map { |x, y| x ^ (y > 3.0) })
        expect(f.map { |x| x > 1.0 ? x : -x }.to_a).to eq(floats.map { |x| x > 1.0 ? x : -x })
      end
    end

    it "of two widths are computed with each other" do
      sizes.each do |size|
        floats, bytes, integers, truths = %i[f32 u8 i32 bool].map { |dtype| list(dtype, size) }
        f, u, i, b = narrow(:f32, floats), narrow(:u8, bytes), narrow(:i32, integers), narrow(:bool, truths)
        expect((f + u).to_a).to eq(floats.zip(bytes).map { |x, y| single(x + y) })
        expect((u * 2 + i).to_a).to eq(bytes.zip(integers).map { |x, y| x * 2 + y })
        expect((md(integers) > u).to_a).to eq(integers.zip(bytes).map { |x, y| x > y })
        expect((b & (u > 50)).to_a).to eq(truths.zip(bytes).map { |x, y| x & (y > 50) })
      end
    end

    it "may begin anywhere" do
      floats, bytes = list(:f32, 517), list(:u8, 517)
      f, u = narrow(:f32, floats), narrow(:u8, bytes)
      [1, 3, 4, 16, 17].each do |from|
        expect((f[from..] + 1.0).to_a).to eq(floats[from..].map { |x| x + 1.0 }), from.to_s
        expect((u[from..-2] + 1).to_a).to eq(bytes[from..-2].map { |x| x + 1 }), from.to_s
        expect((f[from..-2] * f[from + 1..]).to_a).to eq(floats[from..-2].zip(floats[from + 1..]).map { |x, y| single(x * y) }), from.to_s
        expect((u[from..] > f[from..]).to_a).to eq(bytes[from..].zip(floats[from..]).map { |x, y| x > y }), from.to_s
      end
    end

    it "raise at the first that raises, and are then what they were" do
      size = sizes.last
      [0, 13, size / 2, size - 1].each do |wrong|
        bytes = list(:u8, size)
        bytes[wrong] = 250
        bytes[-1] = 255
        u = narrow(:u8, bytes)
        first = wrong == size - 1 ? 255 : 250
        expect { (u + 10).to_a }.to raise_error(RangeError, "element [#{wrong}]: #{first + 10} does not fit u8 (0 to 255)")
        expect { u.map! { |x| x + 10 }.to_a }.to raise_error(RangeError, /element \[#{wrong}\]/)
        expect(u.to_a).to eq bytes
      end
    end

    it "are changed in place" do
      sizes.each do |size|
        floats, bytes, truths = %i[f32 u8 bool].map { |dtype| list(dtype, size) }
        f, u, b = narrow(:f32, floats), narrow(:u8, bytes), narrow(:bool, truths)
        3.times do
          f.map! { |x| x * 0.5 + 1.0 }
          u.map! { |x| 255 - x }
          b.map!(&:!)
          floats.map! { |x| single(x * 0.5 + 1.0) }
          bytes.map! { |x| 255 - x }
          truths.map!(&:!)
        end
        expect([f.to_a, u.to_a, b.to_a]).to eq [floats, bytes, truths]
      end
      bytes = list(:u8, 300)
      u = narrow(:u8, bytes)
      u[5..-2] = u[5..-2] + 1
      expect(u.to_a).to eq bytes[0...5] + bytes[5..-2].map { |x| x + 1 } + bytes[-1..]
      u[1..] = u[0..-2] + 1
      expected = bytes[0...5] + bytes[5..-2].map { |x| x + 1 } + bytes[-1..]
      expect(u.to_a).to eq [expected[0], *expected[0..-2].map { |x| x + 1 }]
    end

    it "have columns that wider ones do not fit into" do
      wide = { i64: [-100, 2**40], i32: [-100, 300], f64: [0.1, 1e300] }
      { u8: %i[i32 i64], i32: %i[i64], f32: %i[f64] }.each do |dtype, others|
        blocks = [->(array) { array.map { |x| x }.to_a }, ->(array) { [0, 1].pmap { |i| array[i] } },
                  ->(array) { array.sum { |x| x } }, ->(array) { array.stencil([0, 1], array[0] * 0) { |x, y| x + y }.to_a }]
        blocks.product(others).each do |block, other|
          expected = [wide[other], wide[other], wide[other].sum, [wide[other].sum, 0]][blocks.index(block)]
          block.call(narrow(dtype, dtype == :f32 ? [0.5, 2.0] : [5, 200]))
          expect([dtype, other, block.call(md(wide[other], dtype: other))]).to eq [dtype, other, expected]
        end
      end
    end
  end
end
