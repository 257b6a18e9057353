// The common part of all collective kernels: exchange of states between the threads of a warp and of a block.
//
// Here: trees over lanes. Not here: the operations. A state is a struct of whole 8-byte words, without a constructor.

typedef unsigned short u16;
typedef float f32;

#define GLOBAL extern "C" __global__ void
#define MEMBER static __device__ __forceinline__
#define INLINE_MEMBER __device__ __forceinline__

const u32 WARP = 32;
const u32 ALL = 0xffffffffu;

template <class S> union Words {
  S state;
  u64 words[sizeof(S) / 8];
};

INLINE u32 lane_id() { return threadIdx.x % WARP; }
INLINE u32 warp_id() { return threadIdx.x / WARP; }

// The state of lane + delta; of the thread itself if there is no such lane.
template <class S> INLINE S from_above(const S &state, u32 delta) {
  Words<S> mine, theirs;
  mine.state = state;
#pragma unroll
  for (u32 i = 0; i < sizeof(S) / 8; i++) theirs.words[i] = __shfl_down_sync(ALL, mine.words[i], delta);
  return theirs.state;
}
// The state of lane - delta; of the thread itself if there is no such lane.
template <class S> INLINE S from_below(const S &state, u32 delta) {
  Words<S> mine, theirs;
  mine.state = state;
#pragma unroll
  for (u32 i = 0; i < sizeof(S) / 8; i++) theirs.words[i] = __shfl_up_sync(ALL, mine.words[i], delta);
  return theirs.state;
}
template <class S> INLINE S from_lane(const S &state, u32 lane) {
  Words<S> mine, theirs;
  mine.state = state;
#pragma unroll
  for (u32 i = 0; i < sizeof(S) / 8; i++) theirs.words[i] = __shfl_sync(ALL, mine.words[i], lane);
  return theirs.state;
}

// Loads a state that other blocks write, without the caches that are not coherent.
template <class S> INLINE S load_shared_state(const S *from) {
  Words<S> copy;
#pragma unroll
  for (u32 i = 0; i < sizeof(S) / 8; i++) copy.words[i] = ((const volatile u64 *)from)[i];
  return copy.state;
}
template <class S> INLINE void store_shared_state(S *to, const S &state) {
  Words<S> copy;
  copy.state = state;
#pragma unroll
  for (u32 i = 0; i < sizeof(S) / 8; i++) ((volatile u64 *)to)[i] = copy.words[i];
}

// Combines the states of a warp; the first lane gets the result. Lane l is combined with lane l + d for d = 16, 8, 4,
// 2, 1.
template <class Op> INLINE typename Op::State warp_tree(typename Op::State state, u32 width = WARP) {
  for (u32 delta = width / 2; delta > 0; delta /= 2) {
    const typename Op::State other = from_above(state, delta);
    Op::merge(state, other);
  }
  return state;
}

// Combines the states of a block; the first thread gets the result. THREADS is a power of two of warps.
template <class Op, u32 THREADS> INLINE typename Op::State block_tree(typename Op::State state) {
  __shared__ typename Op::State warps[THREADS / WARP];
  state = warp_tree<Op>(state);
  __syncthreads();
  if (lane_id() == 0) warps[warp_id()] = state;
  __syncthreads();
  if (warp_id() == 0) {
    state = warps[lane_id() % (THREADS / WARP)];
    state = warp_tree<Op>(state, THREADS / WARP);
  }
  return state;
}

// ---- Floats ----

INLINE bool is_finite(f64 x) { return x - x == 0.0; }
// Replaces each NaN by the same NaN.
INLINE f64 canonical(f64 x) { return x != x ? float_of(0x7ff8000000000000ull) : x; }

// A sum of Floats, and what its additions lost.
struct Compensated {
  f64 sum, lost;
};
INLINE void add_to(Compensated &to, f64 x) {
  const f64 total = to.sum + x;
  const bool swap = fabs(to.sum) < fabs(x);
  const f64 large = swap ? x : to.sum, small = swap ? to.sum : x;
  to.lost += (large - total) + small;
  to.sum = total;
}
INLINE void merge_into(Compensated &to, const Compensated &other) {
  const f64 lost = to.lost + other.lost;
  to.lost = 0.0;
  add_to(to, other.sum);
  to.lost += lost;
}
INLINE f64 value_of(const Compensated &state) {
  return canonical(is_finite(state.sum) ? state.sum + state.lost : state.sum);
}
