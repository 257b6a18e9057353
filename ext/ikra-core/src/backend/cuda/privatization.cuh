// Privatized reductions: a block of threads adds to private copies of rows, and adds these to memory at its end.
//
// Where a column that is only added to has few rows, all threads of the device would wait for these. So each block has
// cells in shared memory, one for each row, or several copies of one, so that threads of a warp do not wait for each
// other either. The host says how many copies there are: 0 where rows are too many, and each addition goes to memory at
// once.

#define CELLS 1024
// The number of no element, behind all that are.
#define BEHIND_ALL 0xfffffffeu
__shared__ u64 cells[CELLS];
// Of sums: what they carried beyond 64 bits, so that they are exact.
__shared__ i32 beyond[CELLS];

// The rows `first..first + rows` of a column have cells from `cell` on, times copies.
struct PrivateCells {
  i64 first;
  u32 rows;
  u32 cell;
};

// ---- Operations: what is done to a cell, and to the row in memory. Each answers whether a sum leaves 64 bits. ----

struct Sums {
  typedef i64 Value;
  typedef i128 Total;
  static __device__ void clear(u32 i) { cells[i] = 0, beyond[i] = 0; }
  static __device__ Total nothing() { return 0; }
  static __device__ bool directly(i64 *slot, i64 x) { return atomic_add_overflows(slot, x); }
  // Shared memory adds 32 bits at once, and 64 by trying. What goes to the upper halves is nothing most of the time.
  static __device__ bool give(u32 i, i64 x) {
    u32 *halves = (u32 *)&cells[i];
    const u32 low = u32(x);
    const i64 rest = (x >> 32) + (atomicAdd(&halves[0], low) + low < low);
    if (rest == 0) return false;
    const u32 high = u32(rest);
    const i32 more = i32(rest >> 32) + (atomicAdd(&halves[1], high) + high < high);
    if (more == 0) return false;
    // A block that adds so much for so long that this leaves 32 bits ends before.
    const i32 before = atomicAdd(&beyond[i], more);
    return before > (1 << 30) || before < -(1 << 30);
  }
  static __device__ void collect(Total &total, u32 i) { total += i128(beyond[i]) * (i128(1) << 64) + i128(cells[i]); }
  // In parts where 64 bits do not hold it: what of them is in memory is between what was there and what will be.
  static __device__ bool merge(i64 *slot, Total total) {
    const i64 most = ~INT_LEAST;
    while (total != 0) {
      const i64 part = total > most ? most : total < -most ? -most : i64(total);
      if (atomic_add_overflows(slot, part)) return true;
      total -= part;
    }
    return false;
  }
};

// Sums that wrap: what is beyond 64 bits is left where it is.
struct Wraps : Sums {
  typedef i64 Total;
  static __device__ Total nothing() { return 0; }
  static __device__ bool directly(i64 *slot, i64 x) { return atomic_add(slot, x), false; }
  static __device__ bool give(u32 i, i64 x) { return Sums::give(i, x), false; }
  static __device__ void collect(Total &total, u32 i) { total = add(total, i64(cells[i])); }
  static __device__ bool merge(i64 *slot, Total total) {
    if (total != 0) atomic_add(slot, total);
    return false;
  }
};

// -0.0 changes nothing that it is added to.
struct FloatSums {
  typedef f64 Value;
  typedef f64 Total;
  static __device__ void clear(u32 i) { cells[i] = u64(INT_LEAST); }
  static __device__ Total nothing() { return -0.0; }
  static __device__ bool directly(f64 *slot, f64 x) { return atomic_fadd(slot, x), false; }
  static __device__ bool give(u32 i, f64 x) { return atomic_fadd((f64 *)&cells[i], x), false; }
  static __device__ void collect(Total &total, u32 i) { total += float_of(cells[i]); }
  static __device__ bool merge(f64 *slot, Total total) {
    if (float_bits(total) != INT_LEAST) atomic_fadd(slot, total);
    return false;
  }
};

// `combine` of two Integers in registers, `update` of one in memory; `neutral` changes nothing.
#define BITWISE_OR_EXTREME(Name, neutral, combine, update)                                          \
  struct Name {                                                                         \
    typedef i64 Value;                                                                  \
    typedef i64 Total;                                                                  \
    static __device__ void clear(u32 i) { cells[i] = u64(neutral); }                    \
    static __device__ Total nothing() { return neutral; }                               \
    static __device__ bool directly(i64 *slot, i64 x) { return update(slot, x), false; } \
    static __device__ bool give(u32 i, i64 x) { return update((i64 *)&cells[i], x), false; } \
    static __device__ void collect(Total &total, u32 i) {                               \
      const i64 one = i64(cells[i]);                                                    \
      total = combine;                                                                  \
    }                                                                                   \
    static __device__ bool merge(i64 *slot, Total total) {                              \
      if (total != neutral) update(slot, total);                                        \
      return false;                                                                     \
    }                                                                                   \
  };
BITWISE_OR_EXTREME(Ands, i64(-1), total &one, atomic_and)
BITWISE_OR_EXTREME(Ors, i64(0), total | one, atomic_or)
BITWISE_OR_EXTREME(Xors, i64(0), total ^ one, atomic_xor)
BITWISE_OR_EXTREME(Leasts, ~INT_LEAST, one < total ? one : total, atomic_min)
BITWISE_OR_EXTREME(Greatests, INT_LEAST, one > total ? one : total, atomic_max)

// ---- A block's way ----

template <class Operation>
INLINE bool privatized_update(u32 copies, const PrivateCells &to, i64 row, typename Operation::Value *column, typename Operation::Value x) {
  if (copies == 0) return Operation::directly(column + row, x);
  return Operation::give((to.cell + u32(row - to.first)) * copies + (threadIdx.x & (copies - 1)), x);
}

// What follows runs once for each block. Inlined for each column, it was half of what such a kernel took to compile.

// Before the first job.
template <class Operation> static __device__ __noinline__ void clear_cells(u32 copies, PrivateCells to) {
  for (u32 i = threadIdx.x; i < to.rows * copies; i += blockDim.x) Operation::clear(to.cell * copies + i);
}

// Behind the last. Threads go over copies from different ones on, which are in different banks.
template <class Operation>
static __device__ __noinline__ bool merge_cells(u32 copies, PrivateCells to, typename Operation::Value *column) {
  bool leaves = false;
  for (u32 row = threadIdx.x; row < to.rows; row += blockDim.x) {
    typename Operation::Total total = Operation::nothing();
    for (u32 k = 0; k < copies; k++) Operation::collect(total, (to.cell + row) * copies + ((k + threadIdx.x) & (copies - 1)));
    leaves |= Operation::merge(column + to.first + row, total);
  }
  return leaves;
}

// A block's sum left 64 bits: told behind whatever an element of this launch raises by itself. `element` is one of
// those that the block ran.
INLINE void privatized_overflow(const Launch &launch, u32 site, u32 element) {
  record_trap(launch.stop_key, launch.trap, (u64(launch.tick_end - 1) << 32 | BEHIND_ALL) + 1, site, element, 0, 0, 0);
}
