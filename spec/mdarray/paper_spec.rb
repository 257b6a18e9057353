# frozen_string_literal: true

require "tmpdir"

# The programs of "GPGPU in Ruby with array iterators" (2011).
RSpec.describe "examples/paper2011" do
  directory = File.expand_path("../../examples/paper2011", __dir__)
  before(:all) { %w[mandelbrot sum].each { |name| require File.join(directory, "#{name}.rb") } }

  on_all_backends do
    it "has the Mandelbrot set" do
      limit, inf = 40, 2.0
      expected = Array.new(12) do |i|
        Array.new(9) do |j|
          c = Complex(-2.0 + i * (2.5 / 12), -1.25 + j * (2.5 / 9))
          zr = zi = 0.0
          iter = 0
          while iter < limit && (zr * zr + zi * zi)**0.5 < inf
            zr, zi = zr * zr - zi * zi + c.real, 2.0 * zr * zi + c.imaginary
            iter += 1
          end
          iter
        end
      end
      expect(PaperMandelbrot.run(12, 9, limit)).to same_as(expected)
    end

    it "has the sum of random numbers" do
      Ikra.srand(5)
      expect(PaperSum.run(4096)).to be_within(150).of(2048)
    end
  end

  it "says how long it took, and draws a picture" do
    Dir.mktmpdir do |there|
      run = ->(*command) { IO.popen({ "IKRA_BACKEND" => "cpu" }, [RbConfig.ruby, "-I#{File.join(directory, "../../lib")}", *command], chdir: there, &:read) }
      expect(run.call(File.join(directory, "mandelbrot.rb"), "30")).to match(/\A30 × 30 points: [\d.]+ s\nPicture: mandelbrot2011\.png\n\z/)
      expect(File.binread(File.join(there, "mandelbrot2011.png"))).to start_with("\x89PNG".b)
      expect(run.call(File.join(directory, "sum.rb"), "1")).to match(/\A +1 Mi numbers: mean 0\.(49|50)\d+, sum in [\d.]+ s, [\d.]+ GB\/s\n\z/)
    end
  end
end
