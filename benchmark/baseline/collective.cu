// The operations of `ext/ikra-core/examples/collective.rs` through CUB, which comes with CUDA's toolkit: what a program
// written for the GPU by hand would use. The same sizes, the same way of measuring.
//
//     nvcc -O3 -std=c++17 -arch=native benchmark/baseline/collective.cu -o collective && ./collective

#include <cub/cub.cuh>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call)                                                                          \
  do {                                                                                       \
    const cudaError_t status = (call);                                                       \
    if (status != cudaSuccess) {                                                             \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));   \
      std::exit(1);                                                                          \
    }                                                                                        \
  } while (0)

static const size_t MI = 1 << 20;

template <class T> struct Device {
  T *data = nullptr;
  explicit Device(size_t n) { CHECK(cudaMalloc(&data, n * sizeof(T))); }
  ~Device() { cudaFree(data); }
};

template <class T> static T *upload(Device<T> &to, const std::vector<T> &from) {
  CHECK(cudaMemcpy(to.data, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  return to.data;
}

// Milliseconds of one call: queued many times, best of some rounds. `call(temporary, bytes)` is CUB's protocol.
template <class F> static float time_of(F &&call) {
  size_t bytes = 0;
  CHECK(call(nullptr, bytes));
  Device<char> temporary(bytes ? bytes : 1);
  CHECK(call(temporary.data, bytes));
  CHECK(cudaDeviceSynchronize());
  cudaEvent_t before, after;
  CHECK(cudaEventCreate(&before));
  CHECK(cudaEventCreate(&after));
  float best = 1e30f;
  for (int round = 0; round < 5; round++) {
    const int calls = 20;
    CHECK(cudaEventRecord(before));
    for (int i = 0; i < calls; i++) CHECK(call(temporary.data, bytes));
    CHECK(cudaEventRecord(after));
    CHECK(cudaEventSynchronize(after));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, before, after));
    best = std::min(best, ms / calls);
  }
  return best;
}

static void say(const std::string &name, float ms, size_t bytes, size_t keys) {
  std::printf("%s: %.4f ms, %.0f GB/s, %.2f Gkeys/s\n", name.c_str(), ms, bytes / ms / 1e6, keys / ms / 1e6);
}

static uint64_t state = 1;
static double unit() {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return double(state >> 11) / double(1ull << 53);
}

template <class T> static std::vector<T> random(size_t n) {
  std::vector<T> out(n);
  state = 1;
  for (T &x : out) {
    const double u = unit();
    if (std::is_floating_point<T>::value) x = T(u);
    else if (sizeof(T) == 8) x = T(state ^ (state >> 29) * 0x9e3779b97f4a7c15ull);
    else x = T(state >> 32);
  }
  return out;
}

template <class T> static void sums(const char *type) {
  for (size_t n : {MI, 16 * MI, 64 * MI}) {
    Device<T> in(n), out(1);
    upload(in, random<T>(n));
    const float ms = time_of([&](void *t, size_t &b) { return cub::DeviceReduce::Sum(t, b, in.data, out.data, n); });
    say("Sum " + std::string(type) + " " + std::to_string(n / MI) + " Mi", ms, n * sizeof(T), n);
  }
}

template <class T> static void scans(const char *type) {
  for (size_t n : {16 * MI, 64 * MI}) {
    Device<T> in(n), out(n);
    upload(in, random<T>(n));
    const float ms = time_of([&](void *t, size_t &b) { return cub::DeviceScan::InclusiveSum(t, b, in.data, out.data, n); });
    say("Scan Sum " + std::string(type) + " " + std::to_string(n / MI) + " Mi", ms, 2 * n * sizeof(T), n);
  }
}

template <class T> static void selections(const char *type) {
  const size_t n = 64 * MI;
  Device<T> in(n), out(n);
  Device<uint8_t> flags(n);
  Device<uint64_t> count(1);
  upload(in, random<T>(n));
  std::vector<uint8_t> chosen(n);
  state = 7;
  size_t hits = 0;
  for (uint8_t &f : chosen) hits += f = unit() < 0.5;
  upload(flags, chosen);
  const float ms = time_of([&](void *t, size_t &b) { return cub::DeviceSelect::Flagged(t, b, in.data, flags.data, out.data, count.data, n); });
  say("Select " + std::string(type) + " 64 Mi", ms, n + (n + hits) * sizeof(T), n);
}

template <class K> static void sorts(const char *type, bool pairs) {
  const size_t n = 64 * MI;
  Device<K> in(n), out(n);
  Device<uint32_t> values(pairs ? n : 1), sorted(pairs ? n : 1);
  upload(in, random<K>(n));
  const float ms = time_of([&](void *t, size_t &b) {
    return pairs ? cub::DeviceRadixSort::SortPairs(t, b, in.data, out.data, values.data, sorted.data, n)
                 : cub::DeviceRadixSort::SortKeys(t, b, in.data, out.data, n);
  });
  say("Sort " + std::string(type) + (pairs ? " with u32" : "") + " 64 Mi", ms, n * sizeof(K), n);
}

// Elements by class tag, as jobs are reordered.
static void reorderings() {
  const size_t n = 16 * MI;
  for (uint64_t classes : {4, 64}) {
    std::vector<uint8_t> tags(n);
    std::vector<uint32_t> indices(n);
    state = 5;
    for (size_t i = 0; i < n; i++) {
      unit();
      tags[i] = uint8_t((state >> 32) % classes);
      indices[i] = uint32_t(i);
    }
    Device<uint8_t> in(n), out(n);
    Device<uint32_t> values(n), sorted(n);
    upload(in, tags);
    upload(values, indices);
    const float ms = time_of([&](void *t, size_t &b) {
      return cub::DeviceRadixSort::SortPairs(t, b, in.data, out.data, values.data, sorted.data, n);
    });
    say("Reorder tags of " + std::to_string(classes) + " classes 16 Mi", ms, 5 * n, n);
  }
}

int main() {
  sums<double>("F64");
  sums<int64_t>("I64");
  sums<float>("F32");
  scans<double>("F64");
  scans<int64_t>("I64");
  selections<double>("8 bytes");
  selections<float>("4 bytes");
  selections<uint8_t>("1 byte");
  sorts<uint32_t>("U32", false);
  sorts<uint64_t>("U64", false);
  sorts<double>("F64", false);
  sorts<uint32_t>("U32", true);
  sorts<double>("F64", true);
  reorderings();
  return 0;
}
