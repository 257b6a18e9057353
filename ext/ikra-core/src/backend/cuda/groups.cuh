// Groups of the pairs that a kernel emits: values of equal keys are combined while it runs.
//
// A lock-free hash table with open addressing, into which keys are only inserted. A slot holds a fingerprint of a key's
// hash and the number of a record. The record is written before one compare-and-swap publishes it, so no thread waits
// for a key that is only half there. Records lie side by side. Threads run in any order, and the numbers of records
// depend on that order. The least order of each key's pairs does not, and it decides where the group is.
//
// A record has the first bytes of a String. So a pair whose key is known and has up to eight bytes reads no bytes of
// the known one. States, which change, lie apart from records: atomic operations would delay threads that read keys.
//
// Where records are used up, pairs of further keys are lost. A counter says how many records the launch needed. If they
// are more than there were, the host runs the launch again with more.
//
// In front of this table, each block of threads has a small one in shared memory, for keys of one word that it meets
// first. An entry has what the block's values of its key combine to. In the end the block adds all entries to the large
// table. A pair for which there is no entry, or none that is ready, goes to the large table, so no thread waits here.
// Keys in a small range need no search: the block has a cell for each, where values are Integers that are added.
// Source: Soren, 2011, has tables of blocks of threads for programs with few keys.

// The order of a record whose key another record has: two threads inserted it at the same time.
const u64 NO_RECORD = 0xffffffffffffffffull;
const u64 COMBINE_SUM = 0, COMBINE_MIN = 1, COMBINE_MAX = 2, COMBINE_AND = 3, COMBINE_FLOATS = 5;

struct Record {
  u64 key;
  // The first bytes of a String (bytes_at). Otherwise 0.
  u64 head;
};

struct State {
  // The least order.
  u64 first;
  // What values combine to. Of a sum the lowest word.
  u64 total;
};

struct GroupTable {
  // A power of two of them, all 0 before the launch.
  u64 *slots;
  u64 mask;
  Record *records;
  State *states;
  // The second word of each sum.
  u64 *highs;
  u64 count;
  // How many records were asked for, how many words of keys of several parts, whether some pair is not for tables, and
  // whether a value was -0.0.
  u64 *asked;
  u64 combine;
  u64 seed;
  // The keys of several parts, of which a record has the place.
  u64 *words;
  // For sums of Floats: the third word of each.
  u64 *tops;
  // Whether values are bits of Floats. Then how sums are kept: see collective/float_totals.rs.
  u64 floats;
  i64 first_exponent;
  i64 max_shift;
  // The word of the first cell, and how many cells there are.
  u64 first_cell;
  u64 cells;
};

INLINE void refuse(const GroupTable &table) { *(volatile u64 *)(table.asked + 2) = 1; }

// A sum of Floats in fixed point, in two's complement: the lowest word is the first one.
const u32 SUM_WORDS = 3;
struct FixedSum {
  u64 words[SUM_WORDS];
};

// Whether all bits of a Float are in the words.
INLINE bool fixed_of(const GroupTable &table, i64 bits, FixedSum &sum) {
  for (u32 i = 0; i < SUM_WORDS; ++i) sum.words[i] = 0;
  const i64 exponent = bits >> 52 & 0x7ff;
  u64 number = u64(bits) & 0xfffffffffffffull;
  if (exponent == 0) return number == 0;
  number |= 1ull << 52;
  i64 shift = exponent - table.first_exponent;
  if (shift < 0) {
    if (shift < -52 || (number & ((1ull << -shift) - 1)) != 0) return false;
    number >>= -shift;
    shift = 0;
  }
  if (shift > table.max_shift) return false;
  const u32 first = u32(shift >> 6), place = u32(shift & 63);
  for (u32 i = 0; i < SUM_WORDS; ++i) {
    if (i == first) sum.words[i] = number << place;
    if (i == first + 1 && place > 0) sum.words[i] = number >> (64 - place);
  }
  if (bits < 0) {
    u64 carry = 1;
    for (u32 i = 0; i < SUM_WORDS; ++i) {
      sum.words[i] = ~sum.words[i] + carry;
      carry = carry != 0 && sum.words[i] == 0 ? 1 : 0;
    }
  }
  return true;
}

// The word in which the table has a value. -0.0 counts as 0.0. Least and greatest Floats are Integers of their order.
INLINE i64 word_of(const GroupTable &table, i64 value) {
  if (table.floats == 0) return value;
  if (u64(value) == 0x8000000000000000ull) {
    *(volatile u64 *)(table.asked + 3) = 1;
    return 0;
  }
  FixedSum sum;
  if (table.combine == COMBINE_FLOATS) {
    if (!fixed_of(table, value, sum)) refuse(table);
    return value;
  }
  if (u64(value) << 1 > 0xffe0000000000000ull) refuse(table);
  return value ^ (value >> 63 & 0x7fffffffffffffffll);
}

INLINE u64 hash_of(u64 key, u64 seed) {
  key = (key ^ key >> 32 ^ seed) * 0xd6e8feb86659fd93ull;
  key = (key ^ key >> 32) * 0xd6e8feb86659fd93ull;
  return key ^ key >> 32;
}

// Keys may be Strings: words with an offset (upper half), an encoding (bits 29 and 30) and a length (bits 0 to 27).
// Their bytes are read eight at a time. FIXED: the kernel writes no bytes, so that caches have what other threads saw.
INLINE u64 length_of(u64 key) { return key & 0xfffffff; }

// The first eight bytes, or all that are left. Memory has all words that have one of them.
template <bool FIXED>
INLINE u64 bytes_at(const u8 *from, u32 left) {
  const u32 count = left < 8 ? left : 8;
  const u64 *words = (const u64 *)((u64)from & ~7ull);
  const u32 shift = (u32((u64)from) & 7) * 8;
  u64 bytes = (FIXED ? __ldg(words) : *(const volatile u64 *)words) >> shift;
  if (count > 8 - shift / 8) bytes |= (FIXED ? __ldg(words + 1) : *(const volatile u64 *)(words + 1)) << (64 - shift);
  return count < 8 ? bytes & ((1ull << (count * 8)) - 1) : bytes;
}

// What is known of a key of one word: its hash and, for a String, its first bytes.
const u32 BYTES_OF_HEAD = 8;
struct WordHash {
  u64 hash;
  u64 head;
};
template <bool FIXED>
INLINE WordHash word_hash(const u8 *bytes, u64 key, u64 seed) {
  if (!bytes) return {hash_of(key, seed), 0};
  const u8 *text = bytes + (key >> 32);
  u32 left = u32(length_of(key));
  const u64 head = left > 0 ? bytes_at<FIXED>(text, left) : 0;
  u64 hash = hash_of((length_of(key) ^ seed) ^ head, seed);
  while (left > BYTES_OF_HEAD) {
    left -= BYTES_OF_HEAD;
    text += BYTES_OF_HEAD;
    hash = hash_of(hash ^ bytes_at<FIXED>(text, left), seed);
  }
  return {hash_of(hash, seed), head};
}
// Whether the bytes behind a number of equal ones are equal.
template <bool FIXED>
INLINE bool same_bytes(const u8 *one, const u8 *other, u32 length, u32 equal) {
  for (u32 at = equal; at < length; at += 8)
    if (bytes_at<FIXED>(one + at, length - at) != bytes_at<FIXED>(other + at, length - at)) return false;
  return true;
}
// Equal Strings of different encodings are different keys here. The host makes one of them where they are ASCII.
const u64 LENGTH_AND_ENCODING = 0x6fffffff;
template <bool FIXED>
INLINE bool same_text(const u8 *bytes, u64 known, u64 key) {
  if (known == key) return true;
  if (((known ^ key) & LENGTH_AND_ENCODING) != 0) return false;
  return same_bytes<FIXED>(bytes + (known >> 32), bytes + (key >> 32), u32(length_of(key)), 0);
}
// The same for Strings whose first bytes are known, and for other words.
template <bool FIXED>
INLINE bool same_word(const u8 *bytes, u64 known, u64 known_head, u64 key, u64 head) {
  if (known == key) return true;
  if (!bytes || ((known ^ key) & LENGTH_AND_ENCODING) != 0 || known_head != head) return false;
  return same_bytes<FIXED>(bytes + (known >> 32), bytes + (key >> 32), u32(length_of(key)), BYTES_OF_HEAD);
}

// Most pairs are not the first of their group, so the order is read before it is changed.
INLINE void note_order(u64 *first, u64 order) {
  if (order < *(volatile u64 *)first) atomicMin(first, order);
}

INLINE void combine_with(const GroupTable &table, u32 record, i64 value, u64 order) {
  u64 *low = &table.states[record].total;
  note_order(&table.states[record].first, order);
  if (table.combine == COMBINE_FLOATS) {
    FixedSum sum;
    fixed_of(table, value, sum);
    u64 *const words[SUM_WORDS] = {low, table.highs + record, table.tops + record};
    u64 carry = 0;
    for (u32 i = 0; i < SUM_WORDS; ++i) {
      const u64 more = sum.words[i] + carry;
      carry = more < carry ? 1 : 0;
      if (more == 0) continue;
      const u64 before = atomicAdd(words[i], more);
      if (before + more < before) carry = 1;
    }
  } else if (table.combine == COMBINE_SUM) {
    const u64 before = atomicAdd(low, u64(value));
    const u64 carry = before + u64(value) < before ? 1 : 0;
    const u64 more = carry + (value < 0 ? ~0ull : 0ull);
    if (more != 0) atomicAdd(table.highs + record, more);
  } else if (table.combine == COMBINE_MIN) {
    if (value < *(volatile i64 *)low) atomicMin((i64 *)low, value);
  } else if (table.combine == COMBINE_MAX) {
    if (value > *(volatile i64 *)low) atomicMax((i64 *)low, value);
  } else if (table.combine == COMBINE_AND) {
    atomicAnd(low, u64(value));
  } else {
    atomicOr(low, u64(value));
  }
}

// How often a thread looks for an entry. Most keys of a text have none, and each look costs all threads of a warp. With
// 8, counting words took twice the time.
const u32 ENTRY_TRIES = 4;
// The states of an entry that some thread writes, and of one that is ready. The upper half of the latter is the
// fingerprint of the key's hash. 0: the entry is free.
const u64 ENTRY_BUSY = 1, ENTRY_READY = 2;
// Terms of a block's sums are less than this. If the upper half of a sum reaches that, the pairs are not for tables.
const i32 TERM_LIMIT = 1 << 30;

template <u32 GROUPS>
struct BlockGroups {
  u64 states[GROUPS];
  u64 keys[GROUPS];
  u64 heads[GROUPS];
  u64 totals[GROUPS];
  u64 firsts[GROUPS];
};
template <u32 GROUPS>
INLINE BlockGroups<GROUPS> &block_groups() {
  __shared__ BlockGroups<GROUPS> groups;
  return groups;
}

// CELLS: how many cells there may be. 0: keys are Strings.
template <u32 CELLS>
struct BlockCells {
  u64 totals[CELLS];
  u64 firsts[CELLS];
};
template <u32 CELLS>
INLINE BlockCells<CELLS> &block_cells() {
  __shared__ BlockCells<CELLS> cells;
  return cells;
}

// All threads of the block call it, before the first pair.
template <u32 GROUPS, u32 CELLS>
INLINE void clear_block_groups(const GroupTable &table) {
  for (u32 at = threadIdx.x; at < GROUPS; at += blockDim.x) block_groups<GROUPS>().states[at] = 0;
  if constexpr (CELLS > 0) {
    for (u32 at = threadIdx.x; at < table.cells; at += blockDim.x) {
      block_cells<CELLS>().totals[at] = 0;
      block_cells<CELLS>().firsts[at] = NO_RECORD;
    }
  }
  __syncthreads();
}

INLINE bool is_term(i64 value) { return value < TERM_LIMIT && value > -TERM_LIMIT; }

// Whether a block may combine a value before the table does. Sums of Floats have more words than an entry.
INLINE bool block_takes(const GroupTable &table, i64 value) {
  if (table.combine == COMBINE_FLOATS) return false;
  return table.combine != COMBINE_SUM || is_term(value);
}

// Adds to a sum in shared memory, which adds words of 32 bits by itself, but not those of 64.
INLINE void add_in_halves(const GroupTable &table, u64 *total, i64 value) {
  u32 *halves = (u32 *)total;
  const u32 before = atomicAdd(halves, u32(value));
  const u32 more = u32(u64(value) >> 32) + (before + u32(value) < before ? 1 : 0);
  if (more != 0) {
    const i32 upper = i32(atomicAdd(halves + 1, more) + more);
    if (upper >= TERM_LIMIT || upper <= -TERM_LIMIT) refuse(table);
  }
}

INLINE void combine_in_block(const GroupTable &table, u64 *total, u64 *first, i64 value, u64 order) {
  if (table.combine == COMBINE_SUM) {
    add_in_halves(table, total, value);
  } else if (table.combine == COMBINE_MIN) {
    if (value < *(volatile i64 *)total) atomicMin((i64 *)total, value);
  } else if (table.combine == COMBINE_MAX) {
    if (value > *(volatile i64 *)total) atomicMax((i64 *)total, value);
  } else if (table.combine == COMBINE_AND) {
    atomicAnd(total, u64(value));
  } else {
    atomicOr(total, u64(value));
  }
  note_order(first, order);
}

// Two neighbouring words that other threads may have written, by one load.
INLINE void load_two(const u64 *from, u64 &one, u64 &other) {
#ifdef __CUDACC__
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(one), "=l"(other) : "l"(from));
#else
  one = *(const volatile u64 *)from;
  other = *(const volatile u64 *)(from + 1);
#endif
}

template <bool FIXED>
struct WordKey {
  const u8 *bytes;
  u64 word;
  u64 head;
  __device__ __forceinline__ bool put(const GroupTable &table, u64 record) const {
    table.records[record].key = word;
    table.records[record].head = head;
    return true;
  }
  __device__ __forceinline__ bool is(const GroupTable &table, u32 record) const {
    u64 known, known_head;
    load_two(&table.records[record].key, known, known_head);
    return same_word<FIXED>(bytes, known, known_head, word, head);
  }
};

// A key of several parts: see types/keys.rs. The first word is the head.
const u32 MAX_PARTS = 12, WORDS_OF_RECORD = 4;
const u64 CODE_INT = 4, CODE_FLOAT = 5, CODE_STR = 7;
struct KeyParts {
  u64 words[MAX_PARTS + 1];
  u32 len;
  u32 parts;
  // A NaN is equal to no other.
  bool alone;
};

INLINE void begin_key(KeyParts &key) {
  key.words[0] = 0;
  key.len = 1;
  key.parts = 0;
  key.alone = false;
}

INLINE void add_part(void *ctx_key, u64 code, u64 word) {
  KeyParts &key = *(KeyParts *)ctx_key;
  if (key.parts < MAX_PARTS) {
    key.words[0] |= code << (5 * key.parts);
    if (code >= CODE_INT && code <= CODE_STR) key.words[key.len++] = word;
    if (code == CODE_FLOAT && word << 1 > 0xffe0000000000000ull) key.alone = true;
  }
  ++key.parts;
}

// Only Strings that kernels made are compared by their bytes, because those of the host stay the very objects in an
// array. The host makes one group of those that are equal. So only the former are hashed by their bytes: equal Strings
// of the host would have one hash, and each would be compared with all before it.
const u64 STR_MADE = 0x80000000ull;
template <bool FIXED>
struct PartsKey {
  const u8 *bytes;
  const KeyParts &key;
  __device__ __forceinline__ bool put(const GroupTable &table, u64 record) const {
    const u64 at = atomicAdd(table.asked + 1, u64(key.len));
    if (at + key.len > table.count * WORDS_OF_RECORD) return false;
    for (u32 i = 0; i < key.len; ++i) table.words[at + i] = key.words[i];
    table.records[record].key = at;
    return true;
  }
  __device__ __forceinline__ bool is(const GroupTable &table, u32 record) const {
    const volatile u64 *known = table.words + *(volatile u64 *)&table.records[record].key;
    if (known[0] != key.words[0]) return false;
    u64 codes = key.words[0];
    for (u32 i = 1; i < key.len; codes >>= 5) {
      const u64 code = codes & 31;
      if (code < CODE_INT || code > CODE_STR) continue;
      const u64 one = known[i], other = key.words[i];
      const bool text = code == CODE_STR && (one & other & STR_MADE) != 0;
      if (one != other && !(text && same_text<FIXED>(bytes, one, other))) return false;
      ++i;
    }
    return true;
  }
  __device__ __forceinline__ u64 hash(u64 seed) const {
    u64 hash = hash_of(key.words[0], seed);
    u64 codes = key.words[0];
    for (u32 i = 1; i < key.len; codes >>= 5) {
      const u64 code = codes & 31;
      if (code < CODE_INT || code > CODE_STR) continue;
      const u64 word = key.words[i++];
      const bool text = code == CODE_STR && (word & STR_MADE) != 0;
      hash = hash_of(hash ^ (text ? word_hash<FIXED>(bytes, word, seed).hash : word), seed);
    }
    return hash;
  }
};

// A record for a new key, plus 1. 0: there is no room.
template <typename Key>
static __device__ u64 new_record(const GroupTable &table, const Key &key, i64 value, i64 order) {
  const u64 record = atomicAdd(table.asked, 1ull);
  if (record >= table.count || !key.put(table, record)) return 0;
  State &own = table.states[record];
  own.first = u64(order);
  if (table.combine == COMBINE_FLOATS) {
    FixedSum sum;
    fixed_of(table, value, sum);
    own.total = sum.words[0];
    table.highs[record] = sum.words[1];
    table.tops[record] = sum.words[2];
    return record + 1;
  }
  own.total = u64(value);
  table.highs[record] = value < 0 ? ~0ull : 0ull;
  return record + 1;
}

template <typename Key>
static __device__ void add_to(const GroupTable &table, const Key &key, u64 hash, i64 value, u64 order) {
  const u64 print = hash & 0xffffffff00000000ull;
  u64 own = 0;
  u64 at = hash & table.mask;
  while (true) {
    u64 slot = *(volatile u64 *)(table.slots + at);
    if (slot == 0) {
      if (own == 0) {
        own = new_record(table, key, value, i64(order));
        if (own == 0) return;
        __threadfence();
      }
      slot = atomicCAS(table.slots + at, 0ull, print | own);
      if (slot == 0) return;
    }
    const u32 record = u32(slot) - 1;
    if ((slot & 0xffffffff00000000ull) == print && key.is(table, record)) {
      if (own != 0) table.states[own - 1].first = NO_RECORD;
      combine_with(table, record, value, order);
      return;
    }
    at = (at + 1) & table.mask;
  }
}

// Adds a pair to the block's table. False: no entry is free for it or has its key.
template <u32 GROUPS, bool FIXED>
static __device__ bool add_in_block(
    const GroupTable &table, const WordKey<FIXED> &key, u64 hash, i64 value, u64 order) {
  BlockGroups<GROUPS> &own = block_groups<GROUPS>();
  const u64 ready = (hash & 0xffffffff00000000ull) | ENTRY_READY;
  u32 at = u32(hash >> 22) % GROUPS;
  for (u32 tries = 0; tries < ENTRY_TRIES; ++tries) {
    u64 state = *(volatile u64 *)(own.states + at);
    if (state == 0) {
      state = atomicCAS(own.states + at, 0ull, ENTRY_BUSY);
      if (state == 0) {
        own.keys[at] = key.word;
        own.heads[at] = key.head;
        own.totals[at] = u64(value);
        own.firsts[at] = order;
        __threadfence_block();
        *(volatile u64 *)(own.states + at) = ready;
        return true;
      }
    }
    if (state == ENTRY_BUSY) continue;
    const u64 known = *(volatile u64 *)(own.keys + at), head = *(volatile u64 *)(own.heads + at);
    if (state == ready && same_word<FIXED>(key.bytes, known, head, key.word, key.head)) {
      combine_in_block(table, own.totals + at, own.firsts + at, value, order);
      return true;
    }
    at = (at + 1) % GROUPS;
  }
  return false;
}

// Adds the entries of the block's table to the large one. All threads of the block call it, behind the last pair.
template <u32 GROUPS, u32 CELLS, bool FIXED>
INLINE void merge_block_groups(const GroupTable &table, const u8 *bytes) {
  __syncthreads();
  const BlockGroups<GROUPS> &own = block_groups<GROUPS>();
  for (u32 at = threadIdx.x; at < GROUPS; at += blockDim.x) {
    if (own.states[at] == 0) continue;
    const u64 key = own.keys[at];
    const WordHash own_hash = word_hash<FIXED>(bytes, key, table.seed);
    const WordKey<FIXED> found = {bytes, key, own_hash.head};
    add_to(table, found, own_hash.hash, i64(own.totals[at]), own.firsts[at]);
  }
  if constexpr (CELLS > 0) {
    const BlockCells<CELLS> &cells = block_cells<CELLS>();
    for (u32 at = threadIdx.x; at < table.cells; at += blockDim.x) {
      if (cells.firsts[at] == NO_RECORD) continue;
      const u64 key = table.first_cell + at;
      add_to(table, WordKey<FIXED>{bytes, key, 0}, hash_of(key, table.seed), i64(cells.totals[at]), cells.firsts[at]);
    }
  }
}

template <u32 GROUPS, bool FIXED>
static __device__ __noinline__ void add_by_hash(
    const GroupTable &table, const u8 *bytes, i64 key, i64 value, i64 order) {
  const WordHash own = word_hash<FIXED>(bytes, u64(key), table.seed);
  const WordKey<FIXED> word = {bytes, u64(key), own.head};
  value = word_of(table, value);
  if (block_takes(table, value) && add_in_block<GROUPS, FIXED>(table, word, own.hash, value, u64(order))) return;
  add_to(table, word, own.hash, value, u64(order));
}

template <u32 GROUPS, u32 CELLS, bool FIXED>
INLINE void add_pair(const GroupTable &table, const u8 *bytes, i64 key, i64 value, i64 order) {
  if constexpr (CELLS > 0) {
    const u64 cell = u64(key) - table.first_cell;
    if (cell < table.cells && is_term(value)) {
      BlockCells<CELLS> &own = block_cells<CELLS>();
      add_in_halves(table, own.totals + cell, value);
      note_order(own.firsts + cell, u64(order));
      return;
    }
  }
  add_by_hash<GROUPS, FIXED>(table, bytes, key, value, order);
}

template <bool FIXED>
static __device__ __noinline__ void add_parts(
    const GroupTable &table, const u8 *bytes, void *ctx_key, i64 value, i64 order) {
  KeyParts &parts = *(KeyParts *)ctx_key;
  const PartsKey<FIXED> key = {bytes, parts};
  value = word_of(table, value);
  if (parts.parts > MAX_PARTS) {
    refuse(table);
  } else if (parts.alone) {
    new_record(table, key, value, order);
  } else {
    add_to(table, key, key.hash(table.seed), value, u64(order));
  }
  begin_key(parts);
}
