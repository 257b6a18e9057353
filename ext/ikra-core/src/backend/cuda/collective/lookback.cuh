// Prefixes of tiles for scans in one pass: a tile gets the combination of all tiles before it, while later tiles are
// still being computed.
//
// Each tile publishes its own state at once and then reads those before it, as in the decoupled look-back of Merrill
// and Garland. Unlike there, the order of combinations does not depend on timing. 32 tiles are a group, and 32 groups
// are a larger group. A tile waits for exactly these: the states of the tiles before it in its group, those of the
// groups before its own in the larger group, and the prefix of the larger group. So sums of Floats are the same each
// time, and the chain of waits has one link for each 1024 tiles.
//
// A word is published together with the launch's mark, in one store of 16 bytes. So a reader waits for one store only,
// and needs no fence. A word with another mark is of another launch.

const u32 GROUP = 32;

struct alignas(16) Cell {
  u64 word, mark;
};

INLINE void show_cell(Cell *cell, u64 word, u64 mark) {
#ifdef __CUDA_ARCH__
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(cell), "l"(word), "l"(mark) : "memory");
#else
  cell->word = word;
  cell->mark = mark;
#endif
}
INLINE Cell see_cell(const Cell *cell) {
  Cell seen;
#ifdef __CUDA_ARCH__
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(seen.word), "=l"(seen.mark) : "l"(cell) : "memory");
#else
  seen = *cell;
#endif
  return seen;
}

// The cells of a state: one for each of its words.
template <class S> struct Shown {
  Cell cells[sizeof(S) / 8];
};
template <class S> INLINE void show(Shown<S> *to, const S &state, u64 mark) {
  Words<S> words;
  words.state = state;
#pragma unroll
  for (u32 i = 0; i < sizeof(S) / 8; i++) show_cell(to->cells + i, words.words[i], mark);
}
// The words of a state that were read so far, and whether all were published.
template <class S> struct Seen {
  Words<S> words;
  bool all;
};
template <class S> INLINE Seen<S> glance(const Shown<S> *from, u64 mark) {
  Seen<S> seen;
  seen.all = true;
#pragma unroll
  for (u32 i = 0; i < sizeof(S) / 8; i++) {
    const Cell cell = see_cell(from->cells + i);
    seen.words.words[i] = cell.word;
    seen.all = seen.all && cell.mark == mark;
  }
  return seen;
}
template <class S> INLINE S see(const Shown<S> *from, Seen<S> seen, u64 mark) {
  while (!seen.all) seen = glance(from, mark);
  return seen.words.state;
}

// Where the states of tiles and of groups, and the prefixes behind larger groups, are published.
struct TileStates {
  void *tiles, *groups, *larger;
  // The next tile to take; 0 before the launch.
  u32 *next;
  // The mark of this launch. No cell has it before.
  u64 mark;
};

// The number of selected elements.
struct Hits {
  struct State {
    u64 count;
  };
  MEMBER State none() { return {0}; }
  MEMBER void merge(State &state, const State &other) { state.count += other.count; }
};

// Returns the number of a tile for this block; all lesser tiles were taken before. BY_INDEX: it is the block's own
// number. That relies on the hardware starting blocks in order, which is not guaranteed; CUB's scans rely on it, too.
template <bool BY_INDEX> INLINE u32 take_tile(const TileStates &states) {
  if (BY_INDEX) return blockIdx.x;
  __shared__ u32 tile;
  __syncthreads();
  if (threadIdx.x == 0) tile = atomicAdd(states.next, 1u);
  __syncthreads();
  return tile;
}

// Publishes the state of a tile, and returns the combination of all tiles before it. One whole warp calls it; all lanes
// pass the same `state`, and all get the result.
template <class Op> INLINE typename Op::State look_back(const TileStates &states, u32 tile, const typename Op::State &state) {
  typedef typename Op::State State;
  Shown<State> *tiles = (Shown<State> *)states.tiles, *groups = (Shown<State> *)states.groups, *larger = (Shown<State> *)states.larger;
  const u32 lane = lane_id(), group = tile / GROUP, large = group / GROUP;
  const u32 in_group = tile % GROUP, in_large = group % GROUP;
  const u64 mark = states.mark;
  if (lane == 0) show(tiles + tile, state, mark);
  // Reads all cells at once, before waiting for any. Distant ones are mostly published already, and need no separate
  // access to memory.
  Seen<State> near_seen, far_seen, all_seen;
  if (lane < in_group) near_seen = glance(tiles + group * GROUP + lane, mark);
  if (lane < in_large) far_seen = glance(groups + large * GROUP + lane, mark);
  if (large > 0) all_seen = glance(larger + large - 1, mark);
  // the tiles of the group before this one, and with this one, which may complete the group
  State near = Op::none();
  if (lane < in_group) near = see(tiles + group * GROUP + lane, near_seen, mark);
  const State before = from_lane(warp_tree<Op>(near), 0);
  State whole = before;
  Op::merge(whole, state);
  if (lane == 0 && in_group == GROUP - 1) show(groups + group, whole, mark);
  State far = Op::none();
  if (lane < in_large) far = see(groups + large * GROUP + lane, far_seen, mark);
  far = from_lane(warp_tree<Op>(far), 0);
  State prefix = Op::none();
  if (large > 0) prefix = see(larger + large - 1, all_seen, mark);
  Op::merge(prefix, far);
  if (lane == 0 && in_group == GROUP - 1 && in_large == GROUP - 1) {
    State all = prefix;
    Op::merge(all, whole);
    show(larger + large, all, mark);
  }
  Op::merge(prefix, before);
  return prefix;
}
