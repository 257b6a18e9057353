// What the programs of benchmark/mapreduce.rb have in common, in C and in CUDA: input, what a word is, the checksum of
// a result, and the line of JSON.
//
// A result has one entry for each key. Its checksum does not depend on the order of entries: each is mixed from the
// CRC-32 of the key's bytes and the number, and these are added. benchmark/mapreduce.rb computes the same of Ikra's
// result. The key of a histogram is an Integer of 4 bytes.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __CUDACC__
#define BOTH __host__ __device__ inline
#else
#define BOTH static inline
#endif

// As Ruby's String#split and \s have it.
BOTH int is_space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
BOTH int is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

// Whether / 5\d\d / matches at these five bytes.
BOTH int is_error(const char *at) { return at[0] == ' ' && at[1] == '5' && is_digit(at[2]) && is_digit(at[3]) && at[4] == ' '; }

BOTH uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

typedef struct {
  uint64_t keys, sum, hash;
} Checksum;

static uint32_t crc_table[256];
static uint32_t crc32_of(const void *bytes, size_t size) {
  if (!crc_table[1])
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
      crc_table[i] = c;
    }
  uint32_t c = ~0u;
  for (const unsigned char *at = (const unsigned char *)bytes, *end = at + size; at < end; ++at) c = crc_table[(c ^ *at) & 255] ^ c >> 8;
  return ~c;
}

static inline void add_entry(Checksum *to, const void *key, size_t size, uint64_t number) {
  to->keys += 1;
  to->sum += number;
  to->hash += mix(crc32_of(key, size) + (number << 32));
}

static void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

// The bytes of a file, with 64 bytes of zeros behind them. `allocate` is malloc, or gives page-locked memory.
static char *read_file(const char *path, size_t *size, void *(*allocate)(size_t)) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) fail(path, "cannot be read");
  *size = (size_t)ftell(file);
  rewind(file);
  char *bytes = (char *)allocate(*size + 64);
  if (!bytes || fread(bytes, 1, *size, file) != *size) fail(path, "cannot be read");
  memset(bytes + *size, 0, 64);
  fclose(file);
  return bytes;
}

// "name": [milliseconds of each run], and the whole line.
static void print_list(const char *name, const double *milliseconds, int runs) {
  printf("\"%s\": [", name);
  for (int i = 0; i < runs; ++i) printf("%s%.6f", i ? ", " : "", milliseconds[i]);
  printf("], ");
}
static void print_checksum(Checksum sum) {
  printf("\"keys\": %llu, \"sum\": %llu, \"hash\": \"%016llx\"", (unsigned long long)sum.keys, (unsigned long long)sum.sum, (unsigned long long)sum.hash);
}
