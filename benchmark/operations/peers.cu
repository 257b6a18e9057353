// One operation of benchmark/operations.rb through CUB, which comes with CUDA's toolkit: what a program written for the GPU by hand would use.
// The protocol is that of peers.cpp. Temporary memory is there before the clock starts.

#include "npy.hpp"

#include <cub/cub.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#define CHECK(call)                                                                                   \
  do {                                                                                                \
    const cudaError_t status = (call);                                                                \
    if (status != cudaSuccess) fail(std::string(#call) + ": " + cudaGetErrorString(status));          \
  } while (0)

struct Above {
  __host__ __device__ bool operator()(double x) const { return x > 0.5; }
};

struct Product {
  const double *x, *y;
  __host__ __device__ double operator()(int64_t i) const { return x[i] * y[i]; }
};

template <class T> static T *device(size_t count) {
  T *memory;
  CHECK(cudaMalloc(&memory, count * sizeof(T)));
  return memory;
}

static double *upload(const Array &array) {
  double *memory = device<double>(array.values.size());
  CHECK(cudaMemcpy(memory, array.values.data(), array.values.size() * 8, cudaMemcpyHostToDevice));
  return memory;
}

// `call(temporary, bytes)` is CUB's protocol.
template <class F> static std::vector<double> run(int runs, F &&call) {
  size_t bytes = 0;
  CHECK(call(nullptr, bytes));
  char *temporary = device<char>(bytes ? bytes : 1);
  return seconds_of(runs, [&] {
    CHECK(call(temporary, bytes));
    CHECK(cudaDeviceSynchronize());
  });
}

int main(int argc, char **argv) {
  if (argc < 5) fail("OPERATION RUNS OUTPUT INPUT...");
  const std::string operation = argv[1];
  const int runs = std::atoi(argv[2]);
  const Array input = read_npy(argv[4]);
  const int count = static_cast<int>(input.values.size());
  const double *x = upload(input);
  double *out = device<double>(count + 256);
  int *selected = device<int>(1);
  int64_t *counts = device<int64_t>(256);
  std::vector<double> seconds;
  size_t size = 1;
  bool integers = false;
  if (operation == "sum") {
    seconds = run(runs, [&](void *t, size_t &b) { return cub::DeviceReduce::Sum(t, b, x, out, count); });
  } else if (operation == "dot") {
    const Product product{x, upload(read_npy(argv[5]))};
    const auto products = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), product);
    seconds = run(runs, [&](void *t, size_t &b) { return cub::DeviceReduce::Sum(t, b, products, out, count); });
  } else if (operation == "scan") {
    size = count;
    seconds = run(runs, [&](void *t, size_t &b) { return cub::DeviceScan::InclusiveSum(t, b, x, out, count); });
  } else if (operation == "select") {
    seconds = run(runs, [&](void *t, size_t &b) { return cub::DeviceSelect::If(t, b, x, out, selected, count, Above()); });
    int found;
    CHECK(cudaMemcpy(&found, selected, sizeof(int), cudaMemcpyDeviceToHost));
    size = found;
  } else if (operation == "sort") {
    size = count;
    seconds = run(runs, [&](void *t, size_t &b) { return cub::DeviceRadixSort::SortKeys(t, b, x, out, count); });
  } else if (operation == "tally") {
    size = 256;
    integers = true;
    const auto *keys = reinterpret_cast<const int64_t *>(x);
    auto *bins = reinterpret_cast<unsigned long long *>(counts);
    seconds = run(runs, [&](void *t, size_t &b) { return cub::DeviceHistogram::HistogramEven(t, b, keys, bins, 257, int64_t(0), int64_t(256), count); });
  } else {
    std::printf("{\"missing\": \"it has no such operation\"}\n");
    return 0;
  }
  std::vector<double> values(size);
  CHECK(cudaMemcpy(values.data(), integers ? static_cast<const void *>(counts) : out, size * 8, cudaMemcpyDeviceToHost));
  write_npy(argv[3], values.data(), size, integers);
  print_seconds(seconds, "CUB of CUDA's toolkit");
}
