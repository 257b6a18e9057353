// Picks elements at listed places, or computes the row of each place. Sorting rows separately needs both beside the
// sort.

struct GatherArgs {
  const u32 *places;
  u64 count;
  // Null: rows are computed.
  const void *in;
  void *out;
  // The number of elements of a row.
  u64 row;
};

template <class T> INLINE void gather(const GatherArgs &args) {
  const u64 step = u64(gridDim.x) * blockDim.x;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += step) ((T *)args.out)[i] = __ldg((const T *)args.in + args.places[i]);
}

INLINE void rows_of(const GatherArgs &args) {
  const u64 step = u64(gridDim.x) * blockDim.x;
  const u32 row = u32(args.row);
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += step) ((u32 *)args.out)[i] = args.places[i] / row;
}
