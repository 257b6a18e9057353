# frozen_string_literal: true

require "fiddle"

# Stands in for benchmark/suite/device.rb where there is no GPU: kernels are compiled by g++ and run on the host.
class EmulatedDevice
  LONG = Fiddle::TYPE_LONG_LONG

  # Nothing is timed.
  def event = nil
  def record(_event) = nil

  def initialize(source, directory)
    built = File.join(directory, "#{File.basename(File.dirname(source))}.so")
    flags = %w[-std=c++20 -O1 -ffp-contract=off -fPIC -shared -pthread]
    command = ["g++", *flags, "-include", File.join(__dir__, "emulated.h"), "-x", "c++", source, "-o", built]
    system(*command) or raise "g++ does not take #{source}"
    @library = Fiddle.dlopen(built)
    @emulate = Fiddle::Function.new(@library["emulate"], [Fiddle::TYPE_VOIDP, -Fiddle::TYPE_INT, -Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID)
    @kept = []
  end

  def kernels = Hash.new { |_, name| @library[name.to_s] }
  def processors = 2
  def allocate(bytes) = pinned(bytes).to_i
  def pinned(bytes) = Fiddle::Pointer.malloc([bytes, 8].max, Fiddle::RUBY_FREE).tap { |place| @kept << place }
  def clear(place, bytes) = Fiddle::Pointer.new(place, bytes)[0, bytes] = "\0" * bytes
  def upload(place, pinned, bytes) = Fiddle::Pointer.new(place, bytes)[0, bytes] = pinned[0, bytes]
  def wait = nil
  def download(pinned, place, bytes) = pinned[0, bytes] = Fiddle::Pointer.new(place, bytes)[0, bytes]

  def launch(kernel, threads, block, *arguments)
    floats, integers = arguments.partition { |argument| argument.is_a?(Float) }
    raise ArgumentError, "more arguments than are passed on" if floats.size > 8 || integers.size > 20

    @emulate.call(kernel, (threads + block - 1) / block, block, integers.fill(0, integers.size...20).pack("q*"), floats.fill(0.0, floats.size...8).pack("d*"))
  end
end
