// What the CUDA programs of benchmark/mapreduce.rb have in common: memory, time, launches, and the runs of a program.
//
// A program gets KIND FILE RUNS. It prints one line of JSON: "kernel" is the milliseconds of each run between events
// around launches, without gaps in which the host decides. "total" is from page-locked memory of the host to the result
// there. "phases" are medians. A first run is not counted.
#pragma once
#include "common.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

inline void must(cudaError_t status) {
  if (status != cudaSuccess) fail("CUDA", cudaGetErrorString(status));
}

// Memory on the device. It is kept from run to run, and allocated anew where more is needed. Then its contents are
// lost.
template <class T> struct Memory {
  T *at = nullptr;
  size_t room = 0;
  T *reserve(size_t count) {
    if (count > room) {
      if (at) must(cudaFree(at));
      must(cudaMalloc(&at, std::max<size_t>(count, 1) * sizeof(T)));
      room = count;
    }
    return at;
  }
  T *zeros(size_t count) {
    reserve(count);
    must(cudaMemsetAsync(at, 0, count * sizeof(T)));
    return at;
  }
  // The first numbers, on the host.
  std::vector<T> read(size_t count) const {
    std::vector<T> values(count);
    if (count) must(cudaMemcpy(values.data(), at, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  T read_at(size_t index) const {
    T value;
    must(cudaMemcpy(&value, at + index, sizeof(T), cudaMemcpyDeviceToHost));
    return value;
  }
};

inline void *pinned(size_t bytes) {
  void *at;
  must(cudaMallocHost(&at, std::max<size_t>(bytes, 1)));
  return at;
}

// Page-locked memory of the host for results.
template <class T> struct Host {
  T *at = nullptr;
  size_t room = 0;
  const T *copy(const T *from, size_t count) {
    if (count > room) {
      if (at) must(cudaFreeHost(at));
      room = count + count / 4;
      at = static_cast<T *>(pinned(room * sizeof(T)));
    }
    if (count) must(cudaMemcpy(at, from, count * sizeof(T), cudaMemcpyDeviceToHost));
    return at;
  }
};

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), size_t blocks, unsigned threads, size_t shared, Arguments... arguments) {
  if (!blocks) return;
  kernel<<<static_cast<unsigned>(blocks), threads, shared>>>(arguments...);
  must(cudaGetLastError());
}

// A thread for each of the elements.
template <class... Parameters, class... Arguments> void launch_each(void (*kernel)(Parameters...), size_t count, Arguments... arguments) {
  launch(kernel, (count + 255) / 256, 256, 0, arguments...);
}

inline int processors() {
  int count;
  must(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

// Adds up the time of the phases of a run.
class Clock {
public:
  Clock() {
    must(cudaEventCreate(&begin));
    must(cudaEventCreate(&end));
  }
  template <class Work> void phase(const char *name, Work work) {
    must(cudaEventRecord(begin));
    work();
    must(cudaEventRecord(end));
    must(cudaEventSynchronize(end));
    float milliseconds;
    must(cudaEventElapsedTime(&milliseconds, begin, end));
    phases[name] += milliseconds;
  }
  std::map<std::string, double> phases;

private:
  cudaEvent_t begin, end;
};

// The input on the host and on the device.
struct Input {
  const char *host;
  char *text;
  size_t size;
};

inline Input open_input(const char *path) {
  Input input;
  input.host = read_file(path, &input.size, pinned);
  // Kernels load whole vectors behind the end, which are zeros.
  must(cudaMalloc(&input.text, input.size + 64));
  return input;
}
inline void upload(const Input &input) { must(cudaMemcpyAsync(input.text, input.host, input.size + 64, cudaMemcpyHostToDevice)); }

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Calls `run(clock)` for each run, and then prints the times and what `checksum()` gives. `more` is further JSON.
inline void measure(int runs, const Input &input, const std::function<void(Clock &)> &run, const std::function<Checksum()> &checksum,
                    const std::function<std::string()> &more = [] { return std::string(); }) {
  std::vector<double> kernels, totals;
  std::map<std::string, std::vector<double>> phases;
  Clock clock;
  for (int i = -1; i < runs; ++i) {
    clock.phases.clear();
    must(cudaDeviceSynchronize());
    const auto began = std::chrono::steady_clock::now();
    upload(input);
    run(clock);
    must(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - began;
    if (i < 0) continue;
    totals.push_back(taken.count());
    double kernel = 0;
    for (const auto &phase : clock.phases) {
      phases[phase.first].push_back(phase.second);
      kernel += phase.second;
    }
    kernels.push_back(kernel);
  }
  std::printf("{");
  print_list("kernel", kernels.data(), runs);
  print_list("total", totals.data(), runs);
  std::printf("\"phases\": {");
  for (const auto &phase : phases) std::printf("%s\"%s\": %.6f", phase.first == phases.begin()->first ? "" : ", ", phase.first.c_str(), median(phase.second));
  std::printf("}, %s", more().c_str());
  print_checksum(checksum());
  std::printf("}\n");
}

// The product of two square matrices of doubles in the input: its size, and its checksum, which is that of all bytes in
// order.
inline size_t side_of(const Input &input) {
  size_t side = 0;
  while (2 * (side + 1) * (side + 1) * sizeof(double) <= input.size) ++side;
  return side;
}
inline Checksum checksum_of_product(const double *product, size_t side) {
  return {side * side, 0, crc32_of(product, side * side * sizeof(double))};
}

// What follows is for the frameworks: mars.cu and soren.cu. Their users write a program as a map task for a thread,
// which calls `emit(key, size, value)` with bytes as the key. A task takes the words or lines that begin in its part of
// the text.
#ifdef FRAMEWORK
#include <cub/cub.cuh>

constexpr uint32_t part = 128;

struct OfText {
  typedef uint32_t Value;
  static constexpr bool has_values = true;
  const char *text;
  uint32_t size;
  uint32_t tasks() const { return (size + part - 1) / part; }
  // Calls work(begin) for each place in the task's part where a word or a line begins. `ends` says what is before it.
  template <class Ends, class Work> __device__ void each_start(uint32_t task, Ends ends, Work work) const {
    const uint32_t first = task * part, last = min(first + part, size);
    for (uint32_t at = first; at < last; ++at)
      if (!ends(text[at]) && (at == 0 || ends(text[at - 1]))) work(at);
  }
  __device__ uint32_t end_from(uint32_t at) const {
    while (at < size && !is_space(text[at])) ++at;
    return at;
  }
  static __device__ bool newline(char c) { return c == '\n'; }
};

struct Words : OfText {
  template <class Emit> __device__ void operator()(uint32_t task, Emit &emit) const {
    each_start(task, [](char c) { return is_space(c) != 0; }, [&](uint32_t at) { emit(text + at, end_from(at) - at, 1u); });
  }
};

// Lines are "URL IP COOKIE". The first pass makes them different, and has no values.
struct Visits : OfText {
  static constexpr bool has_values = false;
  template <class Emit> __device__ void operator()(uint32_t task, Emit &emit) const {
    each_start(task, newline, [&](uint32_t at) { emit(text + at, end_from(end_from(at) + 1) - at, 0u); });
  }
};

// The first words of lines that / 5\d\d / matches.
struct Errors : OfText {
  template <class Emit> __device__ void operator()(uint32_t task, Emit &emit) const {
    each_start(task, newline, [&](uint32_t line) {
      for (uint32_t at = line; at < size && !newline(text[at]); ++at)
        if (is_error(text + at)) return emit(text + line, end_from(line) - line, 1u);
    });
  }
};

// Pixels of three bytes. A task takes 16.
struct Shades : OfText {
  uint32_t tasks() const { return (size + 47) / 48; }
  template <class Emit> __device__ void operator()(uint32_t task, Emit &emit) const {
    for (uint32_t at = 48 * task; at < min(48 * task + 48, size / 3 * 3); ++at) {
      const uint32_t shade = at % 3 * 256 + static_cast<unsigned char>(text[at]);
      emit(reinterpret_cast<const char *>(&shade), 4, 1u);
    }
  }
};

// A key and its value. The key's bytes are in a space for keys.
struct Group {
  uint32_t key, size, value;
};

// The second pass of page views: a task takes a key of the first.
struct Urls {
  typedef uint32_t Value;
  static constexpr bool has_values = true;
  const Group *visits;
  const char *keys;
  uint32_t count;
  uint32_t tasks() const { return count; }
  template <class Emit> __device__ void operator()(uint32_t task, Emit &emit) const {
    const char *key = keys + visits[task].key;
    uint32_t size = 0;
    while (key[size] != ' ') ++size;
    emit(key, size, 1u);
  }
};

// A task takes a row and a column. There is nothing to reduce.
struct Product {
  typedef double Value;
  const double *a, *b;
  uint32_t side;
  uint32_t tasks() const { return side * side; }
  template <class Emit> __device__ void operator()(uint32_t task, Emit &emit) const {
    const uint32_t y = task / side, x = task % side, key[2] = {y, x};
    double sum = 0;
    for (uint32_t k = 0; k < side; ++k) sum += a[uint64_t(y) * side + k] * b[uint64_t(k) * side + x];
    emit(reinterpret_cast<const char *>(key), 8, sum);
  }
};

__device__ inline uint64_t hash_of(const char *key, uint32_t size, uint64_t seed) {
  uint64_t hash = mix(seed);
  for (uint32_t i = 0; i < size; ++i) hash = (hash ^ static_cast<unsigned char>(key[i])) * 0x100000001b3ull;
  return mix(hash ^ uint64_t(size) << 48);
}
__device__ inline bool same_bytes(const char *one, const char *other, uint32_t size) {
  for (uint32_t i = 0; i < size; ++i)
    if (one[i] != other[i]) return false;
  return true;
}

// Temporary memory for a call of CUB, which says first how much it needs.
struct Cub {
  Memory<char> memory;
  template <class Call> void operator()(Call call) {
    size_t bytes = 0;
    must(call(nullptr, bytes));
    memory.reserve(bytes);
    must(call(memory.at, bytes));
  }
  void exclusive_sum(const uint32_t *from, uint32_t *to, size_t count) {
    (*this)([&](void *at, size_t &bytes) { return cub::DeviceScan::ExclusiveSum(at, bytes, from, to, static_cast<int>(count)); });
  }
};

// MapCount: how many pairs and bytes of keys each task emits.
struct Counted {
  uint32_t pairs = 0, bytes = 0;
  template <class Value> __device__ void operator()(const char *, uint32_t size, Value) {
    ++pairs;
    bytes += size;
  }
};
template <class Program> __global__ void map_count(Program program, uint32_t tasks, uint32_t *pairs, uint32_t *bytes) {
  const uint32_t task = blockIdx.x * blockDim.x + threadIdx.x;
  if (task > tasks) return;
  Counted counted;
  if (task < tasks) program(task, counted);
  pairs[task] = counted.pairs;
  bytes[task] = counted.bytes;
}

// Where the pairs of map tasks are stored, one beside the other.
template <class Value> struct Pairs {
  char *keys;
  uint32_t *places, *sizes;
  Value *values;
  uint64_t *hashes; // null where there is nothing to group
  uint64_t seed;
};
template <class Value> struct Stored {
  Pairs<Value> pairs;
  uint32_t pair, at;
  __device__ void operator()(const char *key, uint32_t size, Value value) {
    for (uint32_t i = 0; i < size; ++i) pairs.keys[at + i] = key[i];
    pairs.places[pair] = at;
    pairs.sizes[pair] = size;
    pairs.values[pair] = value;
    if (pairs.hashes) pairs.hashes[pair] = hash_of(key, size, pairs.seed);
    at += size;
    ++pair;
  }
};
template <class Program> __global__ void map_store(Program program, uint32_t tasks, const uint32_t *first_pairs, const uint32_t *first_bytes, Pairs<typename Program::Value> pairs) {
  const uint32_t task = blockIdx.x * blockDim.x + threadIdx.x;
  if (task >= tasks) return;
  Stored<typename Program::Value> stored = {pairs, first_pairs[task], first_bytes[task]};
  program(task, stored);
}

// Mars's way to store pairs without synchronization: MapCount, prefix sums, Map.
template <class Program> class Mapped {
public:
  typedef typename Program::Value Value;
  Pairs<Value> pairs;
  uint32_t count;
  void run(Clock &clock, Cub &cub, const Program &program, bool hashed, uint64_t seed) {
    const uint32_t tasks = program.tasks();
    clock.phase("count", [&] { launch_each(map_count<Program>, size_t(tasks) + 1, program, tasks, counts.reserve(tasks + 1), bytes.reserve(tasks + 1)); });
    clock.phase("scan", [&] {
      cub.exclusive_sum(counts.at, first_pairs.reserve(tasks + 1), tasks + 1);
      cub.exclusive_sum(bytes.at, first_bytes.reserve(tasks + 1), tasks + 1);
    });
    count = first_pairs.read_at(tasks);
    const uint32_t key_bytes = first_bytes.read_at(tasks);
    pairs = {keys.reserve(key_bytes), places.reserve(count), sizes.reserve(count), values.reserve(count), hashed ? hashes.reserve(count) : nullptr, seed};
    clock.phase("map", [&] { launch_each(map_store<Program>, tasks, program, tasks, first_pairs.at, first_bytes.at, pairs); });
  }

private:
  Memory<uint32_t> counts, bytes, first_pairs, first_bytes, places, sizes;
  Memory<char> keys;
  Memory<Value> values;
  Memory<uint64_t> hashes;
};

__global__ void sizes_of(const Group *groups, uint32_t count, uint32_t *sizes) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= count) sizes[i] = i < count ? groups[i].size : 0;
}
__global__ void copy_keys(const Group *groups, const char *keys, uint32_t count, const uint32_t *places, char *copied, Group *moved) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  for (uint32_t k = 0; k < groups[i].size; ++k) copied[places[i] + k] = keys[groups[i].key + k];
  moved[i] = {places[i], groups[i].size, groups[i].value};
}

// Groups on the host, with their keys one beside the other.
class Delivery {
public:
  void run(Clock &clock, Cub &cub, const Group *groups, const char *keys, uint32_t number) {
    count = number;
    clock.phase("output", [&] {
      launch_each(sizes_of, size_t(count) + 1, groups, count, sizes.reserve(count + 1));
      cub.exclusive_sum(sizes.at, places.reserve(count + 1), count + 1);
    });
    const uint32_t bytes = places.read_at(count);
    copied.reserve(bytes);
    moved.reserve(count);
    clock.phase("output", [&] { launch_each(copy_keys, count, groups, keys, count, places.at, copied.at, moved.at); });
    on_host.copy(moved.at, count);
    keys_on_host.copy(copied.at, bytes);
  }
  Checksum checksum() const {
    Checksum sum = {0, 0, 0};
    for (uint32_t i = 0; i < count; ++i) add_entry(&sum, keys_on_host.at + on_host.at[i].key, on_host.at[i].size, on_host.at[i].value);
    return sum;
  }

private:
  uint32_t count = 0;
  Memory<uint32_t> sizes, places;
  Memory<char> copied;
  Memory<Group> moved;
  Host<Group> on_host;
  Host<char> keys_on_host;
};

// The matrix product in both frameworks: pairs of a place and a number, which only have to come to the host.
inline void measure_product(int runs, const Input &input) {
  const uint32_t side = static_cast<uint32_t>(side_of(input));
  const double *a = reinterpret_cast<const double *>(input.text);
  Mapped<Product> mapped;
  Cub cub;
  Host<uint32_t> keys;
  Host<double> values;
  const auto run = [&](Clock &clock) {
    mapped.run(clock, cub, Product{a, a + size_t(side) * side, side}, false, 0);
    keys.copy(reinterpret_cast<const uint32_t *>(mapped.pairs.keys), 2 * size_t(mapped.count));
    values.copy(mapped.pairs.values, mapped.count);
  };
  measure(runs, input, run, [&] {
    std::vector<double> product(size_t(side) * side, -1.0);
    for (size_t i = 0; i < mapped.count; ++i) product[size_t(keys.at[2 * i]) * side + keys.at[2 * i + 1]] = values.at[i];
    return checksum_of_product(product.data(), side);
  });
}
#endif
