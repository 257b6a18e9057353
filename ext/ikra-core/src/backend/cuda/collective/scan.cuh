// Scans in one pass: each element becomes the combination of itself and all elements before it.
//
// The order is that of backend/collective/scan.rs. A tile is 15 neighbours for each of 256 threads. The number is odd,
// so that threads that access their own elements use different banks of shared memory.

const u32 SCAN_THREADS = 256;
const u32 SCAN_ITEMS = 15;
const u32 SCAN_TILE = SCAN_THREADS * SCAN_ITEMS;

const u32 OVERFLOWED = 1;
const u32 MET_NAN = 2;

template <class T> struct Total { typedef i64 Type; };
template <> struct Total<f64> { typedef f64 Type; };
template <> struct Total<f32> { typedef f64 Type; };

// ---- Operations: none, take, merge (the left operand comes first), and step, which takes an element, stores the value
// and returns the flags ----

template <class T> struct ScanIntSum {
  typedef i64 Out;
  struct State {
    i64 sum;
  };
  MEMBER State none() { return {0}; }
  MEMBER void take(State &state, T x) { state.sum = add(state.sum, i64(x)); }
  MEMBER void merge(State &state, const State &other) { state.sum = add(state.sum, other.sum); }
  // Sums wrap around. All sums before the first that exceeds 64 bits are exact, so that one is detected.
  MEMBER u32 step(State &state, T x, Out &out) {
    const bool over = add_overflows(state.sum, i64(x), state.sum);
    out = state.sum;
    return over ? OVERFLOWED : 0;
  }
};

template <class T> struct ScanFloatSum {
  typedef f64 Out;
  typedef Compensated State;
  MEMBER State none() { return {0.0, 0.0}; }
  MEMBER void take(State &state, T x) { add_to(state, f64(x)); }
  MEMBER void merge(State &state, const State &other) { merge_into(state, other); }
  MEMBER u32 step(State &state, T x, Out &out) {
    take(state, x);
    out = value_of(state);
    return 0;
  }
};

template <class T> struct ScanIntProduct {
  typedef i64 Out;
  typedef typename IntProduct<T>::State State;
  MEMBER State none() { return {1, 0}; }
  MEMBER void take(State &state, T x) { IntProduct<T>::take(state, x, 0); }
  MEMBER void merge(State &state, const State &other) { IntProduct<T>::merge(state, other); }
  MEMBER u32 step(State &state, T x, Out &out) {
    take(state, x);
    out = state.product;
    return state.over ? OVERFLOWED : 0;
  }
};

template <class T> struct ScanFloatProduct {
  typedef f64 Out;
  struct State {
    f64 product;
  };
  MEMBER State none() { return {1.0}; }
  MEMBER void take(State &state, T x) { state.product *= f64(x); }
  MEMBER void merge(State &state, const State &other) { state.product *= other.product; }
  MEMBER u32 step(State &state, T x, Out &out) {
    take(state, x);
    out = canonical(state.product);
    return 0;
  }
};

// A NaN is skipped. Before the first number, the value is NaN.
template <class T, bool GREATEST> struct ScanExtreme {
  typedef T Out;
  typedef typename Wide<T>::Type Value;
  struct State {
    Value value;
    u64 some;
  };
  MEMBER bool before(Value a, Value b) { return GREATEST ? a > b : a < b; }
  MEMBER State none() { return {0, 0}; }
  MEMBER void take(State &state, T x) { merge(state, {Value(x), x == x}); }
  MEMBER void merge(State &state, const State &other) {
    if (other.some && (!state.some || before(other.value, state.value))) state = other;
  }
  MEMBER u32 step(State &state, T x, Out &out) {
    take(state, x);
    out = state.some ? T(state.value) : x;
    return x == x ? 0 : MET_NAN;
  }
};

struct ScanArgs {
  const void *in;
  void *out;
  u64 count;
  TileStates states;
  // A word in which bits are set.
  u32 *flags;
};

// For each of the first `width` lanes, the combination of it and all lanes before it.
template <class Op> INLINE typename Op::State warp_scan(typename Op::State state, u32 width = WARP) {
#pragma unroll
  for (u32 delta = 1; delta < width; delta *= 2) {
    typename Op::State left = from_below(state, delta);
    if (lane_id() >= delta) {
      Op::merge(left, state);
      state = left;
    }
  }
  return state;
}

template <class T, class Op, bool BY_INDEX> INLINE void scan(const ScanArgs &args) {
  typedef typename Op::State State;
  typedef typename Op::Out Out;
  union Exchange {
    T in[SCAN_TILE];
    Out out[SCAN_TILE];
  };
  // If values fit the places of their elements, the elements need not be kept while the block waits for the tiles
  // before.
  const bool SAME = sizeof(T) == sizeof(Out);
  const u32 WARPS = SCAN_THREADS / WARP;
  __shared__ Exchange exchange;
  __shared__ State warps[WARPS];
  __shared__ State prefix;
  const u32 tile = take_tile<BY_INDEX>(args.states);
  const u64 first = u64(tile) * SCAN_TILE;
  const u32 count = args.count - first < SCAN_TILE ? u32(args.count - first) : SCAN_TILE;
  const T *in = (const T *)args.in + first;

  T x[SCAN_ITEMS];
  if (count == SCAN_TILE) {
#pragma unroll
    for (u32 i = 0; i < SCAN_ITEMS; i++) x[i] = __ldg(in + threadIdx.x + i * SCAN_THREADS);
#pragma unroll
    for (u32 i = 0; i < SCAN_ITEMS; i++) exchange.in[threadIdx.x + i * SCAN_THREADS] = x[i];
  } else {
    for (u32 i = threadIdx.x; i < count; i += SCAN_THREADS) exchange.in[i] = in[i];
  }
  __syncthreads();
  const u32 own = threadIdx.x * SCAN_ITEMS;
  State state = Op::none();
#pragma unroll
  for (u32 i = 0; i < SCAN_ITEMS; i++) {
    if (own + i < count) {
      x[i] = exchange.in[own + i];
      Op::take(state, x[i]);
    }
  }

  state = warp_scan<Op>(state);
  if (lane_id() == WARP - 1) warps[warp_id()] = state;
  State start = from_below(state, 1);
  if (lane_id() == 0) start = Op::none();
  __syncthreads();
  // Each warp scans the states of the warps itself. The first warp also looks back, with the state of the whole tile.
  // So after that only one step is left.
  const State upto = warp_scan<Op>(warps[lane_id() % WARPS], WARPS);
  State mine = from_lane(upto, warp_id() == 0 ? 0 : warp_id() - 1);
  if (warp_id() == 0) mine = Op::none();
  Op::merge(mine, start);
  if (warp_id() == 0) {
    const State before = look_back<Op>(args.states, tile, from_lane(upto, WARPS - 1));
    if (lane_id() == 0) prefix = before;
  }
  __syncthreads();
  State running = prefix;
  Op::merge(running, mine);

  // if widths differ, all threads have read their elements by now
  u32 flags = 0;
#pragma unroll
  for (u32 i = 0; i < SCAN_ITEMS; i++) {
    if (own + i < count) {
      Out out;
      flags |= Op::step(running, SAME ? exchange.in[own + i] : x[i], out);
      exchange.out[own + i] = out;
    }
  }
  if (flags) atomicOr(args.flags, flags);
  __syncthreads();
  Out *out = (Out *)args.out + first;
  if (count == SCAN_TILE) {
#pragma unroll
    for (u32 i = 0; i < SCAN_ITEMS; i++) out[threadIdx.x + i * SCAN_THREADS] = exchange.out[threadIdx.x + i * SCAN_THREADS];
  } else {
    for (u32 i = threadIdx.x; i < count; i += SCAN_THREADS) out[i] = exchange.out[i];
  }
}
