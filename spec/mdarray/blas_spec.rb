# frozen_string_literal: true

# cuBLAS, or its stand-in, against Ikra's own kernel. On a GPU: IKRA_BACKEND=cuda rspec spec/mdarray/blas_spec.rb. Where
# the library is not found there, the examples that need it say so.
RSpec.describe "Products of matrices by cuBLAS" do
  # Prints for each product how far it is from Ikra's own, whether its bits are the same, and its operands.
  program = <<~RUBY
    Ikra.config.backend = :cuda
    M = Ikra::MDArray
    def product(one, other, **options) = one.matmul(other, **options)
    def shown(name, one, other, bound)
      made, own = product(one, other), product(one, other, blas: false)
      far = (made.to(:f64) - own.to(:f64)).abs.max
      puts "\#{name}: \#{made.shape.inspect} \#{made.dtype} \#{far <= bound ? "near" : far} \#{made == own ? "same bits" : "other bits"}"
    end
    def floats(*shape, dtype: :f64) = M.rand(*shape, dtype: dtype) - 0.5
    Ikra.srand(7)
    a, b = floats(130, 120), floats(120, 140)
    shown("plain", a, b, 1e-12)
    shown("32 bits", a.to(:f32), b.to(:f32), 1e-4)
    shown("of two kinds", a.to(:f32), b, 1e-12)
    shown("turned", floats(120, 130).t, floats(140, 120).t, 1e-12)
    shown("parts", floats(200, 200)[10..139, 3..122], floats(150, 300)[0..119, 5..144], 1e-12)
    shown("every other", floats(260, 240)[(0..) % 2, (0..) % 2], b, 1e-12)
    shown("stacks", floats(3, 2, 70, 60), floats(2, 60, 80), 1e-12)
    shown("one for all", floats(5, 60, 70), floats(70, 80), 1e-12)
    shown("a vector", floats(1100, 1000), floats(1000), 1e-12)
    shown("a row", floats(1000), floats(1000, 1100), 1e-12)
    shown("pending", a * 2 - 1, b + 1, 1e-11)
    ints = M.new(120, 100) { |i, j| (i * 7 + j) % 11 - 5 }
    shown("whole numbers in Floats", ints.to(:f64), ints.t.to(:f64), 0.0)
    poisoned = M.new(130, 120) { |i, j| (10 / (i + j)).to_f }
    told = -> { poisoned.matmul(b).sync && "well" rescue $!.message }
    puts told.call
    puts [product(a, b).sum, product(a, b).sum].uniq.size
  RUBY
  shapes = { "plain" => [[130, 140], :f64], "32 bits" => [[130, 140], :f32], "of two kinds" => [[130, 140], :f64], "turned" => [[130, 140], :f64], "parts" => [[130, 140], :f64],
             "every other" => [[130, 140], :f64], "stacks" => [[3, 2, 70, 80], :f64], "one for all" => [[5, 60, 80], :f64], "a vector" => [[1100], :f64], "a row" => [[1100], :f64],
             "pending" => [[130, 140], :f64], "whole numbers in Floats" => [[120, 120], :f64] }
  near = shapes.map { |name, (shape, dtype)| "#{name}: #{shape} #{dtype} near" }

  it "are near those of Ikra's own kernel, for all forms of matrices, on a stand-in for the library" do
    skip "no g++ on the PATH" unless system("g++", "--version", out: File::NULL, err: File::NULL)
    Dir.mktmpdir("ikra-blas") do |folder|
      calls = "\nrequire 'fiddle'\nputs Fiddle::Function.new(Fiddle.dlopen('libcublas.so.13')['stand_in_products'], [], Fiddle::TYPE_INT).call"
      *lines, poison, repeated, calls = run_ruby(program + calls, environment: StandIn.environment(folder), folder: folder).lines.map(&:chomp)
      expect(lines.map { |line| line[/.* near/] || line }).to eq(near)
      # Its sums are in another order.
      expect(lines.count { |line| line.end_with?("other bits") }).to be > 8
      expect([poison, repeated]).to eq(["divided by 0", "1"])
      # The product of the poisoned array is queued if its failure is not known yet.
      expect(calls.to_i).to be_between(14, 15)
    end
  end

  it "are Ikra's own where there is no such library, where it is forbidden, and where they are small" do
    skip "no g++ on the PATH" unless system("g++", "--version", out: File::NULL, err: File::NULL)
    Dir.mktmpdir("ikra-blas") do |folder|
      without = File.join(folder, "libraries").tap { |path| Dir.mkdir(path) }
      Dir[File.join(StandIn.libraries, "lib{cuda,nvrtc}.so*")].each { |file| File.symlink(file, File.join(without, File.basename(file))) }
      lines = run_ruby(program, environment: StandIn.environment(folder, libraries: without), folder: folder).lines.map(&:chomp)
      expect(lines).to eq([*near.map { |line| "#{line} same bits" }, "divided by 0", "1"])
      small = "Ikra.config.backend = :cuda\na = Ikra::MDArray.rand(100, 100)\np a.matmul(a) == a.matmul(a, blas: false)"
      expect(run_ruby(small, environment: StandIn.environment(folder), folder: folder)).to eq("true\n")
    end
  end

  if Backends.present.include?(:cuda)
    it "are near those of Ikra's own kernel on the GPU, which does whole numbers to the bit" do
      Dir.mktmpdir("ikra-blas") do |folder|
        lines = run_ruby(program, folder: folder).lines.map(&:chomp)
        expect(lines.first(near.size).map { |line| line[/.* near/] || line }).to eq(near)
        expect(lines.last(2)).to eq(["divided by 0", "1"])
        skip "cuBLAS was not found on this machine" if lines.first(near.size).all? { |line| line.end_with?("same bits") }
        expect(lines[near.size - 1]).to end_with("same bits")
      end
    end
  end
end

RSpec.describe "Products of matrices by the CPU's library" do
  def floats(*shape, dtype: :f64) = Ikra::MDArray.rand(*shape, dtype: dtype) - 0.5

  # The product by the library, and by Ikra's own kernel.
  def both(one, other) = [{}, { blas: false }].map { |options| one.matmul(other, backend: :cpu, **options) }

  before { Ikra.srand(7) }

  {
    "plain matrices" => -> { [floats(130, 120), floats(120, 140)] },
    "turned ones" => -> { [floats(120, 130).t, floats(140, 120).t] },
    "parts" => -> { [floats(200, 200)[10..139, 3..122], floats(150, 300)[0..119, 5..144]] },
    "every other row and column" => -> { [floats(260, 240)[(0..) % 2, (0..) % 2], floats(120, 140)] },
    "reversed ones" => -> { [floats(130, 120).reverse(axis: 0), floats(120, 140)] },
    "repeated rows" => -> { [floats(1, 120).broadcast_to(130, 120), floats(120, 140)] },
    "stacks" => -> { [floats(3, 2, 70, 60), floats(2, 60, 80)] },
    "one matrix for all" => -> { [floats(5, 60, 70), floats(70, 80)] },
    "pending ones" => -> { [floats(130, 120) * 2 - 1, floats(120, 140) + 1] },
    "two kinds" => -> { [floats(130, 120, dtype: :f32), floats(120, 140)] }
  }.each do |name, operands|
    it "are near those of Ikra's own kernel for #{name}" do
      made, own = both(*instance_exec(&operands))
      expect([made.shape, made.dtype]).to eq([own.shape, own.dtype])
      expect((made - own).abs.max).to be < 1e-11
      expect(made == own).to be(false)
    end
  end

  it "are near those of Ikra's own kernel for Floats of 32 bits, which it adds in 32 bits" do
    made, own = both(floats(130, 120, dtype: :f32), floats(120, 140, dtype: :f32))
    expect(made.dtype).to be(:f32)
    expect((made - own).abs.max).to be_between(0.0, 1e-4).exclusive
  end

  it "are exact for whole numbers, and leave Integers to Ikra's own kernel" do
    ints = Ikra::MDArray.new(120, 100) { |i, j| (i * 7 + j) % 11 - 5 }
    made, own = both(ints.to(:f64), ints.t.to(:f64))
    expect(made).to eq(own)
    expect(made.to(:i64)).to eq(both(ints, ints.t).first)
    huge = Ikra::MDArray.full(40, 40, 2**31)
    expect { huge.matmul(huge, backend: :cpu).sync }.to raise_error(Ikra::IntegerOverflow)
  end

  it "have NaN where 0 meets Infinity, and nowhere else" do
    one, other = Ikra::MDArray.ones(67, 50), Ikra::MDArray.ones(50, 71)
    one[3, 4], one[5, 4], other[4, 6] = 0.0, -1.0, Float::INFINITY
    one[8, 49] = Float::NAN
    made, own = both(one, other)
    expect([made.nan?.to_a, made.eq(Float::INFINITY).to_a]).to eq([own.nan?.to_a, own.eq(Float::INFINITY).to_a])
    expect([made[3, 6].nan?, made[5, 6], made[8, 0].nan?, made[9, 6], made[3, 5]]).to eq([true, -Float::INFINITY, true, Float::INFINITY, 49.0])
  end

  it "are Ikra's own where they are small or thin, and on other backends" do
    own = ->(one, other, **options) { one.matmul(other, **options) == one.matmul(other, backend: :cpu, blas: false) }
    large = floats(80, 80).sync
    expect(own.call(large, large, backend: :cpu)).to be(false)
    expect(own.call(floats(20, 20), floats(20, 20), backend: :cpu)).to be(true)
    expect(own.call(large, floats(80), backend: :cpu)).to be(true)
    expect(own.call(large, large, backend: :reference)).to be(true)
    expect(own.call(large, large, backend: :cpu, check: :races)).to be(true)
  end

  it "raise what made an operand fail" do
    failed = Ikra::MDArray.new(130, 120, backend: :cpu) { |i, j| (10 / (i + j)).to_f }
    expect { failed.matmul(floats(120, 140), backend: :cpu).sync }.to raise_error(ZeroDivisionError)
  end

  it "have the same bits with any number of threads" do
    program = 'require "digest"; Ikra.srand(3); a = Ikra::MDArray.rand(300, 700); print Digest::MD5.hexdigest(a.matmul(a.t, backend: :cpu).to_bytes)'
    expect([1, 2, 5].map { |threads| run_ruby(program, environment: { "IKRA_THREADS" => threads.to_s }) }.uniq.size).to eq(1)
  end
end
