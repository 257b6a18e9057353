// What the CUDA programs of benchmark/mapreduce.rb have in common: memory, time, launches, and the runs of a program.
//
// A program gets KIND FILE RUNS. It prints one line of JSON: "kernel" is the milliseconds of each run between events around launches, without gaps in
// which the host decides. "total" is from page-locked memory of the host to the result there. "phases" are medians. A first run is not counted.
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

// Memory on the device. It is kept from run to run, and allocated anew where more is needed. Then its contents are lost.
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

// The product of two square matrices of doubles in the input: its size, and its checksum, which is that of all bytes in order.
inline size_t side_of(const Input &input) {
  size_t side = 0;
  while (2 * (side + 1) * (side + 1) * sizeof(double) <= input.size) ++side;
  return side;
}
inline Checksum checksum_of_product(const double *product, size_t side) {
  return {side * side, 0, crc32_of(product, side * side * sizeof(double))};
}
