// The text programs of benchmark/mapreduce.rb in C with OpenMP. Each thread groups its part of the input in tables of
// its own, one for each thread. Then thread t merges the t-th tables of all threads: the upper bits of a key's hash
// choose the table. Bytes of keys are compared, and stay in the input.
//
//     gcc -O3 -march=native -fopenmp -std=gnu11 by_hand.c -o by_hand && ./by_hand words|histogram|pages|grep FILE RUNS
//
// Prints as JSON the milliseconds of each run from the text in memory to the merged tables, and the checksum of the
// result.
#include "common.h"

#include <omp.h>

typedef struct {
  uint64_t hash, head; // head: the first bytes of the key
  const char *key;
  uint32_t size;
  uint32_t count; // 0: a free slot
} Slot;

typedef struct {
  Slot *slots;
  size_t mask, used;
} Table;

static inline uint64_t word_at(const char *at) {
  uint64_t word;
  memcpy(&word, at, 8);
  return word;
}

// Reads up to 7 bytes behind the key: the input has zeros behind it.
static inline uint64_t head_of(const char *key, uint32_t size) { return size < 8 ? word_at(key) & ((1ull << 8 * size) - 1) : word_at(key); }
static inline uint64_t hash_of(const char *key, uint32_t size) {
  uint64_t hash = size;
  for (uint32_t i = 0; i + 8 <= size; i += 8) hash = (hash ^ word_at(key + i)) * 0x9e3779b97f4a7c15ull, hash ^= hash >> 32;
  if (size & 7) hash = (hash ^ (word_at(key + (size & ~7u)) & ((1ull << 8 * (size & 7)) - 1))) * 0x9e3779b97f4a7c15ull;
  return mix(hash);
}

static void resize(Table *table, size_t slots) {
  const Table old = *table;
  table->slots = calloc(slots, sizeof(Slot));
  if (!table->slots) exit(1);
  table->mask = slots - 1;
  for (size_t i = 0; old.slots && i <= old.mask; ++i) {
    if (!old.slots[i].count) continue;
    size_t at = old.slots[i].hash & table->mask;
    while (table->slots[at].count) at = (at + 1) & table->mask;
    table->slots[at] = old.slots[i];
  }
  free(old.slots);
}

// Adds to the count of a key.
static inline void add(Table *table, uint64_t hash, uint64_t head, const char *key, uint32_t size, uint32_t count) {
  if (!table->slots) resize(table, 256);
  size_t at = hash & table->mask;
  for (Slot *slot; (slot = &table->slots[at])->count; at = (at + 1) & table->mask)
    if (slot->hash == hash && slot->head == head && slot->size == size && (size <= 8 || !memcmp(slot->key + 8, key + 8, size - 8))) {
      slot->count += count;
      return;
    }
  table->slots[at] = (Slot){hash, head, key, size, count};
  if (++table->used * 2 > table->mask) resize(table, 2 * (table->mask + 1));
}

static int threads;
// Row t has the tables of thread t. After a merge, the t-th column is in table t of row 0.
typedef Table *Tables;

static Tables make_tables(void) { return calloc((size_t)threads * threads, sizeof(Table)); }
static void free_tables(Tables tables) {
  for (int i = 0; i < threads * threads; ++i) free(tables[i].slots);
  free(tables);
}
static inline Table *table_of(Tables tables, int thread, uint64_t hash) {
  return &tables[(size_t)thread * threads + (size_t)((hash >> 40) * (uint64_t)threads >> 24)];
}
static inline void count(Tables tables, int thread, const char *key, uint32_t size) {
  const uint64_t hash = hash_of(key, size);
  add(table_of(tables, thread, hash), hash, head_of(key, size), key, size, 1);
}

// Merges the column of this thread.
static void merge(Tables tables, int thread) {
  for (int other = 1; other < threads; ++other) {
    const Table *from = &tables[(size_t)other * threads + thread];
    for (size_t i = 0; from->slots && i <= from->mask; ++i) {
      const Slot *slot = &from->slots[i];
      if (slot->count) add(&tables[thread], slot->hash, slot->head, slot->key, slot->size, slot->count);
    }
  }
}

static Checksum checksum(Tables tables) {
  Checksum sum = {0, 0, 0};
  for (int t = 0; t < threads; ++t)
    for (size_t i = 0; tables[t].slots && i <= tables[t].mask; ++i)
      if (tables[t].slots[i].count) add_entry(&sum, tables[t].slots[i].key, tables[t].slots[i].size, tables[t].slots[i].count);
  return sum;
}

// The part of this thread. It begins behind the first byte `last` at or after an even cut.
static void part_of(const char *text, size_t size, int thread, int (*last)(unsigned char), const char **begin, const char **end) {
  const char *cut[2];
  for (int i = 0; i < 2; ++i) {
    size_t at = size * (size_t)(thread + i) / threads;
    while (at > 0 && at < size && !last(text[at - 1])) ++at;
    cut[i] = text + at;
  }
  *begin = cut[0], *end = cut[1];
}
static int is_newline(unsigned char c) { return c == '\n'; }

static Checksum words(const char *text, size_t size, double *ended) {
  unsigned char space[256];
  for (int c = 0; c < 256; ++c) space[c] = is_space(c);
  Tables tables = make_tables();
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
    const char *at, *end;
    part_of(text, size, thread, is_space, &at, &end);
    for (;;) {
      while (at < end && space[(unsigned char)*at]) ++at;
      if (at >= end) break;
      const char *begin = at;
      while (at < end && !space[(unsigned char)*at]) ++at;
      count(tables, thread, begin, (uint32_t)(at - begin));
    }
#pragma omp barrier
    merge(tables, thread);
  }
  *ended = omp_get_wtime();
  const Checksum sum = checksum(tables);
  free_tables(tables);
  return sum;
}

static Checksum histogram(const char *bytes, size_t size, double *ended) {
  static uint64_t bins[768];
  memset(bins, 0, sizeof bins);
  const size_t pixels = size / 3;
#pragma omp parallel num_threads(threads)
  {
    // Two copies, so that equal neighbours do not wait for each other.
    uint32_t own[2][768] = {{0}};
    const int thread = omp_get_thread_num();
    const unsigned char *at = (const unsigned char *)bytes + 3 * (pixels * thread / threads);
    const unsigned char *end = (const unsigned char *)bytes + 3 * (pixels * (thread + 1) / threads);
    for (int copy = 0; at < end; at += 3, copy ^= 1) ++own[copy][at[0]], ++own[copy][256 + at[1]], ++own[copy][512 + at[2]];
    for (int i = 0; i < 768; ++i)
#pragma omp atomic
      bins[i] += own[0][i] + own[1][i];
  }
  *ended = omp_get_wtime();
  Checksum sum = {0, 0, 0};
  for (uint32_t key = 0; key < 768; ++key)
    if (bins[key]) add_entry(&sum, &key, 4, bins[key]);
  return sum;
}

// Lines are "URL IP COOKIE". First the different "URL IP", then these by URL.
static Checksum pages(const char *text, size_t size, double *ended) {
  Tables visits = make_tables(), urls = make_tables();
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
    const char *at, *end;
    part_of(text, size, thread, is_newline, &at, &end);
    while (at < end) {
      const char *line = memchr(at, '\n', end - at), *url = memchr(at, ' ', end - at), *ip = memchr(url + 1, ' ', end - url - 1);
      count(visits, thread, at, (uint32_t)(ip - at));
      at = line ? line + 1 : end;
    }
#pragma omp barrier
    merge(visits, thread);
    const Table *own = &visits[thread];
    for (size_t i = 0; own->slots && i <= own->mask; ++i)
      if (own->slots[i].count) count(urls, thread, own->slots[i].key, (uint32_t)((const char *)memchr(own->slots[i].key, ' ', own->slots[i].size) - own->slots[i].key));
#pragma omp barrier
    merge(urls, thread);
  }
  *ended = omp_get_wtime();
  const Checksum sum = checksum(urls);
  free_tables(visits);
  free_tables(urls);
  return sum;
}

// The first words of lines that / 5\d\d / matches.
static Checksum grep(const char *text, size_t size, double *ended) {
  Tables tables = make_tables();
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
    const char *at, *end;
    part_of(text, size, thread, is_newline, &at, &end);
    while (at < end) {
      const char *line = memchr(at, '\n', end - at);
      if (!line) line = end;
      for (const char *place = at; (place = memchr(place, ' ', line - place)) && place + 5 <= line; ++place)
        if (is_error(place)) {
          const char *word = at;
          while (!is_space(*word)) ++word;
          count(tables, thread, at, (uint32_t)(word - at));
          break;
        }
      at = line + 1;
    }
#pragma omp barrier
    merge(tables, thread);
  }
  *ended = omp_get_wtime();
  const Checksum sum = checksum(tables);
  free_tables(tables);
  return sum;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  size_t size;
  char *text = read_file(argv[2], &size, malloc);
  threads = omp_get_max_threads();
  const int runs = atoi(argv[3]);
  double times[runs];
  Checksum sum = {0, 0, 0};
  for (int run = -1; run < runs; ++run) {
    const double began = omp_get_wtime();
    double ended;
    switch (argv[1][0]) {
    case 'w': sum = words(text, size, &ended); break;
    case 'h': sum = histogram(text, size, &ended); break;
    case 'p': sum = pages(text, size, &ended); break;
    case 'g': sum = grep(text, size, &ended); break;
    default: return 2;
    }
    if (run >= 0) times[run] = (ended - began) * 1e3;
  }
  printf("{");
  print_list("total", times, runs);
  printf("\"threads\": %d, ", threads);
  print_checksum(sum);
  printf("}\n");
}
