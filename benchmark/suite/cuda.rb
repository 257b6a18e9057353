# frozen_string_literal: true

# Runs the hand-written CUDA of a program: the kernels of KERNELS (cuda.cu), launched by cuda.rb.
#
#   ruby benchmark/suite/cuda.rb PROGRAM nvcc|nvrtc KERNELS INPUT OUTPUT RUNS
#
# Prints as its last line {"upload": […], "kernel": […], "download": […], "compile": seconds}, or {"missing": "…"}.
#
# Kernel is the time of all launches of a run, between two events. Where Ikra's version makes several calls, it counts
# only the launches that do a call's work, with two events for each call. These events add two microseconds to the time
# of a kernel. Upload is that of all columns, and download that of the outputs, both in page-locked memory. The first
# run does not count.

require "json"
require "tmpdir"
require_relative "device"
require_relative "program"

# The argument of cuda.rb: the columns on the GPU, and the kernels.
class Launches
  # tuned: whether the kernels are those of cuda_tuned.cu.
  def initialize(device, kernels, columns, tuned:)
    @device = device
    @kernels = kernels
    @columns = columns
    @tuned = tuned
    @scratch = {}
    @calls = []
    @events = Hash.new { |events, number| events[number] = device.event }
    @places = columns.each.to_h { |name, column| [name, device.allocate(bytes(column))] }
    @pinned = columns.each.to_h { |name, column| [name, device.pinned(bytes(column))] }
    @packed = columns.each.to_h { |name, column| [name, column.values.pack("#{letter(column)}*")] }
  end

  # A column's address, its number of numbers, and the number in a column of one.
  def [](name) = @places.fetch(name)
  def size(name) = @columns.fetch(name).values.size
  def value(name) = @columns.fetch(name).values.first
  def processors = @device.processors
  def tuned? = @tuned

  # Memory on the GPU that is no column. It keeps its contents.
  def scratch(name, bytes) = @scratch[name] ||= @device.allocate(bytes)
  def clear(place, bytes) = @device.clear(place, bytes)
  def copy(to, from, bytes) = @device.copy(to, from, bytes)
  def launch(kernel, threads, block, *arguments) = @device.launch(@kernels[kernel], threads, block, *arguments)

  # Launches in the block do the work of one call of Ikra's version. They are timed together.
  def call
    pair = Array.new(2) { |end_of| @events[2 * @calls.size + end_of] }
    @device.record(pair.first)
    yield
    @device.record(pair.last)
    @calls << pair
  end

  # Seconds of all calls. nil where no launch was marked as a call.
  def seconds_of_calls = @calls.empty? ? nil : @calls.sum { |pair| @device.seconds(*pair) }

  # Prepares a run, untimed.
  def restore
    @calls.clear
    @packed.each { |name, bytes| @pinned.fetch(name)[0, bytes.bytesize] = bytes unless bytes.empty? }
  end

  def upload = @columns.each { |name, column| @device.upload(self[name], @pinned.fetch(name), bytes(column)) }
  def download = each_output { |name, column| @device.download(@pinned.fetch(name), self[name], bytes(column)) }

  # @return [Columns] what was downloaded
  def outputs
    found = Columns.new
    each_output { |name, column| found.output(name, column.type, @pinned.fetch(name)[0, bytes(column)].unpack("#{letter(column)}*")) }
    found
  end

  private

  def bytes(column) = column.values.size * Columns::TYPES.fetch(column.type).last
  def letter(column) = Columns::TYPES.fetch(column.type).first
  def each_output = @columns.each { |name, column| yield name, column if column.output }
end

def cubin(path, compiler, architecture)
  return Device.compile(File.read(path), architecture, folder: File.dirname(path)) if compiler == "nvrtc"

  Dir.mktmpdir do |directory|
    made = File.join(directory, "by_hand.cubin")
    system("nvcc", "-O3", "-fmad=false", "-std=c++17", "-cubin", "-arch=sm_#{architecture}", path, "-o", made) or raise Device::Failed, "nvcc"
    File.binread(made)
  end
end

def run(name, compiler, file, input, output, runs)
  program = Program.find(name).new(name)
  load program.file("cuda.rb")
  device = Device.new
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  kernels = device.load(cubin(program.file(file), compiler, device.architecture))
  compile = Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
  launches = Launches.new(device, kernels, Columns.read(input), tuned: file != "cuda.cu")
  times = Array.new(runs + 1) { once(device, program, launches) }.drop(1)
  launches.outputs.write(output)
  %i[upload kernel download].to_h { |phase| [phase, times.map { |time| time.fetch(phase) }] }.merge(compile: compile)
end

def once(device, program, launches)
  events = @events ||= Array.new(4) { device.event }
  launches.restore
  device.record(events[0])
  launches.upload
  device.settle
  device.together do
    device.record(events[1])
    program.compute(launches)
    device.record(events[2])
  end
  launches.download
  device.record(events[3])
  device.wait
  times = %i[upload kernel download].each_with_index.to_h { |phase, index| [phase, device.seconds(events[index], events[index + 1])] }
  times.merge(kernel: launches.seconds_of_calls || times[:kernel])
end

if $PROGRAM_NAME == __FILE__
  name, compiler, file, input, output, runs = ARGV
  begin
    puts JSON.generate(run(name, compiler, file, input, output, Integer(runs)))
  rescue Device::Failed => e
    puts JSON.generate(missing: e.message)
  end
end
