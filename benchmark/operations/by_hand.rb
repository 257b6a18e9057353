# frozen_string_literal: true

# One operation of benchmark/mdarray.rb by the kernels of by_hand.cu. The protocol is that of peers.py. But the seconds
# are those between two events around the kernels, whose memory is already allocated.
#
#   ruby -Ilib benchmark/operations/by_hand.rb OPERATION RUNS OUTPUT.npy INPUT.npy...

require "ikra"
require "json"
require_relative "../suite/device"

# The launches of each operation, on a {Device} or a substitute.
class ByHandOperations
  SOURCE = File.expand_path("by_hand.cu", __dir__)
  BLOCK = 256
  NAMES = ["a*x + b*x*x", "a*x + b*x*x, f32", "sum", "matmul", "stencil", "mandelbrot", "mandelbrot, f32"].freeze

  # The address, the kind and the number of elements of the result. +launch+ computes it.
  Work = Struct.new(:place, :dtype, :count, :launch)

  def initialize(device, kernels)
    @device = device
    @kernels = kernels
  end

  # @param inputs [Array<Ikra::MDArray>]
  # @return [Work]
  def prepare(operation, inputs)
    return mandelbrot(operation, inputs.first[0]) if operation.start_with?("mandelbrot")

    places = inputs.map { |array| upload(array) }
    count, side = inputs.first.size, inputs.first.shape.first
    case operation
    when "a*x + b*x*x" then work(:f64, count) { |out| launch(:chain, count, *places, out, count) }
    when "a*x + b*x*x, f32" then work(:f32, count) { |out| launch(:chain_f32, count, *places, out, count) }
    when "sum" then sum(places.first, count)
    when "matmul" then work(:f64, count) { |out| launch(:product, ((side + 15) / 16)**2 * BLOCK, *places, out, side) }
    when "stencil" then work(:f64, count) { |out| launch(:stencil, count, *places, out, side) }
    else raise ArgumentError, "it has no such operation"
    end
  end

  # @return [Ikra::MDArray] the result
  def download(work)
    bytes = work.count * (work.dtype == :f32 ? 4 : 8)
    host = @device.pinned(bytes)
    @device.download(host, work.place, bytes)
    @device.wait
    Ikra::MDArray.from_bytes(host[0, bytes], work.count, dtype: work.dtype)
  end

  private

  def work(dtype, count)
    place = @device.allocate(count * 8)
    Work.new(place, dtype, count, -> { yield place })
  end

  def launch(kernel, threads, *arguments) = @device.launch(@kernels[kernel], threads, BLOCK, *arguments)

  def sum(place, count)
    blocks = @device.processors * 8
    partial = @device.allocate(blocks * 8)
    work(:f64, 1) do |out|
      launch(:sums, blocks * BLOCK, place, partial, count)
      launch(:sums, BLOCK, partial, out, blocks)
    end
  end

  def mandelbrot(operation, side)
    kernel = operation.end_with?("f32") ? :mandelbrot_f32 : :mandelbrot
    work(:i64, side * side) { |out| launch(kernel, side * side, out, side) }
  end

  def upload(array)
    bytes = array.to_bytes
    host = @device.pinned(bytes.bytesize)
    host[0, bytes.bytesize] = bytes
    @device.allocate(bytes.bytesize).tap do |place|
      @device.upload(place, host, bytes.bytesize)
      @device.wait
    end
  end
end

# Seconds of each run.
def by_hand(operation, runs, output, inputs)
  device = Device.new
  by_hand = ByHandOperations.new(device, device.load(Device.compile(File.read(ByHandOperations::SOURCE), device.architecture)))
  work = by_hand.prepare(operation, inputs)
  from, to = device.event, device.event
  seconds = Array.new(runs + Integer(ENV.fetch("WARMUP", "10"))) do
    device.record(from)
    work.launch.call
    device.record(to)
    device.wait
    device.seconds(from, to)
  end
  by_hand.download(work).write(output)
  seconds.last(runs)
end

if $PROGRAM_NAME == __FILE__
  operation, runs, output, *inputs = ARGV
  begin
    Ikra.config.backend = :cpu
    seconds = by_hand(operation, Integer(runs), output, inputs.map { |path| Ikra::MDArray.read(path) })
    puts JSON.generate(seconds: seconds, version: "CUDA by hand")
  rescue Device::Failed, ArgumentError => e
    puts JSON.generate(missing: e.message)
  end
end
