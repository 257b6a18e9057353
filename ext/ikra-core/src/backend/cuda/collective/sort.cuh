// Radix sort, stable, from the least digit of 8 bits to the greatest. One kernel counts all digits of all keys. Then
// each digit is one pass that reads and writes each key once (Onesweep, Adinets and Merrill).
//
// From the first pass to the last, keys are unsigned words that compare as the numbers do (`coded`), so passes only
// work on bits. Floats have two such codes. The exact one is decoded at the end: -0.0 comes before 0.0, and NaNs come
// after all numbers, in the order of their bits. In the other code both zeroes are one key, and all NaNs are one. These
// keep their order, but the keys lose their signs and bits.

const u32 BINS = 256;
const u32 DIGIT = 8;

// ---- Keys ----

template <class U> INLINE U top_bit() { return U(U(1) << (sizeof(U) * 8 - 1)); }

template <class T> struct Unsigned { typedef u64 Type; };
template <> struct Unsigned<u8> { typedef u8 Type; };
template <> struct Unsigned<u32> { typedef u32 Type; };
template <> struct Unsigned<i32> { typedef u32 Type; };
template <> struct Unsigned<f32> { typedef u32 Type; };

template <class T, bool EXACT> struct Coding {
  typedef typename Unsigned<T>::Type Key;
  MEMBER Key coded(Key bits) { return bits; }
  MEMBER Key decoded(Key key) { return key; }
};
template <class Key_> struct SignedCoding {
  typedef Key_ Key;
  MEMBER Key coded(Key bits) { return bits ^ top_bit<Key>(); }
  MEMBER Key decoded(Key key) { return key ^ top_bit<Key>(); }
};
template <bool EXACT> struct Coding<i32, EXACT> : SignedCoding<u32> {};
template <bool EXACT> struct Coding<i64, EXACT> : SignedCoding<u64> {};
template <class Key_, u64 INFINITE, bool EXACT> struct FloatCoding {
  typedef Key_ Key;
  // Negative infinity is 0. Negative NaNs, which would be less, wrap around to the end.
  MEMBER Key least() { return Key(~(Key(INFINITE) | top_bit<Key>())); }
  MEMBER Key coded(Key bits) {
    if (!EXACT) {
      const Key size = bits & Key(~top_bit<Key>());
      if (size == 0) bits = 0;
      if (size > Key(INFINITE)) bits = Key(~top_bit<Key>());
    }
    return (bits & top_bit<Key>() ? Key(~bits) : Key(bits ^ top_bit<Key>())) - least();
  }
  MEMBER Key decoded(Key key) {
    key += least();
    return key & top_bit<Key>() ? Key(key ^ top_bit<Key>()) : Key(~key);
  }
};
template <bool EXACT> struct Coding<f32, EXACT> : FloatCoding<u32, 0x7f800000ull, EXACT> {};
template <bool EXACT> struct Coding<f64, EXACT> : FloatCoding<u64, 0x7ff0000000000000ull, EXACT> {};

template <bool DESCENDING, class Key> INLINE u32 digit_of(Key key, u32 shift) {
  return u32((DESCENDING ? Key(~key) : key) >> shift) % BINS;
}

// ---- Counting all digits of all keys ----

struct CountArgs {
  const void *keys;
  u64 count;
  // For each digit, how many keys have each of its values; 0 before the launch.
  u64 *bins;
};

template <class T, bool DESCENDING, bool EXACT> INLINE void count_digits(const CountArgs &args) {
  typedef Coding<T, EXACT> Code;
  typedef typename Code::Key Key;
  const u32 DIGITS = sizeof(Key);
  __shared__ u32 bins[DIGITS * BINS];
  for (u32 i = threadIdx.x; i < DIGITS * BINS; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  const Key *keys = (const Key *)args.keys;
  const u64 step = u64(gridDim.x) * blockDim.x;
  const u32 AHEAD_KEYS = 4;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += AHEAD_KEYS * step) {
    Key key[AHEAD_KEYS];
#pragma unroll
    for (u32 k = 0; k < AHEAD_KEYS; k++)
      if (i + k * step < args.count) key[k] = Code::coded(__ldg(keys + i + k * step));
#pragma unroll
    for (u32 k = 0; k < AHEAD_KEYS; k++) {
      if (i + k * step >= args.count) break;
#pragma unroll
      for (u32 d = 0; d < DIGITS; d++) atomicAdd(&bins[d * BINS + digit_of<DESCENDING>(key[k], d * DIGIT)], 1u);
    }
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < DIGITS * BINS; i += blockDim.x)
    if (bins[i]) atomicAdd(args.bins + i, u64(bins[i]));
}

// Computes for each value of each digit how many keys have lesser values, with a block of 256 threads for each digit.
struct StartArgs {
  u64 *bins;
};

template <class S> INLINE u64 block_exclusive(u64 mine, S *warps) {
  u64 sum = mine;
#pragma unroll
  for (u32 delta = 1; delta < WARP; delta *= 2) {
    const u64 left = __shfl_up_sync(ALL, sum, delta);
    if (lane_id() >= delta) sum += left;
  }
  if (lane_id() == WARP - 1) warps[warp_id()] = S(sum);
  __syncthreads();
  for (u32 w = 0; w < warp_id(); w++) sum += warps[w];
  return sum - mine;
}

INLINE void start_digits(const StartArgs &args) {
  __shared__ u64 warps[BINS / WARP];
  u64 *bin = args.bins + blockIdx.x * BINS + threadIdx.x;
  *bin = block_exclusive(*bin, warps);
}

// ---- One pass ----

// The lanes whose digit is this one.
INLINE u32 lanes_with(u32 digit) {
#ifdef __CUDA_ARCH__
  // faster than __match_any_sync
  u32 same = ALL;
#pragma unroll
  for (u32 bit = 0; bit < DIGIT; bit++) {
    const bool set = digit >> bit & 1;
    const u32 votes = __ballot_sync(ALL, set);
    same &= set ? votes : ~votes;
  }
  return same;
#else
  return __match_any_sync(ALL, digit);
#endif
}

struct PassArgs {
  const void *keys;
  void *sorted;
  // Null: there are none, or they are the indices of the keys.
  const u32 *values;
  u32 *sorted_values;
  u64 count;
  // The starts of this digit's bins.
  const u64 *starts;
  // For each tile and value of the digit, the word of `own_count` or `whole_count`; 0 before the launch.
  void *seen;
  u32 *next;
  alignas(8) u32 shift;
  alignas(8) u32 first_pass;
  alignas(8) u32 last_pass;
};

enum Values { NO_VALUES = 0, VALUES = 1, INDICES = 2 };

// The word that a tile publishes for a bin: its own count, or the count of it and all tiles before. The two highest
// bits say which.
template <class W> INLINE W own_count(u64 count) { return W(count) | top_bit<W>() >> 1; }
template <class W> INLINE W whole_count(u64 count) { return W(count) | top_bit<W>(); }
template <class W> INLINE u64 counted(W shown) { return shown & ((top_bit<W>() >> 1) - 1); }

template <class Code, bool DESCENDING, u32 THREADS, u32 ITEMS, int VALUED, class W> struct SortPass {
  typedef typename Code::Key Key;
  static const u32 TILE_KEYS = THREADS * ITEMS;
  static const u32 WARPS = THREADS / WARP;
  union Exchange {
    u32 ranks[WARPS * BINS];
    Key keys[TILE_KEYS];
    u32 values[TILE_KEYS];
  };
  struct Shared {
    Exchange exchange;
    // For each value of the digit, where the tile's keys go, less their ranks, modulo the width of the word.
    W targets[BINS];
    u32 warps[BINS / WARP];
    u32 tile;
  };

  // FULL: the tile has all keys.
  template <bool FULL> MEMBER void run(const PassArgs &args, Shared &shared, u32 tile, u32 count) {
    Exchange &exchange = shared.exchange;
    const u64 first = u64(tile) * TILE_KEYS;
    const u32 own = warp_id() * WARP * ITEMS + lane_id();
    u32 *ranks = exchange.ranks + warp_id() * BINS;

    // places behind the end sort after all keys of the last bin, and are not written
    Key key[ITEMS];
    const Key *keys = (const Key *)args.keys + first;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) key[i] = FULL || own + i * WARP < count ? keys[own + i * WARP] : Key(0);
    if (args.first_pass) {
#pragma unroll
      for (u32 i = 0; i < ITEMS; i++) key[i] = Code::coded(key[i]);
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const u32 digit = FULL || own + i * WARP < count ? digit_of<DESCENDING>(key[i], args.shift) : BINS - 1;
      atomicAdd(&ranks[digit], 1u);
    }
    __syncthreads();

    // One thread for each bin: it sums the counts of earlier warps, and publishes the tile's count, for which later
    // tiles wait.
    const u32 bin = threadIdx.x;
    u32 in_tile = 0;
    W *seen = (W *)args.seen + u64(tile) * BINS + bin;
    if (bin < BINS) {
#pragma unroll
      for (u32 w = 0; w < WARPS; w++) {
        const u32 here = exchange.ranks[w * BINS + bin];
        exchange.ranks[w * BINS + bin] = in_tile;
        in_tile += here;
      }
      *(volatile W *)seen = tile == 0 ? whole_count<W>(in_tile) : own_count<W>(in_tile);
    }
    u32 before = 0;
    if (bin < BINS) {
      u32 sum = in_tile;
#pragma unroll
      for (u32 delta = 1; delta < WARP; delta *= 2) {
        const u32 left = __shfl_up_sync(ALL, sum, delta);
        if (lane_id() >= delta) sum += left;
      }
      if (lane_id() == WARP - 1) shared.warps[warp_id()] = sum;
      before = sum - in_tile;
    }
    __syncthreads();
    if (bin < BINS) {
      for (u32 w = 0; w < warp_id(); w++) before += shared.warps[w];
#pragma unroll
      for (u32 w = 0; w < WARPS; w++) exchange.ranks[w * BINS + bin] += before;
    }
    __syncthreads();

    // the place of each key within the tile: behind keys with lesser digits, and earlier keys with the same digit
    u32 rank[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const u32 digit = FULL || own + i * WARP < count ? digit_of<DESCENDING>(key[i], args.shift) : BINS - 1;
      const u32 same = lanes_with(digit);
      const u32 below = same & ((1u << lane_id()) - 1);
      const u32 leader = 31 - u32(__clz(i32(same)));
      u32 base = 0;
      if (lane_id() == leader) {
        base = ranks[digit];
        ranks[digit] = base + u32(__popc(same));
      }
      __syncwarp();
      base = __shfl_sync(ALL, base, leader);
      rank[i] = base + u32(__popc(below));
    }

    // other tiles may have published their counts meanwhile
    if (bin < BINS) {
      u64 earlier = 0;
      for (u32 t = tile; t > 0;) {
        const W shown = *(volatile const W *)((const W *)args.seen + u64(t - 1) * BINS + bin);
        if (shown == 0) continue;
        earlier += counted(shown);
        if (shown & top_bit<W>()) break;
        t--;
      }
      if (tile > 0) *(volatile W *)seen = whole_count<W>(earlier + in_tile);
      shared.targets[bin] = W(args.starts[bin] + earlier - before);
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) exchange.keys[rank[i]] = key[i];
    __syncthreads();
    Key *sorted = (Key *)args.sorted;
    u32 digit[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const u32 at = threadIdx.x + i * THREADS;
      if (FULL || at < count) {
        const Key moved = exchange.keys[at];
        digit[i] = digit_of<DESCENDING>(moved, args.shift);
        sorted[W(shared.targets[digit[i]] + at)] = args.last_pass ? Code::decoded(moved) : moved;
      }
    }
    if (VALUED == NO_VALUES) return;
    u32 value[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const u32 at = own + i * WARP;
      value[i] = VALUED == INDICES && args.first_pass ? u32(first) + at : FULL || at < count ? args.values[first + at] : 0;
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) exchange.values[rank[i]] = value[i];
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
      const u32 at = threadIdx.x + i * THREADS;
      if (FULL || at < count) args.sorted_values[W(shared.targets[digit[i]] + at)] = exchange.values[at];
    }
  }
};

template <class T, bool DESCENDING, bool EXACT, u32 THREADS, u32 ITEMS, int VALUED, class W> INLINE void sort_pass(const PassArgs &args) {
  typedef SortPass<Coding<T, EXACT>, DESCENDING, THREADS, ITEMS, VALUED, W> Pass;
  __shared__ typename Pass::Shared shared;
  if (threadIdx.x == 0) shared.tile = atomicAdd(args.next, 1u);
  for (u32 i = threadIdx.x; i < Pass::WARPS * BINS; i += THREADS) shared.exchange.ranks[i] = 0;
  __syncthreads();
  const u32 tile = shared.tile;
  const u64 left = args.count - u64(tile) * Pass::TILE_KEYS;
  if (left >= Pass::TILE_KEYS) Pass::template run<true>(args, shared, tile, Pass::TILE_KEYS);
  else Pass::template run<false>(args, shared, tile, u32(left));
}
