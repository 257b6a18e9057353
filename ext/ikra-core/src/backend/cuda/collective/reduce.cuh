// Reductions in one pass: each block reduces tiles, and the last block to end reduces the states of all tiles. Elements
// are loaded, or are the results of a program's jobs (emit.rs).
//
// The order is that of backend/collective/mod.rs, whichever block is the last.

const u32 TILE = 8192;
const u32 LANES = 256;
const u32 ROWS = TILE / LANES;
// How many tile states are loaded at a time.
const u32 BATCH = 8;
const u64 NOWHERE = ~0ull;

template <class T> struct Wide { typedef i64 Type; };
template <> struct Wide<f64> { typedef f64 Type; };
template <> struct Wide<f32> { typedef f64 Type; };

// ---- Operations: none, take, merge, and finish, which writes the words that reduce.rs reads ----

template <class T> struct IntSum {
  struct State {
    u64 low;
    i64 high;
  };
  MEMBER State none() { return {0, 0}; }
  MEMBER void plus(State &state, u64 low, i64 high) {
    const u64 sum = state.low + low;
    state.high = add(add(state.high, high), i64(sum < low));
    state.low = sum;
  }
  MEMBER void take(State &state, T x, u64) { plus(state, u64(i64(x)), i64(x) >> 63); }
  MEMBER void merge(State &state, const State &other) { plus(state, other.low, other.high); }
  MEMBER void finish(const State &state, u64 *out) {
    out[0] = state.low;
    out[1] = u64(state.high);
  }
};

template <class T> struct FloatSum {
  typedef Compensated State;
  MEMBER State none() { return {0.0, 0.0}; }
  MEMBER void take(State &state, T x, u64) { add_to(state, f64(x)); }
  MEMBER void merge(State &state, const State &other) { merge_into(state, other); }
  MEMBER void finish(const State &state, u64 *out) { out[0] = u64(float_bits(value_of(state))); }
};

// `over`: the product exceeded 64 bits. Only a factor of 0 makes it fit again, in whatever order.
template <class T> struct IntProduct {
  struct State {
    i64 product;
    u64 over;
  };
  MEMBER State none() { return {1, 0}; }
  MEMBER void merge(State &state, const State &other) {
    const bool zero = (!state.over && state.product == 0) || (!other.over && other.product == 0);
    i64 product;
    const bool over = mul_overflows(state.product, other.product, product) || state.over || other.over;
    state.product = zero || over ? 0 : product;
    state.over = over && !zero;
  }
  MEMBER void take(State &state, T x, u64) { merge(state, {i64(x), 0}); }
  MEMBER void finish(const State &state, u64 *out) {
    out[0] = u64(state.product);
    out[1] = state.over;
  }
};

template <class T> struct FloatProduct {
  struct State {
    f64 product;
  };
  MEMBER State none() { return {1.0}; }
  MEMBER void take(State &state, T x, u64) { state.product *= f64(x); }
  MEMBER void merge(State &state, const State &other) { state.product *= other.product; }
  MEMBER void finish(const State &state, u64 *out) { out[0] = u64(float_bits(canonical(state.product))); }
};

template <class T, bool GREATEST> struct Extreme {
  typedef typename Wide<T>::Type Value;
  struct State {
    u64 index;
    Value value;
    u64 nan;
  };
  MEMBER bool before(Value a, Value b) { return GREATEST ? a > b : a < b; }
  MEMBER State none() { return {NOWHERE, 0, 0}; }
  // indices grow, so the first of equal elements stays
  MEMBER void take(State &state, T element, u64 index) {
    const Value x = element;
    if (x != x) {
      state.nan = 1;
    } else if (state.index == NOWHERE || before(x, state.value)) {
      state.index = index;
      state.value = x;
    }
  }
  MEMBER void merge(State &state, const State &other) {
    state.nan |= other.nan;
    if (other.index == NOWHERE) return;
    const bool wins = state.index == NOWHERE || before(other.value, state.value) ||
                      (!before(state.value, other.value) && other.index < state.index);
    if (wins) {
      state.index = other.index;
      state.value = other.value;
    }
  }
  MEMBER void finish(const State &state, u64 *out) {
    out[0] = state.index;
    out[1] = word(state.value);
    out[2] = state.nan;
  }
};

template <class T> struct BothExtremes {
  typedef Extreme<T, false> Least;
  typedef Extreme<T, true> Greatest;
  struct State {
    typename Least::State least;
    typename Greatest::State greatest;
  };
  MEMBER State none() { return {Least::none(), Greatest::none()}; }
  MEMBER void take(State &state, T x, u64 index) {
    Least::take(state.least, x, index);
    Greatest::take(state.greatest, x, index);
  }
  MEMBER void merge(State &state, const State &other) {
    Least::merge(state.least, other.least);
    Greatest::merge(state.greatest, other.greatest);
  }
  MEMBER void finish(const State &state, u64 *out) {
    Least::finish(state.least, out);
    Greatest::finish(state.greatest, out + 3);
  }
};

template <class T> struct Counting {
  struct State {
    u64 count;
  };
  MEMBER State none() { return {0}; }
  MEMBER void take(State &state, T x, u64) { state.count += x != T(0); }
  MEMBER void merge(State &state, const State &other) { state.count += other.count; }
  MEMBER void finish(const State &state, u64 *out) { out[0] = state.count; }
};

// ---- The kernel ----

struct ReduceArgs {
  const void *in;
  u64 count;
  // One state for each tile.
  void *tiles;
  // The number of blocks that have ended; 0 before and after the launch.
  u32 *ended;
  u64 *out;
};

template <class Op> INLINE void reduce_tiles(const ReduceArgs &args, u64 tiles) {
  typedef typename Op::State State;
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(args.ended, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  State state = Op::none();
  for (u64 tile = threadIdx.x; tile < tiles; tile += BATCH * LANES) {
    // loaded together
    State more[BATCH];
#pragma unroll
    for (u32 i = 0; i < BATCH; i++) {
      const u64 at = tile + i * LANES;
      more[i] = at < tiles ? load_shared_state((const State *)args.tiles + at) : Op::none();
    }
#pragma unroll
    for (u32 i = 0; i < BATCH; i++) Op::merge(state, more[i]);
  }
  state = block_tree<Op, LANES>(state);
  if (threadIdx.x == 0) {
    *args.ended = 0;
    Op::finish(state, args.out);
  }
}

// Takes the results of `job` for the rest of the last tile, from `first` on. FEW rows are loaded at once.
template <class T, class Op, u32 FEW, class Job>
INLINE void take_rest(typename Op::State &state, u64 row, u64 count, const Job &job) {
#pragma unroll 1
  for (; row < count; row += FEW * LANES) {
    T x[FEW];
    bool given[FEW];
#pragma unroll
    for (u32 i = 0; i < FEW; i++) given[i] = row + i * LANES < count && job(row + i * LANES, x[i]);
#pragma unroll
    for (u32 i = 0; i < FEW; i++) {
      if (given[i]) Op::take(state, x[i], row + i * LANES);
    }
  }
}

// Combines the states of a tile's lanes, and stores the result. If there is only one tile, that is the result of the
// reduction.
template <class Op> INLINE void tile_ends(const ReduceArgs &args, u64 tile, u64 tiles, typename Op::State state) {
  state = block_tree<Op, LANES>(state);
  if (threadIdx.x != 0) return;
  if (tiles == 1) Op::finish(state, args.out);
  else store_shared_state((typename Op::State *)args.tiles + tile, state);
}

// Reduces the results of `job` for all indices that have one. AHEAD rows are computed before the first of them is used.
template <class T, class Op, u32 AHEAD, class Job> INLINE void reduce_each(const ReduceArgs &args, const Job &job) {
  typedef typename Op::State State;
  const u64 tiles = (args.count + TILE - 1) / TILE;
  for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    State state = Op::none();
    const u64 first = tile * TILE + threadIdx.x;
    if (job.is_over()) {
      // the launch was stopped, and has no result
    } else if ((tile + 1) * TILE <= args.count) {
#pragma unroll 1
      for (u32 row = 0; row < ROWS; row += AHEAD) {
        T x[AHEAD];
        bool given[AHEAD];
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) given[i] = job(first + (row + i) * LANES, x[i]);
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) {
          if (given[i]) Op::take(state, x[i], first + (row + i) * LANES);
        }
      }
    } else {
      take_rest<T, Op, (AHEAD < 4 ? AHEAD : 4)>(state, first, args.count, job);
    }
    tile_ends<Op>(args, tile, tiles, state);
  }
  if (tiles != 1) reduce_tiles<Op>(args, tiles);
}

// Elements in memory.
template <class T> struct Loaded {
  const T *in;
  INLINE_MEMBER bool operator()(u64 i, T &element) const {
    element = __ldg(in + i);
    return true;
  }
};

template <class T, u32 AHEAD> INLINE void load_rows(T *rows, const T *first) {
#pragma unroll
  for (u32 i = 0; i < AHEAD; i++) rows[i] = __ldg(first + i * LANES);
}

// Reduces elements in memory. While some rows are added, the next rows are being loaded. While the lanes of a tile are
// combined, the first rows of the block's next tile are being loaded. So memory never waits for the arithmetic.
template <class T, class Op> INLINE void reduce_loaded(const ReduceArgs &args, const T *in) {
  typedef typename Op::State State;
  const u32 AHEAD = sizeof(T) == 8 ? 8 : 16;
  const u64 tiles = (args.count + TILE - 1) / TILE, whole = args.count / TILE;
  T next[AHEAD];
  if (blockIdx.x < whole) load_rows<T, AHEAD>(next, in + blockIdx.x * u64(TILE) + threadIdx.x);
  for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    State state = Op::none();
    const u64 first = tile * TILE + threadIdx.x;
    if (tile < whole) {
#pragma unroll 1
      for (u32 row = 0; row < ROWS; row += AHEAD) {
        T x[AHEAD];
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) x[i] = next[i];
        if (row + AHEAD < ROWS) load_rows<T, AHEAD>(next, in + first + (row + AHEAD) * LANES);
        else if (tile + gridDim.x < whole) load_rows<T, AHEAD>(next, in + first + u64(gridDim.x) * TILE);
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) Op::take(state, x[i], first + (row + i) * LANES);
      }
    } else {
      take_rest<T, Op, 4>(state, first, args.count, Loaded<T>{in});
    }
    tile_ends<Op>(args, tile, tiles, state);
  }
  if (tiles != 1) reduce_tiles<Op>(args, tiles);
}

// As `reduce_each`, for jobs whose block first prepares what SIDE neighbours read (`begin`; false: the launch was
// stopped). A tile has several such parts. Each thread takes the same elements, in the same order, as above.
template <class T, class Op, u32 SIDE, class Part> INLINE void reduce_parts(const ReduceArgs &args, Part &part) {
  typedef typename Op::State State;
  const u64 tiles = (args.count + TILE - 1) / TILE;
  for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    State state = Op::none();
    for (u64 from = tile * TILE; from < (tile + 1) * TILE && from < args.count; from += SIDE) {
      if (!part.begin(from)) break;
#pragma unroll 1
      for (u32 cell = threadIdx.x; cell < SIDE && from + cell < args.count; cell += LANES) {
        T x;
        if (part(from, cell, x)) Op::take(state, x, from + cell);
      }
      __syncthreads();
    }
    tile_ends<Op>(args, tile, tiles, state);
  }
  if (tiles != 1) reduce_tiles<Op>(args, tiles);
}

template <class T, class Op> INLINE void reduce(const ReduceArgs &args) {
  reduce_loaded<T, Op>(args, (const T *)args.in);
}
