# frozen_string_literal: true

# The speed with which MDArrays go to the device and come back, compared with the driver's own copies of page-locked
# memory in the same run. Arrays have 64 MiB to 1 GiB of Floats. Five of each size come one after the other, as a
# program makes, uses and drops them. The first is in fresh pages. The second's memory is page-locked on the way. From
# the third on, page-locked memory is reused.
#
# Down: the time of Fiddle's MemoryView of an array that a kernel has computed. The view shows the host's bytes in
# place, and copies nothing else. Up: the time of the first sum of an array, minus that of the next one, for which the
# array is on the device. Not measured: making an array of a String's bytes.
#
#   ruby -Ilib benchmark/transfers.rb   # SMALLEST=, LARGEST= in MiB, in the environment; without a GPU it only shows
#                                       # that it works

require "ikra"
require "fiddle"
require_relative "harness"
require_relative "suite/device"

class TransfersBenchmark
  USES = %w[first second third fourth fifth].freeze
  # The uses from which on page-locked memory is reused.
  WARM = (2..4).freeze
  # The fraction of the driver's speed with page-locked memory that must be reached.
  WANTED = 0.85

  def initialize
    @bench = Harness.new("transfers")
    smallest, largest = @bench.size(:smallest, 64, tiny: 1), @bench.size(:largest, 1024, tiny: 4)
    @sizes = (0..).lazy.map { |n| smallest * 4**n }.take_while { |size| size <= largest }.to_a
  end

  def run
    @bench.backends.each do |backend|
      Ikra.config.backend = backend
      pinned = backend == :cuda ? pinned_seconds : {}
      warm_up
      @sizes.each do |mib|
        { up: method(:up), down: method(:down) }.each { |way, measure| report(backend, way, mib, uses(backend, mib << 17, measure), pinned[[way, mib]]) }
      end
    end
    @bench.finish
  end

  private

  # The best seconds for each direction and size.
  def pinned_seconds
    device = Device.new
    bytes = @sizes.last << 20
    host, place = device.pinned(bytes), device.allocate(bytes)
    ways = { up: ->(size) { device.upload(place, host, size) }, down: ->(size) { device.download(host, place, size) } }
    ways.to_a.product(@sizes).to_h do |(way, copy), mib|
      seconds = Array.new(@bench.tiny? ? 1 : 8) { device_seconds(device) { copy.call(mib << 20) } }.min
      name = "pinned memory, #{way}, #{mib} MiB"
      @bench.incomparable(name, "the driver's copy")
      @bench.timed(name, [seconds])
      @bench.value("#{name}: bytes", (mib << 20) / seconds / 1e9, "GB/s")
      [[way, mib], seconds]
    end
  end

  def device_seconds(device)
    @events ||= Array.new(2) { device.event }
    device.record(@events[0])
    yield
    device.record(@events[1])
    device.wait
    device.seconds(*@events)
  end

  # Compiles, and lets the device come out of idleness.
  def warm_up
    3.times { [up(1000), down(1000)] }
  end

  # Seconds of each use. Its array is freed before the next.
  def uses(backend, count, measure)
    GC.start
    USES.map { measure.call(count) }.tap { @bench.note("#{backend}: nothing is on a device") if backend != :cuda && count == @sizes.first << 17 && measure.name == :up }
  end

  def up(count)
    array = Ikra::MDArray.from_bytes(bytes(count), count, dtype: :f64)
    one, sum = seconds { array.sum }
    there = Array.new(3) { seconds { array.sum }.first }.min
    abort "another sum: #{sum}" unless sum == count * 0.5
    array.free
    one - there
  end

  def down(count)
    array = Ikra::MDArray.new(count) { |i| i * 0.5 }.sync
    # Not before the kernel is done.
    abort "another element" unless array[count - 1] == (count - 1) * 0.5
    time, view = seconds { Fiddle::MemoryView.new(array) }
    abort "other elements" unless [0, count / 3, count - 1].all? { |i| view[i] == i * 0.5 }
    view.release
    array.free
    time
  end

  # Halves, whose sum is exact in any order.
  def bytes(count)
    @bytes = nil unless @bytes&.bytesize == 8 * count
    @bytes ||= [0.5].pack("d") * count
  end

  def seconds
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    result = yield
    [Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, result]
  end

  def report(backend, way, mib, seconds, pinned)
    return unless pinned

    USES.zip(seconds).each do |use, time|
      name = "#{backend}: #{way}, #{mib} MiB, #{use}"
      @bench.incomparable(name, "what arrived was looked at")
      @bench.timed(name, [time])
      @bench.value("#{name}: bytes", (mib << 20) / time / 1e9, "GB/s")
    end
    warm = Harness::Timing.new(seconds[WARM]).median
    @bench.target("#{backend}: #{way}, #{mib} MiB, third to fifth, against pinned memory", pinned / warm, at_least: WANTED)
  end
end

TransfersBenchmark.new.run if $PROGRAM_NAME == __FILE__
