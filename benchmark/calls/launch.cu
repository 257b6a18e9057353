// What the driver takes for the kernel that `benchmark/calls.rb` has of a warm map, launched again and again, and waited for each time or never, and for one that does
// nothing, waited for. Prints the median microseconds of each of the three as JSON. Not here: compiling it, and memory for its result.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

__global__ void twice(const double *given, double *result, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) result[i] = given[i] * 2.0;
}

__global__ void nothing() {}

// Microseconds of each of some calls in a row, the median of many such rows.
template <class Call> double median(Call call) {
  const int calls = 200;
  std::vector<double> taken;
  for (int row = 0; row < 200; ++row) {
    cudaDeviceSynchronize();
    const auto started = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::micro> all = std::chrono::steady_clock::now() - started;
    taken.push_back(all.count() / calls);
  }
  std::sort(taken.begin(), taken.end());
  return taken[taken.size() / 2];
}

int main() {
  const int count = 1000;
  double *numbers;
  cudaStream_t stream;
  if (cudaMalloc(&numbers, 2 * count * sizeof *numbers) != cudaSuccess) return 1;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 1;
  const auto launch = [&] { twice<<<(count + 255) / 256, 256, 0, stream>>>(numbers, numbers + count, count); };
  const auto both = [&] { launch(); cudaStreamSynchronize(stream); };
  median(both); // the first ones load the kernel
  const double waited = median(both), queued = median(launch);
  const double empty = median([&] { nothing<<<1, 1, 0, stream>>>(); cudaStreamSynchronize(stream); });
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  std::printf("{\"waited\":%f,\"queued\":%f,\"empty\":%f}\n", waited, queued, empty);
}
