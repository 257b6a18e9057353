// Privatized reductions: a block of threads adds to private copies of rows, and adds these to memory at its end.
//
// If a column that is only added to has few rows, all threads of the device would wait for each other at these. So each
// block has cells in shared memory: one for each row, or several copies of it, so that threads of a warp do not wait
// for each other either. The host sets the number of copies. It is 0 if there are too many rows; then each addition
// goes to memory at once.

#define CELLS 1024
// An index behind those of all elements.
#define BEHIND_ALL 0xfffffffeu
__shared__ u64 cells[CELLS];
// For sums: the part beyond 64 bits, so that sums are exact.
__shared__ i32 beyond[CELLS];

// The rows `first..first + rows` of a column have cells from `cell * copies` on.
struct PrivateCells {
  i64 first;
  u32 rows;
  u32 cell;
};

// ---- Operations on a cell, and on the row in memory. Each function returns whether a sum exceeds 64 bits. ----

struct Sums {
  typedef i64 Value;
  typedef i128 Total;
  static __device__ void clear(u32 i) { cells[i] = 0, beyond[i] = 0; }
  static __device__ Total nothing() { return 0; }
  static __device__ bool directly(i64 *slot, i64 x) { return atomic_add_overflows(slot, x); }
  // Shared memory has 32-bit atomic additions; 64-bit ones are loops. The upper halves rarely change.
  static __device__ bool give(u32 i, i64 x) {
    u32 *halves = (u32 *)&cells[i];
    const u32 low = u32(x);
    const i64 rest = (x >> 32) + (atomicAdd(&halves[0], low) + low < low);
    if (rest == 0) return false;
    const u32 high = u32(rest);
    const i32 more = i32(rest >> 32) + (atomicAdd(&halves[1], high) + high < high);
    if (more == 0) return false;
    // A block ends here, as after an overflow, long before this exceeds 32 bits.
    const i32 before = atomicAdd(&beyond[i], more);
    return before > (1 << 30) || before < -(1 << 30);
  }
  static __device__ void collect(Total &total, u32 i) { total += i128(beyond[i]) * (i128(1) << 64) + i128(cells[i]); }
  // If the total exceeds 64 bits, it is added in parts. All intermediate values are between the old and the new one.
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

// Sums that wrap: the part beyond 64 bits is ignored.
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

// The neutral value is -0.0, because adding it changes no Float.
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

// `combine` combines two Integers in registers, and `update` one in memory. `neutral` changes nothing.
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

// ---- The work of a block ----

template <class Operation>
INLINE bool privatized_update(u32 copies, const PrivateCells &to, i64 row, typename Operation::Value *column, typename Operation::Value x) {
  if (copies == 0) return Operation::directly(column + row, x);
  return Operation::give((to.cell + u32(row - to.first)) * copies + (threadIdx.x & (copies - 1)), x);
}

// The functions below run once for each block. Inlining them for each column would double the compile time of a kernel.

// Clears the cells before the first job.
template <class Operation> static __device__ __noinline__ void clear_cells(u32 copies, PrivateCells to) {
  for (u32 i = threadIdx.x; i < to.rows * copies; i += blockDim.x) Operation::clear(to.cell * copies + i);
}

// Adds the cells to memory after the last job. Threads begin with different copies, which are in different banks.
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

// Records that a sum of a block exceeded 64 bits. Its key is behind those of all elements, so traps of elements go
// first. `element` is one of those that the block ran.
INLINE void privatized_overflow(const Launch &launch, u32 site, u32 element) {
  record_trap(launch.stop_key, launch.trap, (u64(launch.tick_end - 1) << 32 | BEHIND_ALL) + 1, site, element, 0, 0, 0);
}
