// The programs of benchmark/mapreduce.rb as one would write them by hand for a GPU, without a framework.
//
//     nvcc -O3 -std=c++17 --fmad=false -arch=native by_hand.cu -o by_hand && ./by_hand words|histogram|pages|grep|matrix FILE RUNS
//
// Tables are open addressing without locks. A key is one word of 64 bits that a compare-and-swap publishes: a short key
// itself, or where a longer one begins in the text, and a fingerprint of its hash. Bytes of equal fingerprints are
// compared. A key ends before white space, or at the end of the text. Blocks count in tables in shared memory first,
// and add these to tables in global memory at their end.
#include "common.cuh"

extern __shared__ uint4 shared_memory[];

struct Table {
  uint64_t *keys; // 0: a free slot
  uint32_t *counts;
  uint32_t mask;
};

// 8 bytes at any place, of memory that begins at a multiple of 4.
__device__ inline uint64_t load8(const uint32_t *bytes, uint32_t at) {
  const uint32_t *words = bytes + at / 4, shift = at % 4 * 8;
  return __funnelshift_r(words[0], words[1], shift) | uint64_t(__funnelshift_r(words[1], words[2], shift)) << 32;
}
__device__ inline uint64_t first_bytes(uint64_t word, uint32_t count) { return count >= 8 ? word : word & ((1ull << 8 * count) - 1); }

__device__ inline uint64_t hash_of(const uint32_t *bytes, uint32_t at, uint32_t size) {
  uint64_t hash = size;
  for (uint32_t i = 0; i < size; i += 8) hash = mix(hash ^ first_bytes(load8(bytes, at + i), size - i));
  return hash;
}

struct Text {
  const char *bytes;
  uint32_t size;
  __device__ const uint32_t *words() const { return reinterpret_cast<const uint32_t *>(bytes); }
  __device__ bool ends(uint32_t at) const { return at >= size || is_space(bytes[at]); }
  __device__ bool equal(uint32_t one, uint32_t other, uint32_t count) const {
    for (uint32_t i = 0; i < count; i += 8)
      if (first_bytes(load8(words(), one + i) ^ load8(words(), other + i), count - i)) return false;
    return ends(one + count);
  }
  // The next space, which exists.
  __device__ uint32_t space_from(uint32_t at) const {
    for (;; at += 8) {
      const uint64_t zero = load8(words(), at) ^ 0x2020202020202020ull, found = (zero - 0x0101010101010101ull) & ~zero & 0x8080808080808080ull;
      if (found) return at + (__ffsll(found) - 1) / 8;
    }
  }
};

constexpr uint32_t nowhere = ~0u, near = 4, far = 128;

// The slot of a key, or nowhere after so many tries. `is_new` is set where this call inserted it.
template <class Same> __device__ uint32_t slot_of(const Table &table, uint64_t key, uint32_t hash, uint32_t tries, Same same, bool &is_new) {
  for (uint32_t at = hash & table.mask; tries > 0; --tries, at = (at + 1) & table.mask) {
    uint64_t known = *reinterpret_cast<volatile uint64_t *>(&table.keys[at]);
    if (!known) {
      known = atomicCAS(reinterpret_cast<unsigned long long *>(&table.keys[at]), 0ull, static_cast<unsigned long long>(key));
      is_new = !known;
      if (is_new) return at;
    }
    if (same(known)) return at;
  }
  return nowhere;
}
template <class Same> __device__ bool count(const Table &table, uint64_t key, uint32_t hash, uint32_t amount, uint32_t tries, Same same) {
  bool is_new;
  const uint32_t at = slot_of(table, key, hash, tries, same, is_new);
  if (at != nowhere) atomicAdd(&table.counts[at], amount);
  return at != nowhere;
}

// Keys of up to 7 bytes: the bytes, and their number in the upper byte.
struct Short {
  uint64_t key;
  __device__ bool operator()(uint64_t known) const { return known == key; }
};
// Other keys: the upper half of the hash, and the place.
struct Long {
  Text text;
  uint64_t key;
  uint32_t size;
  __device__ Long(const Text &text, uint64_t hash, uint32_t at, uint32_t size) : text(text), key((hash >> 32 | 1) << 32 | at), size(size) {}
  __device__ bool operator()(uint64_t known) const { return known >> 32 == key >> 32 && text.equal(uint32_t(known), uint32_t(key), size); }
};

// Adds to the block's table, or to that of all blocks.
template <class Same> __device__ void count_in(const Table &own, const Table &all, const Same &same, uint32_t hash, uint32_t amount, uint32_t *full) {
  if (!count(own, same.key, hash, amount, near, same) && !count(all, same.key, hash, amount, far, same)) *full = 1;
}

constexpr uint32_t threads = 1024, tile = 16 * threads, margin = 32;

struct Tile {
  uint32_t bytes[(tile + margin + 16) / 4];
  uint16_t ends[(tile + margin) / 16 + 2]; // a bit for each byte
  uint16_t starts[tile / 2];
  uint32_t count;
};

// A bit for each of 16 bytes at a place: whether it ends keys or lines. The text ends with these.
template <class Ends> __device__ uint32_t ends_of(const uint4 &bytes, int64_t left, Ends ends) {
  const uint32_t words[4] = {bytes.x, bytes.y, bytes.z, bytes.w};
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) mask |= (ends(static_cast<unsigned char>(words[i / 4] >> i % 4 * 8)) || i >= left ? 1u : 0u) << i;
  return mask;
}

// Calls work(t, place) for each place in the text where a word or line begins, a block for tile after tile. Threads of
// a block take the places in turn.
template <class Ends, class Work> __device__ void each_start(const Text &text, Tile &t, Ends ends, Work work) {
  for (uint64_t base = uint64_t(blockIdx.x) * tile; base < text.size; base += uint64_t(gridDim.x) * tile) {
    for (uint32_t i = threadIdx.x; i < (tile + margin) / 16; i += threads) {
      const uint64_t at = base + 16 * i;
      const uint4 bytes = at < text.size ? *reinterpret_cast<const uint4 *>(text.bytes + at) : make_uint4(0, 0, 0, 0);
      reinterpret_cast<uint4 *>(t.bytes)[i] = bytes;
      t.ends[i] = static_cast<uint16_t>(ends_of(bytes, int64_t(text.size) - int64_t(at), ends));
    }
    if (threadIdx.x == 0) t.count = 0;
    __syncthreads();
    const uint32_t own = t.ends[threadIdx.x];
    const uint32_t before = threadIdx.x ? t.ends[threadIdx.x - 1] >> 15 : base == 0 || ends(static_cast<unsigned char>(text.bytes[base - 1]));
    uint32_t starts = ~own & (own << 1 | before) & 0xffff;
    const uint32_t lane = threadIdx.x % 32, found = __popc(starts);
    uint32_t place = found;
    for (uint32_t step = 1; step < 32; step *= 2) {
      const uint32_t other = __shfl_up_sync(~0u, place, step);
      if (lane >= step) place += other;
    }
    uint32_t first = lane == 31 ? atomicAdd(&t.count, place) : 0;
    first = __shfl_sync(~0u, first, 31);
    for (place += first - found; starts; starts &= starts - 1) t.starts[place++] = static_cast<uint16_t>(16 * threadIdx.x + __ffs(starts) - 1);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < t.count; i += threads) work(t, uint32_t(base), uint32_t(t.starts[i]));
    __syncthreads();
  }
}

// Tables in shared memory behind the tile, which the block clears and adds to tables of all blocks.
__device__ Table in_shared(uint32_t skipped, uint32_t slots) {
  char *at = reinterpret_cast<char *>(shared_memory) + sizeof(Tile) + 8 - sizeof(Tile) % 8 + skipped * 12;
  const Table table = {reinterpret_cast<uint64_t *>(at), reinterpret_cast<uint32_t *>(at + 8 * slots), slots - 1};
  for (uint32_t i = threadIdx.x; i < slots; i += threads) table.keys[i] = table.counts[i] = 0;
  return table;
}
constexpr size_t shared_bytes(uint32_t slots) { return sizeof(Tile) + 8 + slots * 12; }

constexpr uint32_t short_slots = 4096, long_slots = 1024, url_slots = 4096;

struct WordEnds {
  __device__ bool operator()(unsigned char c) const { return is_space(c); }
};
struct LineEnds {
  __device__ bool operator()(unsigned char c) const { return c == '\n'; }
};

__device__ uint32_t hash_of_short(uint64_t key) { return uint32_t((key ^ key >> 29) * 0x9e3779b97f4a7c15ull >> 32); }

__global__ void __launch_bounds__(threads) count_words(Text text, Table shorts, Table longs, uint32_t *full) {
  Tile &t = *reinterpret_cast<Tile *>(shared_memory);
  const Table own_shorts = in_shared(0, short_slots), own_longs = in_shared(short_slots, long_slots);
  __syncthreads();
  each_start(text, t, WordEnds(), [&](const Tile &t, uint32_t base, uint32_t start) {
    const uint32_t *ends = reinterpret_cast<const uint32_t *>(t.ends) + start / 32;
    const uint64_t behind = (ends[0] | uint64_t(ends[1]) << 32) >> start % 32;
    uint32_t size = behind ? __ffsll(behind) - 1 : 64 - start % 32;
    if (size < 8) {
      const Short same = {first_bytes(load8(t.bytes, start), size) | uint64_t(size) << 56};
      return count_in(own_shorts, shorts, same, hash_of_short(same.key), 1, full);
    }
    if (!behind)
      while (!text.ends(base + start + size)) ++size;
    const uint64_t hash = behind ? hash_of(t.bytes, start, size) : hash_of(text.words(), base + start, size);
    count_in(own_longs, longs, Long(text, hash, base + start, size), uint32_t(hash), 1, full);
  });
  for (uint32_t i = threadIdx.x; i < short_slots; i += threads) {
    const Short same = {own_shorts.keys[i]};
    if (same.key && !count(shorts, same.key, hash_of_short(same.key), own_shorts.counts[i], far, same)) *full = 1;
  }
  for (uint32_t i = threadIdx.x; i < long_slots; i += threads) {
    const uint32_t at = uint32_t(own_longs.keys[i]);
    if (!own_longs.keys[i]) continue;
    uint32_t size = 8;
    while (!text.ends(at + size)) ++size;
    const uint64_t hash = hash_of(text.words(), at, size);
    const Long same(text, hash, at, size);
    if (!count(longs, same.key, uint32_t(hash), own_longs.counts[i], far, same)) *full = 1;
  }
}

// Lines are "URL IP COOKIE". Who finds a new "URL IP" counts the URL.
__global__ void __launch_bounds__(threads) count_pages(Text text, Table visits, Table urls, uint32_t *full) {
  Tile &t = *reinterpret_cast<Tile *>(shared_memory);
  const Table own = in_shared(0, url_slots);
  __syncthreads();
  each_start(text, t, LineEnds(), [&](const Tile &, uint32_t base, uint32_t start) {
    const uint32_t at = base + start, url = text.space_from(at), ip = text.space_from(url + 1);
    const uint64_t hash = hash_of(text.words(), at, ip - at);
    const Long same(text, hash, at, ip - at);
    bool is_new = false;
    if (slot_of(visits, same.key, uint32_t(hash), far, same, is_new) == nowhere) *full = 1;
    if (!is_new) return;
    const uint64_t hash_of_url = hash_of(text.words(), at, url - at);
    count_in(own, urls, Long(text, hash_of_url, at, url - at), uint32_t(hash_of_url), 1, full);
  });
  for (uint32_t i = threadIdx.x; i < url_slots; i += threads) {
    const uint32_t at = uint32_t(own.keys[i]);
    if (!own.keys[i]) continue;
    const uint32_t size = text.space_from(at) - at;
    const uint64_t hash = hash_of(text.words(), at, size);
    const Long same(text, hash, at, size);
    if (!count(urls, same.key, uint32_t(hash), own.counts[i], far, same)) *full = 1;
  }
}

// The first words of lines that / 5\d\d / matches. A thread for 16 bytes. The first match in a line counts.
__global__ void grep_lines(Text text, Table table, uint32_t *full) {
  const uint64_t base = 16 * (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x);
  if (base >= text.size) return;
  const uint4 bytes = *reinterpret_cast<const uint4 *>(text.bytes + base);
  const uint32_t words[5] = {bytes.x, bytes.y, bytes.z, bytes.w, *reinterpret_cast<const uint32_t *>(text.bytes + base + 16)};
  for (int i = 0; i < 16; ++i) {
    const uint32_t two = __funnelshift_r(words[i / 4], words[i / 4 + 1], i % 4 * 8) & 0xffff, at = uint32_t(base) + i;
    if (two != (' ' | '5' << 8) || !is_error(text.bytes + at)) continue;
    uint32_t line = at;
    while (line > 0 && text.bytes[line - 1] != '\n') --line;
    uint32_t first = line;
    while (!is_error(text.bytes + first)) ++first;
    if (first != at) continue;
    const uint32_t size = text.space_from(line) - line;
    const uint64_t hash = hash_of(text.words(), line, size);
    const Long same(text, hash, line, size);
    if (!count(table, same.key, uint32_t(hash), 1, far, same)) *full = 1;
  }
}

constexpr uint32_t bins = 768, copies = 8;

// A thread takes 48 bytes at a time: 16 pixels. Neighbouring threads count in different copies.
__global__ void __launch_bounds__(512) count_shades(const char *bytes, uint64_t size, uint32_t *counts) {
  uint32_t *own = reinterpret_cast<uint32_t *>(shared_memory);
  for (uint32_t i = threadIdx.x; i < bins * copies; i += blockDim.x) own[i] = 0;
  __syncthreads();
  const uint32_t copy = threadIdx.x % copies;
  const uint64_t parts = size / 48, step = uint64_t(gridDim.x) * blockDim.x, first = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (uint64_t part = first; part < parts; part += step) {
    const uint4 *from = reinterpret_cast<const uint4 *>(bytes) + 3 * part;
    const uint4 v[3] = {from[0], from[1], from[2]};
    const uint32_t words[12] = {v[0].x, v[0].y, v[0].z, v[0].w, v[1].x, v[1].y, v[1].z, v[1].w, v[2].x, v[2].y, v[2].z, v[2].w};
#pragma unroll
    for (int i = 0; i < 48; ++i) atomicAdd(&own[(i % 3 * 256 + (words[i / 4] >> i % 4 * 8 & 255)) * copies + copy], 1u);
  }
  for (uint64_t at = 48 * parts + first; at < size; at += step) atomicAdd(&own[(at % 3 * 256 + static_cast<unsigned char>(bytes[at])) * copies + copy], 1u);
  __syncthreads();
  for (uint32_t bin = threadIdx.x; bin < bins; bin += blockDim.x) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < copies; ++i) sum += own[bin * copies + i];
    if (sum) atomicAdd(&counts[bin], sum);
  }
}

__global__ void multiply(const double *a, const double *b, double *product, uint32_t side) {
  const uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= uint64_t(side) * side) return;
  const uint64_t y = at / side, x = at % side;
  double sum = 0;
  for (uint32_t k = 0; k < side; ++k) sum += a[y * side + k] * b[uint64_t(k) * side + x];
  product[at] = sum;
}

struct Entry {
  uint64_t key;
  uint64_t count;
};

// Puts the used slots side by side.
__global__ void gather(Table table, Entry *entries, uint32_t *used) {
  const uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  const bool here = at <= table.mask && table.keys[at];
  const uint32_t votes = __ballot_sync(~0u, here), lane = threadIdx.x % 32;
  uint32_t first = lane == 0 && votes ? atomicAdd(used, __popc(votes)) : 0;
  first = __shfl_sync(~0u, first, 0);
  if (here) entries[first + __popc(votes & ((1u << lane) - 1))] = {table.keys[at], table.counts[at]};
}

// A table in global memory, which grows by a further run where it is full.
struct Global {
  uint32_t slots;
  Memory<uint64_t> keys;
  Memory<uint32_t> counts;
  Table zeros() { return {keys.zeros(slots), counts.zeros(slots), slots - 1}; }
};

struct Program {
  Input input;
  Global tables[2];
  Memory<uint32_t> words; // whether a table is full, and the number of entries
  Memory<Entry> entries;
  Host<Entry> found;
  uint32_t used = 0;

  Text text() const { return {input.text, static_cast<uint32_t>(input.size)}; }

  // Runs `work(tables, full)`, and gathers the last `gathered` tables.
  template <class Work> void run(Clock &clock, int gathered, Work work) {
    for (;;) {
      clock.phase("kernel", [&] {
        uint32_t *state = words.zeros(2);
        const Table both[2] = {tables[0].zeros(), tables[1].zeros()};
        work(both, state);
        entries.reserve(size_t(tables[0].slots) + tables[1].slots);
        for (int i = 2 - gathered; i < 2; ++i) launch_each(gather, tables[i].slots, both[i], entries.at, state + 1);
      });
      const std::vector<uint32_t> state = words.read(2);
      used = state[1];
      if (!state[0]) break;
      for (Global &table : tables) table.slots *= 4;
    }
    found.copy(entries.at, used);
  }

  // Short keys have their size in the upper byte, long ones a fingerprint, whose tables come second: they are told by
  // their table.
  Checksum checksum(uint32_t shorts) const {
    Checksum sum = {0, 0, 0};
    for (uint32_t i = 0; i < used; ++i) {
      const Entry &entry = found.at[i];
      if (i < shorts) {
        add_entry(&sum, &entry.key, entry.key >> 56, entry.count);
        continue;
      }
      const uint32_t at = static_cast<uint32_t>(entry.key);
      uint32_t size = 0;
      while (at + size < input.size && !is_space(input.host[at + size])) ++size;
      add_entry(&sum, input.host + at, size, entry.count);
    }
    return sum;
  }
};

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  const std::string kind = argv[1];
  const int runs = std::atoi(argv[3]);
  Program program = {open_input(argv[2])};
  if (program.input.size >= 1ull << 32) fail(argv[2], "is too large");
  const Text text = program.text();
  const uint64_t tiles = (program.input.size + tile - 1) / tile, blocks = std::min<uint64_t>(2 * processors(), tiles);

  if (kind == "words") {
    program.tables[0].slots = 1 << 20;
    program.tables[1].slots = 1 << 18;
    const size_t shared = shared_bytes(short_slots + long_slots);
    must(cudaFuncSetAttribute(count_words, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
    uint32_t shorts = 0;
    const auto run = [&](Clock &clock) {
      program.run(clock, 2, [&](const Table *tables, uint32_t *full) { launch(count_words, blocks, threads, shared, text, tables[0], tables[1], full); });
    };
    // Entries of the first table come first, as its kernel ends before the next one begins.
    const auto checksum = [&] {
      for (uint64_t key : program.tables[0].keys.read(program.tables[0].slots)) shorts += key != 0;
      return program.checksum(shorts);
    };
    measure(runs, program.input, run, checksum);
  } else if (kind == "pages") {
    program.tables[0].slots = 1 << 21;
    program.tables[1].slots = 1 << 16;
    const size_t shared = shared_bytes(url_slots);
    must(cudaFuncSetAttribute(count_pages, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
    const auto run = [&](Clock &clock) {
      program.run(clock, 1, [&](const Table *tables, uint32_t *full) { launch(count_pages, blocks, threads, shared, text, tables[0], tables[1], full); });
    };
    measure(runs, program.input, run, [&] { return program.checksum(0); });
  } else if (kind == "grep") {
    program.tables[0].slots = 32;
    program.tables[1].slots = 1 << 16;
    const auto run = [&](Clock &clock) {
      program.run(clock, 1, [&](const Table *tables, uint32_t *full) { launch_each(grep_lines, (program.input.size + 15) / 16, text, tables[1], full); });
    };
    measure(runs, program.input, run, [&] { return program.checksum(0); });
  } else if (kind == "histogram") {
    Memory<uint32_t> counts;
    Host<uint32_t> found;
    const auto run = [&](Clock &clock) {
      const uint64_t size = program.input.size / 3 * 3, needed = (size / 48 + 511) / 512 + 1;
      clock.phase("kernel", [&] {
        counts.zeros(bins);
        launch(count_shades, std::min<uint64_t>(4 * processors(), needed), 512, bins * copies * 4, static_cast<const char *>(text.bytes), size, counts.at);
      });
      found.copy(counts.at, bins);
    };
    measure(runs, program.input, run, [&] {
      Checksum sum = {0, 0, 0};
      for (uint32_t key = 0; key < bins; ++key)
        if (found.at[key]) add_entry(&sum, &key, 4, found.at[key]);
      return sum;
    });
  } else if (kind == "matrix") {
    const size_t side = side_of(program.input);
    Memory<double> product;
    Host<double> found;
    const double *a = reinterpret_cast<const double *>(program.input.text);
    const auto run = [&](Clock &clock) {
      product.reserve(side * side);
      clock.phase("kernel", [&] { launch_each(multiply, side * side, a, a + side * side, product.at, static_cast<uint32_t>(side)); });
      found.copy(product.at, side * side);
    };
    measure(runs, program.input, run, [&] { return checksum_of_product(found.at, side); });
  } else
    return 2;
}
