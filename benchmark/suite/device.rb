# frozen_string_literal: true

require "fiddle"

# A GPU for kernels that were written by hand, directly through NVIDIA's driver. It needs no CUDA toolkit, no C
# compiler, and no Ikra. Kernels are compiled by nvcc where it is installed, else by NVRTC. Both compile without
# contraction, because Ruby has none.
class Device
  class Failed < StandardError; end

  POINTER = Fiddle::TYPE_VOIDP
  INT = Fiddle::TYPE_INT
  SIZE = Fiddle::TYPE_SIZE_T
  LONG = Fiddle::TYPE_LONG_LONG
  DRIVER = {
    "cuInit" => [INT], "cuDeviceGet" => [POINTER, INT], "cuDeviceGetAttribute" => [POINTER, INT, INT], "cuDevicePrimaryCtxRetain" => [POINTER, INT],
    "cuCtxSetCurrent" => [POINTER], "cuCtxSynchronize" => [], "cuModuleLoadData" => [POINTER, POINTER], "cuModuleGetFunction" => [POINTER, POINTER, POINTER],
    "cuMemAlloc_v2" => [POINTER, SIZE], "cuMemAllocHost_v2" => [POINTER, SIZE], "cuMemsetD8Async" => [LONG, INT, SIZE, POINTER],
    "cuMemcpyHtoDAsync_v2" => [LONG, POINTER, SIZE, POINTER], "cuMemcpyDtoHAsync_v2" => [POINTER, LONG, SIZE, POINTER],
    "cuMemcpyDtoDAsync_v2" => [LONG, LONG, SIZE, POINTER], "cuStreamWaitValue32_v2" => [POINTER, LONG, INT, INT],
    "cuLaunchKernel" => [POINTER, INT, INT, INT, INT, INT, INT, INT, POINTER, POINTER, POINTER],
    "cuEventCreate" => [POINTER, INT], "cuEventRecord" => [POINTER, POINTER], "cuEventElapsedTime" => [POINTER, POINTER, POINTER]
  }.freeze
  NVRTC = {
    "nvrtcCreateProgram" => [POINTER, POINTER, POINTER, INT, POINTER, POINTER], "nvrtcCompileProgram" => [POINTER, INT, POINTER],
    "nvrtcGetCUBINSize" => [POINTER, POINTER], "nvrtcGetCUBIN" => [POINTER, POINTER], "nvrtcGetProgramLogSize" => [POINTER, POINTER],
    "nvrtcGetProgramLog" => [POINTER, POINTER], "nvrtcDestroyProgram" => [POINTER], "nvrtcVersion" => [POINTER, POINTER]
  }.freeze
  DRIVERS = %w[libcuda.so.1 libcuda.so].freeze
  COMPILERS = %w[libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so /usr/local/cuda/lib64/libnvrtc.so].freeze
  OPTIONS = %w[--std=c++17 --fmad=false].freeze

  # The numbers of CUdevice_attribute.
  PROCESSORS, MAJOR, MINOR = 16, 75, 76

  # The first of these libraries that exists.
  #
  # @raise [Failed]
  def self.library(names, functions)
    found = names.lazy.filter_map { |name| open(name) }.first or raise Failed, "no #{names.first}"
    functions.to_h { |name, types| [name, Fiddle::Function.new(found[name], types, INT)] }
  end

  def self.open(name)
    Fiddle.dlopen(name)
  rescue Fiddle::DLError
    nil
  end
  private_class_method :open

  # A cubin of CUDA C++ text for an architecture such as 90, by NVRTC. The text may include files of the folder.
  #
  # @raise [Failed] where there is no NVRTC, or the text is wrong
  def self.compile(text, architecture, options: OPTIONS, folder: Dir.pwd)
    nvrtc = library(COMPILERS, NVRTC)
    call = ->(name, *arguments) { nvrtc.fetch(name).call(*arguments).zero? or raise Failed, name }
    program = word
    call.("nvrtcCreateProgram", program, text, "by_hand.cu", 0, nil, nil)
    # NVRTC would find the code of an earlier run again, in no time.
    call.("nvrtcVersion", major = word, word)
    uncached = major[0, 4].unpack1("l") >= 13 ? ["--no-cache"] : []
    flags = ["--gpu-architecture=sm_#{architecture}", "--include-path=#{folder}", *uncached, *options].map { |option| Fiddle::Pointer[option] }
    unless nvrtc.fetch("nvrtcCompileProgram").call(program.ptr, flags.size, flags.map(&:to_i).pack("J*")).zero?
      raise Failed, fetch(call, "nvrtcGetProgramLog", "nvrtcGetProgramLogSize", program)
    end
    fetch(call, "nvrtcGetCUBIN", "nvrtcGetCUBINSize", program).tap { call.("nvrtcDestroyProgram", program) }
  end

  def self.fetch(call, what, size, program)
    bytes = word
    call.(size, program.ptr, bytes)
    text = Fiddle::Pointer.malloc(bytes[0, 8].unpack1("Q"), Fiddle::RUBY_FREE)
    call.(what, program.ptr, text)
    text[0, text.size]
  end
  private_class_method :fetch

  # Memory for a pointer or a number.
  def self.word = Fiddle::Pointer.malloc(8, Fiddle::RUBY_FREE).tap { |pointer| pointer[0, 8] = "\0" * 8 }

  attr_reader :processors, :architecture

  # @raise [Failed] where there is no GPU
  def initialize
    @driver = self.class.library(DRIVERS, DRIVER)
    call("cuInit", 0)
    call("cuDeviceGet", device = self.class.word, 0)
    @device = device[0, 4].unpack1("l")
    call("cuDevicePrimaryCtxRetain", context = self.class.word, @device)
    call("cuCtxSetCurrent", context.ptr)
    @processors = attribute(PROCESSORS)
    @architecture = 10 * attribute(MAJOR) + attribute(MINOR)
  end

  # Kernels by name, from a cubin.
  def load(cubin)
    call("cuModuleLoadData", modul = self.class.word, cubin)
    Hash.new do |known, name|
      call("cuModuleGetFunction", function = self.class.word, modul.ptr, name.to_s)
      known[name] = function.ptr
    end
  end

  def allocate(bytes)
    call("cuMemAlloc_v2", place = self.class.word, [bytes, 8].max)
    place[0, 8].unpack1("q")
  end

  # Page-locked memory of the host.
  def pinned(bytes)
    call("cuMemAllocHost_v2", place = self.class.word, [bytes, 8].max)
    Fiddle::Pointer.new(place[0, 8].unpack1("q"), [bytes, 8].max)
  end

  def clear(place, bytes) = call("cuMemsetD8Async", place, 0, bytes, nil)
  def upload(place, pinned, bytes) = call("cuMemcpyHtoDAsync_v2", place, pinned, bytes, nil)
  def download(pinned, place, bytes) = call("cuMemcpyDtoHAsync_v2", pinned, place, bytes, nil)
  def copy(to, from, bytes) = call("cuMemcpyDtoDAsync_v2", to, from, bytes, nil)
  def wait = call("cuCtxSynchronize")

  # Queues a small task of the kernels' engine after a copy, so that the next event waits for that engine. An event
  # right after a copy shows when the copy engine was done, and a kernel begins up to 7 µs later.
  def settle = clear(@settled ||= allocate(8), 8)

  # Work that the block queues does not begin until all of it is queued. So Ruby's time to launch kernels does not
  # count. The queue has room for about a thousand launches.
  def together
    @gate ||= pinned(8)
    @gate[0, 4] = [0].pack("L")
    call("cuStreamWaitValue32_v2", nil, @gate.to_i, 1, 0)
    yield
  ensure
    @gate[0, 4] = [1].pack("L")
  end

  # Integers and device addresses are passed as 64 bits, Floats as doubles.
  def launch(kernel, threads, block, *arguments)
    words = arguments.map { |argument| argument.is_a?(Float) ? [argument].pack("d") : [argument].pack("q") }
    kept = Fiddle::Pointer[words.join]
    addresses = words.each_index.map { |index| kept.to_i + 8 * index }.pack("J*")
    call("cuLaunchKernel", kernel, (threads + block - 1) / block, 1, 1, block, 1, 1, 0, nil, addresses, nil)
  end

  def event
    call("cuEventCreate", place = self.class.word, 0)
    place.ptr
  end

  def record(event) = call("cuEventRecord", event, nil)

  # Seconds between two events, both of which were reached.
  def seconds(from, to)
    call("cuEventElapsedTime", time = self.class.word, from, to)
    time[0, 4].unpack1("f") / 1e3
  end

  private

  def attribute(number)
    call("cuDeviceGetAttribute", value = self.class.word, number, @device)
    value[0, 4].unpack1("l")
  end

  def call(name, *arguments)
    status = @driver.fetch(name).call(*arguments)
    raise Failed, "#{name}: CUDA error #{status}" unless status.zero?
  end
end
