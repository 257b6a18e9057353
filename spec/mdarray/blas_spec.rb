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
