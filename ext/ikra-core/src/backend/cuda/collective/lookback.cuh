// What comes before a tile, known while later tiles are still computed: scans in one pass.
//
// Every tile shows its own state at once and then looks at those before it, as in the decoupled look-back of Merrill and
// Garland. Unlike there, what is combined with what does not depend on who was first to show what: tiles stand in groups of
// 32, those in groups of 32 again, and a tile waits for exactly these: the states of the tiles before it in its group, those
// of the groups before its own in the larger group, and what came before the larger group. So sums of Floats are the same
// each time, and the chain of waits has a link for each 1024 tiles.
//
// A word is shown together with the launch's mark, in one store of 16 bytes, so that nobody waits for two things, and needs no
// fence. What has another mark was shown to others, or never.

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

// A state's cells: one for each of its words.
template <class S> struct Shown {
  Cell cells[sizeof(S) / 8];
};
template <class S> INLINE void show(Shown<S> *to, const S &state, u64 mark) {
  Words<S> words;
  words.state = state;
#pragma unroll
  for (u32 i = 0; i < sizeof(S) / 8; i++) show_cell(to->cells + i, words.words[i], mark);
}
// What was seen of a state's cells so far.
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

// Where tiles, groups, and larger groups with all before them are shown.
struct TileStates {
  void *tiles, *groups, *larger;
  // The next tile to be taken; 0 before the launch.
  u32 *next;
  // That of this launch: no cell has it before.
  u64 mark;
};

// How many were chosen.
struct Hits {
  struct State {
    u64 count;
  };
  MEMBER State none() { return {0}; }
  MEMBER void merge(State &state, const State &other) { state.count += other.count; }
};

// The number of the tile that this block takes: those before it were taken before. BY_INDEX: it is the block's, of which hardware starts
// the lesser ones first, though nobody promises it; CUB's scans rely on it.
template <bool BY_INDEX> INLINE u32 take_tile(const TileStates &states) {
  if (BY_INDEX) return blockIdx.x;
  __shared__ u32 tile;
  __syncthreads();
  if (threadIdx.x == 0) tile = atomicAdd(states.next, 1u);
  __syncthreads();
  return tile;
}

// Shows a tile's state to later ones, and answers what all tiles before it come to. Called by one whole warp, whose lanes all
// know `state`; all get the answer.
template <class Op> INLINE typename Op::State look_back(const TileStates &states, u32 tile, const typename Op::State &state) {
  typedef typename Op::State State;
  Shown<State> *tiles = (Shown<State> *)states.tiles, *groups = (Shown<State> *)states.groups, *larger = (Shown<State> *)states.larger;
  const u32 lane = lane_id(), group = tile / GROUP, large = group / GROUP;
  const u32 in_group = tile % GROUP, in_large = group % GROUP;
  const u64 mark = states.mark;
  if (lane == 0) show(tiles + tile, state, mark);
  // All that is waited for is asked for at once: what is far away mostly is there, and costs no way to memory of its own.
  Seen<State> near_seen, far_seen, all_seen;
  if (lane < in_group) near_seen = glance(tiles + group * GROUP + lane, mark);
  if (lane < in_large) far_seen = glance(groups + large * GROUP + lane, mark);
  if (large > 0) all_seen = glance(larger + large - 1, mark);
  // The tiles of the group before this one, and this one where it completes the group.
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
