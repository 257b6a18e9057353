# frozen_string_literal: true

# Milliseconds that NVRTC itself takes for kernels that were written by hand: an empty one, and the block of
# `benchmark/calls.rb` without overflow checks or exceptions. Ikra's own compilation of a new block cannot take less.
#
# Not here: Ikra. NVRTC is called directly, with the options that Ikra gives it. Reading the code from NVRTC is
# included.

require_relative "../suite/device"

class ByHand
  OPTIONS = %w[--std=c++17 --device-int128 --disable-warnings --fmad=false --minimal].freeze
  NOTHING = 'extern "C" __global__ void work%<number>d() {}'
  BLOCK = <<~CUDA
    extern "C" __global__ void work%<number>d(const long long *given, double *result, long long count) {
      for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x) {
        long long x = given[i] + %<number>d, steps = 0;
        while (x > 1 && steps < 200) {
          x = (x & 1) == 0 ? x >> 1 : 3 * x + 2 * %<number>d + 1;
          steps += 1;
        }
        if (steps > 100) steps -= %<number>d;
        const double y = steps * 0.5;
        result[i] = y > 25.0 ? y - x : y + x;
      }
    }
  CUDA

  # A compiler for the architecture of this machine's device.
  #
  # @raise [Device::Failed] where there is no NVRTC
  def initialize
    capability = `nvidia-smi --query-gpu=compute_cap --format=csv,noheader`.lines.first.to_s.delete(".").strip
    @architecture = capability.empty? ? "90" : capability
  end

  # Seconds of each of `count` compilations, after one that is not counted.
  def seconds(source, count)
    Array.new(count + 1) { |number| compile(format(source, number:)) }.drop(1)
  end

  private

  def compile(source)
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    Device.compile(source, @architecture, options: OPTIONS)
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
  end
end
