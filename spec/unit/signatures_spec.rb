# frozen_string_literal: true

require_relative "../support/signatures/sig"

# Calls are checked by rake spec:signatures.
RSpec.describe "sig/ikra.rbs" do
  before { skip "NOT TESTED: this Ruby has no RBS" unless Signatures.rbs? }

  it "is valid" do
    told, status = Signatures.validate
    expect(status).to be_success, told
  end

  it "has the public methods, and no others" do
    expect(Signatures.unknown).to eq([])
    expect(Signatures.differences).to eq([])
  end

  # rake spec:signatures calls every public method. These are aliases, and others that its other specs do not call.
  it "is right about what other specs seldom call" do
    array = Ikra::MDArray[[1.5, 2.0], [3.0, 4.0]]
    { length: :size, magnitude: :abs, ravel: :flatten, mm: :matmul, modulo: :%, pow: :** }.each do |one, other|
      arguments = { mm: [array], modulo: [2], pow: [2] }.fetch(one, [])
      expect(array.public_send(one, *arguments)).to eq(array.public_send(other, *arguments))
    end
    expect(array.as_type(:i64).collect! { |x| x + 1 }.to_a).to eq([[2, 3], [4, 5]])
    expect(array.acosh).to eq(Ikra::MDArray::Math.acosh(array))
    expect(array.hypot(1)).to eq(Ikra::MDArray::Math.hypot(array, 1))
    expect(array.atan2(1)).to eq(Ikra::MDArray::Math.atan2(array, 1))

    chain = (1..4).plazy
    expect([chain.collect(&:succ), chain.filter(&:even?), chain.find_all(&:odd?), chain.collect_concat { |x| [x, x] }].map(&:to_a))
      .to eq([[2, 3, 4, 5], [2, 4], [1, 3], [1, 1, 2, 2, 3, 3, 4, 4]])

    expect(chain.peach { |x| x + 1 }).to equal(chain)

    expect(Ikra.memory.keys).to include(:host, :device, :limit)
    expect(Ikra.config.to_h.keys).to eq(Ikra::Config::DEFAULTS.keys)
    began, ended = Ikra.profile { [1, 2].pmap(backend: :cpu) { |n| n + 1 } }.sections.first.launched
    expect(0.0..ended).to cover(began)
    expect(Ikra.resident([1]) { Ikra.sync || 7 }).to eq(7)
    expect { [1, 0].pmap { |x| 1 / x } }.to raise_error(ZeroDivisionError) { |error| expect(error.ikra.to_a).to eq([1, 0]) }
    expect { raise Ikra::DeviceMemoryError, "full" }.to raise_error(Ikra::DeviceMemoryError) { |error| expect(error.holders).to be_an(Array) }
  end
end
