// Groups of equal keys, numbered in the order in which they first appear, by a hash table of indices.
//
// A slot of the table holds the least index of an element with its key so far. So the table stores no keys: the index
// leads to one. Only the functor knows what a key is (`hash` and `same`). Threads run in any order, and the slots of
// keys depend on that order. The least index of each key does not, and nothing else is read from the table.

const u32 EMPTY = 0xffffffffu;
const u32 GROUP_THREADS = 256;
// Up to so many groups are counted in shared memory.
const u32 FEW_GROUPS = 2048;

INLINE u64 mixed(u64 word) {
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93ull;
  word ^= word >> 32;
  word *= 0xd6e8feb86659fd93ull;
  return word ^ word >> 32;
}

// Keys that are equal if their bits are equal.
template <class T> struct Bits {
  MEMBER u64 hash(const void *keys, u32 i) { return mixed(u64(((const T *)keys)[i])); }
  MEMBER bool same(const void *keys, u32 i, u32 j) { return ((const T *)keys)[i] == ((const T *)keys)[j]; }
};
// Float keys: both zeroes are one key, and all NaNs are one.
template <class T> struct Floats {
  MEMBER u64 word_of(const void *keys, u32 i) { return u64(float_bits(canonical(f64(((const T *)keys)[i]) + 0.0))); }
  MEMBER u64 hash(const void *keys, u32 i) { return mixed(word_of(keys, i)); }
  MEMBER bool same(const void *keys, u32 i, u32 j) { return word_of(keys, i) == word_of(keys, j); }
};

struct GroupArgs {
  const void *keys;
  u64 count;
  // The table: a power of two of slots, all EMPTY before the first kernel. `slots`: the slot of each element.
  u32 *table;
  u64 mask;
  u32 *slots;
  // Whether an element is the first of its group.
  u8 *flags;
  // The first element of each group, and the number of groups.
  const u32 *firsts;
  const u64 *groups;
  // The results: the group of each element, and the size of each group (null: not wanted; 0 before).
  u32 *group_of;
  u32 *counts;
};

template <class Keys> INLINE void find_slots(const GroupArgs &args) {
  const u64 step = u64(gridDim.x) * blockDim.x;
  for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < args.count; at += step) {
    const u32 i = u32(at);
    u64 slot = Keys::hash(args.keys, i) & args.mask;
    while (true) {
      u32 found = *(volatile u32 *)(args.table + slot);
      if (found == EMPTY) found = atomicCAS(args.table + slot, EMPTY, i);
      if (found == EMPTY || found == i) break;
      if (Keys::same(args.keys, found, i)) {
        if (i < found) atomicMin(args.table + slot, i);
        break;
      }
      slot = (slot + 1) & args.mask;
    }
    args.slots[i] = u32(slot);
  }
}

INLINE void flag_firsts(const GroupArgs &args) {
  const u64 step = u64(gridDim.x) * blockDim.x;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += step)
    args.flags[i] = args.table[args.slots[i]] == u32(i);
}

// Replaces the content of each slot by the number of its group.
INLINE void number_groups(const GroupArgs &args) {
  const u64 step = u64(gridDim.x) * blockDim.x, groups = *args.groups;
  for (u64 g = u64(blockIdx.x) * blockDim.x + threadIdx.x; g < groups; g += step) args.table[args.slots[args.firsts[g]]] = u32(g);
}

INLINE void tell_groups(const GroupArgs &args) {
  __shared__ u32 counts[FEW_GROUPS];
  const u64 step = u64(gridDim.x) * blockDim.x, groups = *args.groups;
  const bool few = args.counts && groups <= FEW_GROUPS;
  if (few) {
    for (u32 g = threadIdx.x; g < groups; g += blockDim.x) counts[g] = 0;
    __syncthreads();
  }
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count; i += step) {
    const u32 group = args.table[args.slots[i]];
    args.group_of[i] = group;
    if (few) atomicAdd(&counts[group], 1u);
    else if (args.counts) atomicAdd(args.counts + group, 1u);
  }
  if (few) {
    __syncthreads();
    for (u32 g = threadIdx.x; g < groups; g += blockDim.x)
      if (counts[g]) atomicAdd(args.counts + g, counts[g]);
  }
}
