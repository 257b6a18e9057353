// The programs of benchmark/mapreduce.rb as Soren (Mokhtari and others, 2011) runs them, as far as the paper says how.
//
//     nvcc -O3 -std=c++17 --fmad=false -arch=native soren.cu -o soren && ./soren words|histogram|pages|grep|matrix FILE RUNS [ESTIMATE]
//
// From the paper: a first fifth of the input is monitored (Table 1), and linear projections of that size the hash
// table, the space for keys and the space for values. A row of the table has a cell for each hash, so that keys of one
// hash are a column, and further rows are appended. Each column has a lock. Values of a key are put in a list, and
// combined when it is full. A thread without room saves how far it came, and counts up a flag. From a threshold on, all
// threads end. What is too small is then copied to the host and back into twice the room, and unfinished tasks go on.
// With less than 1000 keys, a key is one of a thread block, and these are merged. Without a reduce, pairs are stored as
// in Mars. Sorting is bitonic, of pointers.
//
// Not from the paper, which says nothing of these: there is a column for 2 to 4 pairs, at first of 16 rows. Lists have
// 4 values, the threshold is 256 threads, distinct keys are counted by a bitmap of hashes, and a thread that finds a
// lock taken sleeps for a while. ESTIMATE is a factor for all sizes, to see overflows.
#define FRAMEWORK
#include "common.cuh"

constexpr uint32_t finished = ~0u, no_block = ~0u, list_size = 4, first_rows = 16, pairs_of_column = 4, overflow_threshold = 256, few_keys = 1000;
constexpr uint32_t bitmap_bits = 1 << 24;
constexpr int training = 5; // one part of so many is monitored

// Table 1.
struct Metrics {
  unsigned long long pairs, key_bytes, value_bytes, distinct;
};

struct Monitor {
  uint32_t *bitmap;
  uint32_t pairs, bytes;
  template <class Value> __device__ void operator()(const char *key, uint32_t size, Value) {
    ++pairs;
    bytes += size;
    const uint32_t bit = static_cast<uint32_t>(hash_of(key, size, 1)) % bitmap_bits;
    atomicOr(&bitmap[bit / 32], 1u << bit % 32);
  }
};
template <class Program> __global__ void monitor(Program program, uint32_t tasks, uint32_t *bitmap, Metrics *metrics) {
  const uint32_t task = blockIdx.x * blockDim.x + threadIdx.x;
  if (task >= tasks) return;
  Monitor found = {bitmap, 0, 0};
  program(task, found);
  if (!found.pairs) return;
  atomicAdd(&metrics->pairs, static_cast<unsigned long long>(found.pairs));
  atomicAdd(&metrics->key_bytes, static_cast<unsigned long long>(found.bytes));
  if (Program::has_values) atomicAdd(&metrics->value_bytes, static_cast<unsigned long long>(found.pairs * sizeof(typename Program::Value)));
}
__global__ void count_bits(const uint32_t *bitmap, Metrics *metrics) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < bitmap_bits / 32 && bitmap[i]) atomicAdd(&metrics->distinct, static_cast<unsigned long long>(__popc(bitmap[i])));
}

struct Cell {
  uint32_t hash, block, key, size, values, count;
};

enum { overflows, table_full, keys_full, values_full, flags };

// The regions of memory, as kernels see them.
struct Space {
  Cell *cells; // row after row
  uint32_t *used, *locks;
  uint32_t columns, rows; // the number of columns is a power of two
  char *keys;
  uint32_t *values;
  uint64_t key_room, value_room;
  unsigned long long *ends; // the ends of the used keys and values
  uint32_t *flags;
  uint32_t *progress; // for each task, how many pairs are stored
  bool has_values;

  __device__ Cell &cell(uint32_t row, uint32_t column) const { return cells[uint64_t(row) * columns + column]; }
  // Appends a value to the list of a cell. This is the incremental combine.
  __device__ void append(Cell &cell, uint32_t value) const {
    if (!has_values) return;
    uint32_t *list = values + cell.values;
    if (cell.count == list_size) {
      for (uint32_t i = 1; i < list_size; ++i) list[0] += list[i];
      cell.count = 1;
    }
    list[cell.count++] = value;
  }
  // The cell of a key in some rows of a column, or null.
  __device__ Cell *find(uint32_t hash, uint32_t block, const char *key, uint32_t size, uint32_t row, uint32_t height) const {
    for (; row < height; ++row) {
      Cell &known = cell(row, hash & (columns - 1));
      if (known.hash == hash && known.block == block && known.size == size && same_bytes(keys + known.key, key, size)) return &known;
    }
    return nullptr;
  }
  // A new cell on top of a column, whose lock this thread has. What is full is returned, or 0.
  __device__ uint32_t insert(uint32_t hash, uint32_t block, const char *key, uint32_t size, uint32_t height, Cell *&added) const {
    if (height == rows) return table_full;
    const uint64_t key_at = atomicAdd(&ends[0], static_cast<unsigned long long>(size));
    if (key_at + size > key_room) return keys_full;
    const uint64_t value_at = has_values ? atomicAdd(&ends[1], static_cast<unsigned long long>(list_size)) : 0;
    if (has_values && value_at + list_size > value_room) return values_full;
    for (uint32_t i = 0; i < size; ++i) keys[key_at + i] = key[i];
    added = &cell(height, hash & (columns - 1));
    *added = {hash, block, static_cast<uint32_t>(key_at), size, static_cast<uint32_t>(value_at), 0};
    __threadfence();
    *const_cast<volatile uint32_t *>(&used[hash & (columns - 1)]) = height + 1;
    return 0;
  }
  // Stores a pair. Cells stay where they are, so a key is looked for before the lock, too. What is full is returned, or
  // 0.
  __device__ uint32_t store(uint32_t hash, uint32_t block, const char *key, uint32_t size, uint32_t value) const {
    const uint32_t column = hash & (columns - 1), seen = *const_cast<volatile uint32_t *>(&used[column]);
    __threadfence();
    Cell *found = find(hash, block, key, size, 0, seen);
    if (found && !has_values) return 0;
    uint32_t full = 0, wait = 32;
    // The lock is released within the loop, as other threads of the warp may wait for it.
    for (bool done = false; !done;) {
      if (atomicExch(&locks[column], 1u) == 0) {
        __threadfence();
        const uint32_t height = *const_cast<volatile uint32_t *>(&used[column]);
        if (!found) found = find(hash, block, key, size, seen, height);
        if (!found) full = insert(hash, block, key, size, height, found);
        if (!full) append(*found, value);
        __threadfence();
        atomicExch(&locks[column], 0u);
        done = true;
      } else {
        __nanosleep(wait);
        wait = min(2 * wait, 1u << 16);
      }
    }
    return full;
  }
  __device__ uint32_t overflow_flag() const { return *const_cast<volatile uint32_t *>(&flags[overflows]); }
};

struct Emitter {
  Space space;
  uint32_t block, stored, emitted;
  bool stopped;
  template <class Value> __device__ void operator()(const char *key, uint32_t size, Value value) {
    if (stopped || emitted++ < stored) return;
    stopped = space.overflow_flag() >= overflow_threshold;
    if (stopped) return;
    const uint32_t hash = static_cast<uint32_t>(hash_of(key, size, block));
    const uint32_t full = space.store(hash, block, key, size, value);
    if (!full) {
      ++stored;
      return;
    }
    stopped = true;
    atomicAdd(&space.flags[overflows], 1u);
    atomicExch(&space.flags[full], 1u);
  }
};

// The threads of a grid take the tasks in turn. A key is one of a block where `by_block` says so.
template <class Program> __global__ void map_tasks(Program program, uint32_t tasks, Space space, bool by_block) {
  for (uint64_t task = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; task < tasks; task += uint64_t(gridDim.x) * blockDim.x) {
    const uint32_t stored = space.progress[task];
    if (stored == finished) continue;
    if (space.overflow_flag() >= overflow_threshold) return;
    Emitter emitter = {space, by_block ? blockIdx.x : no_block, stored, 0, false};
    program(static_cast<uint32_t>(task), emitter);
    space.progress[task] = emitter.stopped ? emitter.stored : finished;
    if (emitter.stopped) return;
  }
}

// The values of a cell, reduced to one.
__device__ inline uint32_t reduced(const Space &space, const Cell &cell) {
  uint32_t sum = 0;
  for (uint32_t i = 0; space.has_values && i < cell.count; ++i) sum += space.values[cell.values + i];
  return sum;
}
__global__ void reduce_cells(Space space) {
  const uint32_t column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= space.columns || !space.has_values) return;
  for (uint32_t row = 0; row < space.used[column]; ++row) {
    const Cell &cell = space.cell(row, column);
    space.values[cell.values] = reduced(space, cell);
  }
}
__global__ void merge_cells(Space space, const uint32_t *places, Group *groups) {
  const uint32_t column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= space.columns) return;
  for (uint32_t row = 0; row < space.used[column]; ++row) {
    const Cell &cell = space.cell(row, column);
    groups[places[column] + row] = {cell.key, cell.size, space.has_values ? space.values[cell.values] : 0};
  }
}

// Emits the keys of blocks again, each with its combined value, but without the block.
struct Clusters {
  typedef uint32_t Value;
  static constexpr bool has_values = true;
  Space space;
  uint32_t tasks() const { return space.columns; }
  template <class Emit> __device__ void operator()(uint32_t column, Emit &emit) const {
    for (uint32_t row = 0; row < space.used[column]; ++row) {
      const Cell &cell = space.cell(row, column);
      emit(space.keys + cell.key, cell.size, reduced(space, cell));
    }
  }
};

__device__ inline uint32_t integer_key(const Group &group, const char *keys) {
  uint32_t key = 0;
  for (uint32_t k = 0; k < 4; ++k) key |= uint32_t(static_cast<unsigned char>(keys[group.key + k])) << 8 * k;
  return key;
}
// A block sorts pointers to groups by keys, which are Integers. Those behind the last group are the greatest.
__global__ void sort_pointers(const Group *groups, const char *keys, uint32_t count, uint32_t room, uint32_t *pointers, Group *sorted) {
  for (uint32_t i = threadIdx.x; i < room; i += blockDim.x) pointers[i] = i;
  __syncthreads();
  for (uint32_t span = 2; span <= room; span *= 2)
    for (uint32_t step = span / 2; step > 0; step /= 2) {
      for (uint32_t i = threadIdx.x; i < room; i += blockDim.x) {
        const uint32_t j = i ^ step, one = pointers[i], other = pointers[j];
        if (j < i) continue;
        const uint64_t a = one < count ? integer_key(groups[one], keys) : 1ull << 32, b = other < count ? integer_key(groups[other], keys) : 1ull << 32;
        if ((a > b) != ((i & span) != 0) && a != b) {
          pointers[i] = other;
          pointers[j] = one;
        }
      }
      __syncthreads();
    }
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) sorted[i] = groups[pointers[i]];
}

inline uint32_t power_of_two(uint64_t least) {
  uint32_t size = 1024;
  while (size < least) size *= 2;
  return size;
}

// A hash table with its spaces, and the overflow handling.
class Regions {
public:
  int grown = 0;

  // Makes all empty, with room for what was estimated.
  void prepare(const Metrics &estimate, bool has_values) {
    columns = power_of_two(estimate.pairs / pairs_of_column);
    rows = first_rows;
    key_room = std::max<uint64_t>(estimate.key_bytes, 16);
    value_room = has_values ? std::max<uint64_t>(estimate.value_bytes / sizeof(uint32_t), list_size) : 0;
    values_there = has_values;
    cells.reserve(size_t(columns) * rows);
    keys.reserve(key_room);
    values.reserve(value_room);
  }

  Space space() {
    return {cells.at, used.at, locks.at, columns, rows, keys.at, values.at, key_room, value_room, ends.at, state.at, progress.at, values_there};
  }

  // Runs the map tasks to the end. `blocks` is 0 for a thread for each task.
  template <class Program> void map(Clock &clock, const char *phase, const Program &program, uint32_t blocks) {
    const uint32_t tasks = program.tasks();
    clock.phase(phase, [&] {
      used.zeros(columns);
      locks.zeros(columns);
      ends.zeros(2);
      progress.zeros(tasks);
    });
    for (;;) {
      const size_t all = (size_t(tasks) + 255) / 256;
      clock.phase(phase, [&] {
        state.zeros(flags);
        launch(map_tasks<Program>, blocks ? std::min<size_t>(blocks, all) : all, 256, 0, program, tasks, space(), blocks != 0);
      });
      const std::vector<uint32_t> found = state.read(flags);
      if (!found[overflows]) return;
      grow(found);
    }
  }

private:
  // Copies contents to the host, and back into more room.
  template <class T> static void enlarge(Memory<T> &memory, size_t from, size_t to) {
    const std::vector<T> contents = memory.read(from);
    memory.reserve(to);
    must(cudaMemcpy(memory.at, contents.data(), from * sizeof(T), cudaMemcpyHostToDevice));
  }
  void grow(const std::vector<uint32_t> &found) {
    ++grown;
    std::vector<unsigned long long> end = ends.read(2);
    end[0] = std::min<unsigned long long>(end[0], key_room);
    end[1] = std::min<unsigned long long>(end[1], value_room);
    must(cudaMemcpy(ends.at, end.data(), 16, cudaMemcpyHostToDevice));
    if (found[table_full]) {
      enlarge(cells, size_t(columns) * rows, size_t(columns) * rows * 2);
      rows *= 2;
    }
    if (found[keys_full]) {
      enlarge(keys, key_room, 2 * key_room);
      key_room *= 2;
    }
    if (found[values_full]) {
      enlarge(values, value_room, 2 * value_room);
      value_room *= 2;
    }
  }

  Memory<Cell> cells;
  Memory<uint32_t> used, locks, values, state, progress;
  Memory<char> keys;
  Memory<unsigned long long> ends;
  uint32_t columns = 0, rows = 0;
  uint64_t key_room = 0, value_room = 0;
  bool values_there = true;
};

// One pass of MapReduce.
template <class Program> class Pass {
public:
  Memory<Group> groups;
  uint32_t count = 0;
  bool small = false;
  const char *keys() { return last->space().keys; }
  int grown() const { return regions.grown + merged.grown; }

  void run(Clock &clock, Cub &cub, const Program &program, double factor) {
    const Metrics found = monitored(clock, program);
    regions.grown = merged.grown = 0;
    small = Program::has_values && found.distinct < few_keys;
    regions.prepare(scaled(found, training * factor), Program::has_values);
    regions.map(clock, "map", program, small ? 4 * processors() : 0);
    last = &regions;
    if (small) {
      const unsigned long long distinct = training * found.distinct + 1;
      merged.prepare({pairs_of_column * distinct, distinct * (found.key_bytes / std::max(found.pairs, 1ull) + 1), distinct * list_size * sizeof(uint32_t), distinct}, true);
      merged.map(clock, "merge", Clusters{regions.space()}, 0);
      last = &merged;
    }
    const Space space = last->space();
    clock.phase("reduce", [&] { launch_each(reduce_cells, space.columns, space); });
    clock.phase("merge", [&] { cub.exclusive_sum(space.used, places.reserve(space.columns), space.columns); });
    count = places.read_at(space.columns - 1);
    uint32_t top;
    must(cudaMemcpy(&top, space.used + space.columns - 1, sizeof top, cudaMemcpyDeviceToHost));
    count += top;
    clock.phase("merge", [&] { launch_each(merge_cells, space.columns, space, places.at, groups.reserve(count)); });
  }

  void sort(Clock &clock) {
    const uint32_t room = power_of_two(count);
    clock.phase("sort", [&] { launch(sort_pointers, 1, 1024, 0, groups.at, keys(), count, room, pointers.reserve(room), sorted.reserve(count)); });
    std::swap(groups.at, sorted.at);
    std::swap(groups.room, sorted.room);
  }

private:
  Metrics monitored(Clock &clock, const Program &program) {
    const uint32_t tasks = (program.tasks() + training - 1) / training;
    clock.phase("monitor", [&] {
      launch_each(monitor<Program>, tasks, program, tasks, bitmap.zeros(bitmap_bits / 32), metrics.zeros(1));
      launch_each(count_bits, bitmap_bits / 32, bitmap.at, metrics.at);
    });
    return metrics.read_at(0);
  }
  static Metrics scaled(const Metrics &m, double factor) {
    const auto scale = [&](unsigned long long number) { return static_cast<unsigned long long>(number * factor); };
    return {scale(m.pairs), scale(m.key_bytes), scale(m.value_bytes), scale(m.distinct)};
  }

  Regions regions, merged;
  Regions *last = nullptr;
  Memory<uint32_t> bitmap, places, pointers;
  Memory<Metrics> metrics;
  Memory<Group> sorted;
};

inline std::string engine_of(bool small, int grown) {
  return std::string("\"engine\": \"") + (small ? "small" : "default") + "\", \"overflows\": " + std::to_string(grown) + ", ";
}

template <class Program> void measure_pass(int runs, const Input &input, const Program &program, bool sorted, double factor) {
  Pass<Program> pass;
  Cub cub;
  Delivery delivery;
  const auto run = [&](Clock &clock) {
    pass.run(clock, cub, program, factor);
    if (sorted) pass.sort(clock);
    delivery.run(clock, cub, pass.groups.at, pass.keys(), pass.count);
  };
  measure(runs, input, run, [&] { return delivery.checksum(); }, [&] { return engine_of(pass.small, pass.grown()); });
}

int main(int argc, char **argv) {
  if (argc != 4 && argc != 5) return 2;
  const std::string kind = argv[1];
  const int runs = std::atoi(argv[3]);
  const double factor = argc == 5 ? std::atof(argv[4]) : 1;
  const Input input = open_input(argv[2]);
  if (input.size >= 1ull << 32) fail(argv[2], "is too large");
  const OfText text = {input.text, static_cast<uint32_t>(input.size)};
  if (kind == "words") measure_pass(runs, input, Words{text}, false, factor);
  else if (kind == "histogram") measure_pass(runs, input, Shades{text}, true, factor);
  else if (kind == "grep") measure_pass(runs, input, Errors{text}, false, factor);
  else if (kind == "matrix") measure_product(runs, input);
  else if (kind == "pages") {
    Pass<Visits> visits;
    Pass<Urls> urls;
    Cub cub;
    Delivery delivery;
    const auto run = [&](Clock &clock) {
      visits.run(clock, cub, Visits{text}, factor);
      urls.run(clock, cub, Urls{visits.groups.at, visits.keys(), visits.count}, factor);
      delivery.run(clock, cub, urls.groups.at, urls.keys(), urls.count);
    };
    measure(runs, input, run, [&] { return delivery.checksum(); }, [&] { return engine_of(urls.small, visits.grown() + urls.grown()); });
  } else
    return 2;
}
