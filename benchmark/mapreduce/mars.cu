// The programs of benchmark/mapreduce.rb as Mars (He and others, 2008) runs them, with the algorithms of CUB: each map
// task counts what it emits, prefix sums tell where it stores that, and sorting brings equal keys together.
//
//     nvcc -O3 -std=c++17 --fmad=false -arch=native mars.cu -o mars && ./mars words|histogram|pages|grep|matrix FILE RUNS
//
// Hashes of keys are sorted, with the numbers of pairs. Then the bytes of neighbours with equal hashes are compared.
// Where some differ, all is done again with other hashes.
#define FRAMEWORK
#include "common.cuh"

__global__ void number(uint32_t *numbers, uint32_t count) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] = i;
}

// The first pair of a group, and the sum of values.
struct Partial {
  uint32_t pair, sum;
};
struct Add {
  __device__ Partial operator()(const Partial &one, const Partial &other) const { return {one.pair, one.sum + other.sum}; }
};

// Verifies the order, and brings values into it.
__global__ void verify(Pairs<uint32_t> pairs, const uint64_t *hashes, const uint32_t *order, uint32_t count, Partial *partials, uint32_t *differ) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const uint32_t pair = order[i];
  partials[i] = {pair, pairs.values[pair]};
  if (i == 0 || hashes[i] != hashes[i - 1]) return;
  const uint32_t other = order[i - 1];
  if (pairs.sizes[pair] != pairs.sizes[other] || !same_bytes(pairs.keys + pairs.places[pair], pairs.keys + pairs.places[other], pairs.sizes[pair])) *differ = 1;
}

__global__ void finish(Pairs<uint32_t> pairs, const Partial *sums, uint32_t count, Group *groups) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) groups[i] = {pairs.places[sums[i].pair], pairs.sizes[sums[i].pair], sums[i].sum};
}

__global__ void integer_keys(const Group *groups, const char *keys, uint32_t count, uint32_t *integers) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t key = 0;
  for (uint32_t k = 0; k < 4; ++k) key |= uint32_t(static_cast<unsigned char>(keys[groups[i].key + k])) << 8 * k;
  integers[i] = key;
}
__global__ void permute(const Group *groups, const uint32_t *order, uint32_t count, Group *permuted) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) permuted[i] = groups[order[i]];
}

// One pass of MapReduce: Map, Group, Reduce.
template <class Program> class Pass {
public:
  Memory<Group> groups;
  uint32_t count = 0;
  const char *keys() const { return mapped.pairs.keys; }

  void run(Clock &clock, Cub &cub, const Program &program) {
    for (uint64_t seed = 0xcbf29ce484222325ull;; seed = mix(seed)) {
      mapped.run(clock, cub, program, true, seed);
      const uint32_t pairs = mapped.count;
      partials.reserve(pairs);
      sums.reserve(pairs);
      hashes.reserve(pairs);
      unique.reserve(pairs);
      clock.phase("group", [&] {
        launch_each(number, pairs, numbers.reserve(pairs), pairs);
        order.reserve(pairs);
        cub([&](void *at, size_t &bytes) {
          return cub::DeviceRadixSort::SortPairs(at, bytes, mapped.pairs.hashes, hashes.at, numbers.at, order.at, static_cast<int>(pairs));
        });
        launch_each(verify, pairs, mapped.pairs, hashes.at, order.at, pairs, partials.at, state.zeros(2));
      });
      clock.phase("reduce", [&] {
        cub([&](void *at, size_t &bytes) {
          return cub::DeviceReduce::ReduceByKey(at, bytes, hashes.at, unique.at, partials.at, sums.at, state.at + 1, Add(), static_cast<int>(pairs));
        });
      });
      const std::vector<uint32_t> found = state.read(2);
      count = found[1];
      if (found[0]) continue;
      groups.reserve(count);
      clock.phase("reduce", [&] { launch_each(finish, count, mapped.pairs, sums.at, count, groups.at); });
      return;
    }
  }

  // Sorts the groups by their keys, which are Integers.
  void sort(Clock &clock, Cub &cub) {
    sorted.reserve(count);
    clock.phase("sort", [&] {
      launch_each(integer_keys, count, groups.at, keys(), count, integers.reserve(2 * count));
      launch_each(number, count, numbers.reserve(count), count);
      cub([&](void *at, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(at, bytes, integers.at, integers.at + count, numbers.at, order.reserve(count), static_cast<int>(count));
      });
      launch_each(permute, count, groups.at, order.at, count, sorted.at);
    });
    std::swap(groups.at, sorted.at);
    std::swap(groups.room, sorted.room);
  }

private:
  Mapped<Program> mapped;
  Memory<uint64_t> hashes, unique;
  Memory<uint32_t> numbers, order, state, integers;
  Memory<Partial> partials, sums;
  Memory<Group> sorted;
};

template <class Program> void measure_pass(int runs, const Input &input, const Program &program, bool sorted) {
  Pass<Program> pass;
  Cub cub;
  Delivery delivery;
  const auto run = [&](Clock &clock) {
    pass.run(clock, cub, program);
    if (sorted) pass.sort(clock, cub);
    delivery.run(clock, cub, pass.groups.at, pass.keys(), pass.count);
  };
  measure(runs, input, run, [&] { return delivery.checksum(); });
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const std::string kind = argv[1];
  const int runs = std::atoi(argv[3]);
  const Input input = open_input(argv[2]);
  if (input.size >= 1ull << 32) fail(argv[2], "is too large");
  const OfText text = {input.text, static_cast<uint32_t>(input.size)};
  if (kind == "words") measure_pass(runs, input, Words{text}, false);
  else if (kind == "histogram") measure_pass(runs, input, Shades{text}, true);
  else if (kind == "grep") measure_pass(runs, input, Errors{text}, false);
  else if (kind == "matrix") measure_product(runs, input);
  else if (kind == "pages") {
    Pass<Visits> visits;
    Pass<Urls> urls;
    Cub cub;
    Delivery delivery;
    const auto run = [&](Clock &clock) {
      visits.run(clock, cub, Visits{text});
      urls.run(clock, cub, Urls{visits.groups.at, visits.keys(), visits.count});
      delivery.run(clock, cub, urls.groups.at, urls.keys(), urls.count);
    };
    measure(runs, input, run, [&] { return delivery.checksum(); });
  } else
    return 2;
}
