// Stream compaction of the results of a program's jobs (emit.rs), in one pass: it stores the results that exist side by
// side, in the order of the jobs.
//
// A tile is 16 rows of 256 threads, so that neighbouring threads run neighbouring jobs. Results wait in shared memory
// until the block knows how many come before its own.

const u32 COMPACTION_THREADS = 256;
const u32 COMPACTION_ROWS = 16;
const u32 COMPACTION_TILE = COMPACTION_THREADS * COMPACTION_ROWS;
const u32 COMPACTION_WARPS = COMPACTION_THREADS / WARP;
// The groups of a tile: one for each row and warp.
const u32 COMPACTION_PARTS = COMPACTION_ROWS * COMPACTION_WARPS;

struct CompactionArgs {
  void *chosen;
  u64 count;
  TileStates states;
  // The number of selected results.
  u64 *hits;
};

// Computes AHEAD rows from `row` on. `first`: the thread's job in the first row of the tile.
template <class T, u32 AHEAD, bool ALL_THERE, class Job>
INLINE void compact_rows(const CompactionArgs &args, const Job &job, u64 first, u32 row, T *elements, u32 *masks) {
  T x[AHEAD];
  bool given[AHEAD];
#pragma unroll
  for (u32 i = 0; i < AHEAD; i++) {
    const u64 at = first + (row + i) * COMPACTION_THREADS;
    x[i] = 0;
    given[i] = (ALL_THERE || at < args.count) && job(at, x[i]);
  }
#pragma unroll
  for (u32 i = 0; i < AHEAD; i++) {
    elements[(row + i) * COMPACTION_THREADS + threadIdx.x] = x[i];
    const u32 mask = __ballot_sync(ALL, given[i]);
    if (lane_id() == 0) masks[(row + i) * COMPACTION_WARPS + warp_id()] = mask;
  }
}

// Runs `job` for each index, and stores its result if there is one. AHEAD rows are computed before the first of them is
// stored.
template <class T, u32 AHEAD, class Job> INLINE void compact_each(const CompactionArgs &args, const Job &job) {
  const u32 EACH = COMPACTION_PARTS / WARP;
  __shared__ T elements[COMPACTION_TILE];
  __shared__ u32 masks[COMPACTION_PARTS];
  // The place of each group's first result, counted from the tile's first.
  __shared__ u32 places[COMPACTION_PARTS];
  __shared__ u64 prefix;
  const u32 tiles = u32((args.count + COMPACTION_TILE - 1) / COMPACTION_TILE);
  for (;;) {
    const u32 tile = take_tile<false>(args.states);
    if (tile >= tiles) {
      // the last block to end: none takes another tile
      if (threadIdx.x == 0 && tile == tiles + gridDim.x - 1) *args.states.next = 0;
      return;
    }
    const u64 first = u64(tile) * COMPACTION_TILE + threadIdx.x;
    // even if the launch is over, other blocks wait for this tile's state
    const bool over = job.is_over();
    if (over) {
      for (u32 part = threadIdx.x; part < COMPACTION_PARTS; part += COMPACTION_THREADS) masks[part] = 0;
    } else if (u64(tile + 1) * COMPACTION_TILE <= args.count) {
#pragma unroll 1
      for (u32 row = 0; row < COMPACTION_ROWS; row += AHEAD) compact_rows<T, AHEAD, true>(args, job, first, row, elements, masks);
    } else {
#pragma unroll 1
      for (u32 row = 0; row < COMPACTION_ROWS; row++) compact_rows<T, 1, false>(args, job, first, row, elements, masks);
    }
    __syncthreads();
    if (warp_id() == 0) {
      u32 sizes[EACH], mine = 0;
#pragma unroll
      for (u32 i = 0; i < EACH; i++) mine += sizes[i] = u32(__popc(masks[lane_id() * EACH + i]));
      u32 sum = mine;
#pragma unroll
      for (u32 delta = 1; delta < WARP; delta *= 2) {
        const u32 left = __shfl_up_sync(ALL, sum, delta);
        if (lane_id() >= delta) sum += left;
      }
      u32 place = sum - mine;
#pragma unroll
      for (u32 i = 0; i < EACH; i++) {
        places[lane_id() * EACH + i] = place;
        place += sizes[i];
      }
      const u64 hits = __shfl_sync(ALL, sum, WARP - 1);
      const u64 before = look_back<Hits>(args.states, tile, {hits}).count;
      if (lane_id() == 0) {
        prefix = before;
        if (tile == tiles - 1) *args.hits = before + hits;
      }
    }
    __syncthreads();
    T *chosen = (T *)args.chosen + prefix;
#pragma unroll 4
    for (u32 row = 0; row < COMPACTION_ROWS; row++) {
      const u32 part = row * COMPACTION_WARPS + warp_id(), mask = masks[part];
      const u32 place = places[part] + u32(__popc(mask & ((1u << lane_id()) - 1)));
      if (mask >> lane_id() & 1) chosen[place] = elements[row * COMPACTION_THREADS + threadIdx.x];
    }
  }
}
