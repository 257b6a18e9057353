# frozen_string_literal: true

RSpec.describe "operations with unsupported: :ruby" do
  around do |example|
    Ikra.logger = Class.new { def warn(_message) = nil }.new
    example.run
  ensure
    Ikra.logger = nil
  end

  # A method that kernels do not know.
  def text(value) = "#{value}#{Thread.current.alive? ? "" : "?"}"

  # Runs a method of Ruby's and the parallel one with the same block.
  def both(base, name, *args, &block)
    values = [-> { base.dup.public_send(name, *args, &block) }, -> { base.dup.public_send(:"p#{name}", *args, unsupported: :ruby, &block) }]
    values.map do |run|
      run.call
    rescue StandardError => e
      [e.class, e.message]
    end
  end

  [[3, 10, 2], [], [5], 1..4].each do |base|
    %i[map select filter reject partition filter_map flat_map count all? any? none? one? find detect find_index group_by uniq min_by max_by minmax_by sort_by].each do |name|
      it "#{name} of #{base} gives what Ruby gives" do
        expect(both(base, name) { |x| text(x) > "2" }.uniq.size).to eq 1 unless name.end_with?("_by") && name != :group_by
        expect(both(base, name) { |x| text(x) }.uniq.size).to eq 1
      end
    end

    it "combining, comparing and joining #{base} gives what Ruby gives" do
      expect(both(base, :reduce) { |a, b| text(a) + text(b) }.uniq.size).to eq 1
      expect(both(base, :inject, 7) { |a, b| text(a) + text(b) }.uniq.size).to eq 1
      expect(both(base, :sum, "") { |x| text(x) }.uniq.size).to eq 1
      %i[sort min max minmax].each { |name| expect(both(base, name) { |a, b| text(a) <=> text(b) }.uniq.size).to eq 1 }
      seen = []
      expect(both(base, :zip, [1, 2]) { |x, y| seen << text(x) + text(y) }).to eq [nil, nil]
      expect(seen.each_slice([seen.size / 2, 1].max).to_a.uniq.size).to be <= 1
    end
  end

  it "does what only parallel methods do" do
    expect([1, 2, 3].pscan(unsupported: :ruby) { |a, b| text(a) + text(b) }).to eq [1, "12", "123"]
    expect([1, 2].pscan(0, unsupported: :ruby) { |a, b| text(a) + text(b) }).to eq %w[01 012]
    expect([1, 2].pcombine(5..9, [7], unsupported: :ruby) { |x, y, z| text(x) + text(y) + text(z) }).to eq %w[157 26]
    expect(Array.pnew(2, 2, unsupported: :ruby) { |y, x| text(y) + text(x) + text(Ikra.index) }).to eq [%w[000 011], %w[102 113]]
    expect(Array.pnew(2, unsupported: :ruby) { |i| text(i) }).to eq %w[0 1]
    expect([1, 2, 3].pstencil([-1, 1], :out, unsupported: :ruby) { |a, b| text(a) + text(b) }).to eq [:out, "13", :out]
    expect([1, 2, 3].pstencil([-1, 1], :out, unsupported: :ruby) { |v| text(v[-1]) + text(v[1]) }).to eq [:out, "13", :out]
    expect([[1, 2], [3, 4]].pstencil([[0, 1], [1, 0]], nil, unsupported: :ruby) { |v| text(v[0, 1]) + text(v[1, 0]) }).to eq [["23", nil], [nil, nil]]
    expect([3, 1].pmap!(unsupported: :ruby) { |x| text(x) }).to eq %w[3 1]
    expect([3, 1, 2].pmin_by(2, unsupported: :ruby) { |x| text(x) }).to eq [1, 2]
  end

  it "keeps the order of what is equal" do
    pairs = Array.new(50) { |i| [i % 3, i] }
    expect(pairs.psort(unsupported: :ruby) { |a, b| text(a[0]) <=> text(b[0]) }).to eq pairs.sort
    expect(pairs.psort_by(unsupported: :ruby) { |a, _| text(a) }).to eq pairs.sort
    expect { pairs.psort_by(unsupported: :ruby) { |a, _| text(a) == "1" ? 1 : text(a) } }.to raise_error(ArgumentError, /comparison of (String|Integer) with .* failed/)
    expect { [2, 1].psort(unsupported: :ruby) { |a, _| text(a) && nil } }.to raise_error(ArgumentError, /comparison of Integer with [12] failed/)
  end

  it "gives indices, ticks and what break gives" do
    expect([5, 6].pselect(unsupported: :ruby).with_index(1) { |x, i| text(x) == "6" && text(i + Ikra.index) == "3" }).to eq [6]
    expect([5, 6].pmap_with_index(unsupported: :ruby) { |x, i| text(x) + text(i) }).to eq %w[50 61]
    expect([5, 6].pcombine([7, 8], unsupported: :ruby).with_index { |(x, y), i| text(x) + text(y) + text(i) }).to eq %w[570 681]
    expect(Array.pnew(2, unsupported: :ruby).with_index(7) { |i, n| text(i) + text(n) }).to eq %w[07 18]
    expect(Array.pnew(1, 2, unsupported: :ruby).with_index(7) { |(y, x), n| text(y) + text(x) + text(n) }).to eq [%w[007 018]]
    seen = []
    [5, 6].peach(2, unsupported: :ruby).with_index { |x, i| seen << text(x) + text(i) + text(Ikra.tick) }
    expect(seen).to eq %w[500 610 501 611]
    expect([1, 2].pselect(unsupported: :ruby) { |x| break text(x) }).to eq "1"
    expect { [1, 2].pselect(unsupported: :ruby) { |x| text(x).frobnicate } }.to raise_error(NoMethodError)
  end

  it "raises a CompileError from where the user called otherwise" do
    { pselect: [], preduce: [], psort_by: [], pcombine: [[1]], pstencil: [[0], 0] }.each do |name, args|
      expect { [1, 2].public_send(name, *args) { |x| text(x) } }
        .to raise_error(Ikra::CompileError) { |error| expect(error.backtrace.first).to start_with(__FILE__) }
    end
  end

  it "is the advice of errors that have no other" do
    expect { [1].pmap(&{ 1 => 2 }.to_proc) }.to raise_error(Ikra::CompileError, /Instead: with unsupported: :ruby/)
    expect { [[1, 2]].pmap { |x| x.to_s } }.to raise_error(Ikra::CompileError, /Instead: give the value itself, and make the String afterwards\z/)
  end
end
