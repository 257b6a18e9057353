# frozen_string_literal: true

# The limits of the machine, for the roofline of the report: bytes a second streamed from memory, and floating-point
# operations a second. The operations are on doubles, contracted and not. Both are measured on the CPU's cores and on
# the GPU, by benchmark/suite/ceilings.c and .cu.
#
#   ruby benchmark/ceilings.rb

require_relative "harness"
require_relative "suite/device"

class Ceilings
  HERE = File.expand_path("suite", __dir__)
  BUILT = File.expand_path("../tmp/benchmark/ceilings", __dir__)

  def initialize
    @bench = Harness.new("ceilings")
    @millions = @bench.size(:millions, 64, tiny: 1)
  end

  def run
    cpu
    gpu
    @bench.finish
  end

  private

  def cpu
    source = File.join(HERE, "ceilings.c")
    return @bench.note("CPU: gcc is not installed") unless @bench.build(BUILT, [source], "gcc", "-O3", "-march=native", "-fopenmp", source, "-o", BUILT)

    { "one core" => 1, "all cores" => @bench.cpus.size }.each do |name, threads|
      found = JSON.parse(IO.popen({ "OMP_NUM_THREADS" => threads.to_s }, [BUILT, @millions.to_s], &:read), symbolize_names: true)
      keep("cpu, #{name}", found)
    end
  end

  def keep(name, found)
    @bench.record("ceilings", name, found)
    @bench.value("#{name}: memory", found[:bytes] / 1e9, "GB/s")
    @bench.value("#{name}: multiply and add contracted", found[:fma] / 1e9, "GFLOP/s")
    @bench.value("#{name}: multiply and add apart", found[:flops] / 1e9, "GFLOP/s")
    @bench.value("#{name}: the same without vectors", found[:scalar] / 1e9, "GFLOP/s") if found[:scalar]
  end

  def gpu
    return @bench.note("GPU: there is none") unless @bench.gpu?

    device = Device.new
    kernels = device.load(Device.compile(File.read(File.join(HERE, "ceilings.cu")), device.architecture))
    count = @millions * 4_000_000
    a, b, c = Array.new(3) { device.allocate(8 * count).tap { |place| device.clear(place, 8 * count) } }
    threads = device.processors * 2048
    rounds = @bench.tiny? ? 10 : 20_000
    keep("gpu", bytes: 24.0 * count / best(device) { device.launch(kernels[:triad], threads * 4, 256, a, b, c, count) },
                fma: 16.0 * rounds * threads / best(device) { device.launch(kernels[:contracted], threads, 256, a, rounds, 0.999999, 1e-9) },
                flops: 16.0 * rounds * threads / best(device) { device.launch(kernels[:separate], threads, 256, a, rounds, 0.999999, 1e-9) })
  end

  def best(device)
    from, to = device.event, device.event
    Array.new(6) do
      device.record(from)
      yield
      device.record(to)
      device.wait
      device.seconds(from, to)
    end.min
  end
end

Ceilings.new.run if $PROGRAM_NAME == __FILE__
