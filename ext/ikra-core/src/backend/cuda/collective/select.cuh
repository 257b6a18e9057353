// Selections in one pass: elements whose flags are not 0, in their order, and the other elements in theirs.
//
// A tile is 16 neighbours for each of 256 threads, whose flags are one load of 16 bytes. The places of selected
// elements are listed in shared memory. Then threads go over the list, so that neighbouring threads write neighbours.

const u32 SELECT_THREADS = 256;
const u32 SELECT_ITEMS = 16;
const u32 SELECT_TILE = SELECT_THREADS * SELECT_ITEMS;

struct SelectArgs {
  const u8 *flags;
  // Null: the elements are their own indices.
  const void *in;
  void *chosen;
  // Null: the other elements are not wanted.
  void *others;
  u64 count;
  TileStates states;
  // The number of selected elements.
  u64 *hits;
};

template <class T> struct Elements {
  MEMBER T at(const void *in, u64 index) { return __ldg((const T *)in + index); }
};
struct Indices {};
template <> struct Elements<Indices> {
  MEMBER u32 at(const void *, u64 index) { return u32(index); }
};

// T: the type of the elements. R: the type of what is written for each.
template <class T, class R, bool OTHERS> INLINE void select(const SelectArgs &args) {
  __shared__ u16 places[SELECT_TILE];
  __shared__ u32 warps[SELECT_THREADS / WARP];
  __shared__ u64 prefix;
  const u32 tile = take_tile<false>(args.states);
  const u64 first = u64(tile) * SELECT_TILE;
  const u32 count = args.count - first < SELECT_TILE ? u32(args.count - first) : SELECT_TILE;
  const u32 own = threadIdx.x * SELECT_ITEMS;

  u32 bits = 0;
  const u8 *flags = args.flags + first + own;
  if (own + SELECT_ITEMS <= count && (u64(flags) & 15) == 0) {
    const uint4 four = __ldg((const uint4 *)flags);
    const u32 words[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (u32 i = 0; i < SELECT_ITEMS; i++) bits |= u32((words[i / 4] >> (i % 4 * 8) & 255) != 0) << i;
  } else {
    for (u32 i = 0; i < SELECT_ITEMS; i++)
      if (own + i < count) bits |= u32(flags[i] != 0) << i;
  }

  // In lane l: the number of hits in lanes 0 to l of its warp.
  const u32 mine = u32(__popc(bits));
  u32 sum = mine;
#pragma unroll
  for (u32 delta = 1; delta < WARP; delta *= 2) {
    const u32 left = __shfl_up_sync(ALL, sum, delta);
    if (lane_id() >= delta) sum += left;
  }
  if (lane_id() == WARP - 1) warps[warp_id()] = sum;
  __syncthreads();
  u32 before = sum - mine, hits = 0;
#pragma unroll
  for (u32 w = 0; w < SELECT_THREADS / WARP; w++) {
    if (w < warp_id()) before += warps[w];
    hits += warps[w];
  }
  // first the selected elements, then the others
  u32 other = hits + own - before;
#pragma unroll
  for (u32 i = 0; i < SELECT_ITEMS; i++) {
    if (bits >> i & 1) places[before++] = u16(own + i);
    else if (OTHERS && own + i < count) places[other++] = u16(own + i);
  }
  __syncthreads();

  const u32 wanted = OTHERS ? count : hits;
  R x[SELECT_ITEMS];
#pragma unroll
  for (u32 i = 0; i < SELECT_ITEMS; i++) {
    const u32 at = threadIdx.x + i * SELECT_THREADS;
    if (at < wanted) x[i] = Elements<T>::at(args.in, first + places[at]);
  }
  if (warp_id() == 0) {
    const u64 all = look_back<Hits>(args.states, tile, {hits}).count;
    if (lane_id() == 0) {
      prefix = all;
      if (first + count == args.count) *args.hits = all + hits;
    }
  }
  __syncthreads();
  R *chosen = (R *)args.chosen + prefix;
  R *others = (R *)args.others + (first - prefix);
#pragma unroll
  for (u32 i = 0; i < SELECT_ITEMS; i++) {
    const u32 at = threadIdx.x + i * SELECT_THREADS;
    if (at < hits) chosen[at] = x[i];
    else if (OTHERS && at < count) others[at - hits] = x[i];
  }
}
