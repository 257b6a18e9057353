// What every program in C shares: it reads the columns (columns.rb describes the file), runs `compute` several times, each time on columns
// that were written anew, and writes the outputs.
//
//   OMP_NUM_THREADS=4 ./program INPUT OUTPUT RUNS     # prints {"threads": 4, "seconds": [...]}; one run before them is not counted
//
// Measured: `compute` alone, neither files nor copies.
//
// How fast a program is that is bound by memory depends on where its numbers are when it begins, and on whether the machine has rested. So each run
// begins as a kernel of Ikra's does: Ruby's GC, one thread, has gone over the objects (run.rb starts it before each run), and then all threads have
// read these, and written the columns. Here a second copy of the columns is in place of the objects.

#pragma once
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What a program is.
static void compute(void);

typedef struct {
  char name[24], type, output, nothing[6];
  int64_t count;
} heading;

// The numbers that a program works on, and the same as they were read.
typedef struct {
  heading h;
  void *data, *before;
  size_t bytes;
} column;

static column *columns;
static int64_t column_count;

static void fail(const char *what, const char *which) {
  fprintf(stderr, "%s: %s\n", what, which);
  exit(1);
}

static column *find(const char *name, char type) {
  for (int64_t c = 0; c < column_count; c++)
    if (strncmp(columns[c].h.name, name, sizeof columns[c].h.name) == 0) {
      if (type && columns[c].h.type != type) fail("a column of another type", name);
      return &columns[c];
    }
  fail("no such column", name);
  return NULL;
}

// Columns by name, and numbers by themselves.
static inline double *floats(const char *name) { return (double *)find(name, 'd')->data; }
static inline int64_t *integers(const char *name) { return (int64_t *)find(name, 'q')->data; }
static inline int32_t *narrow(const char *name) { return (int32_t *)find(name, 'l')->data; }
static inline uint8_t *bytes(const char *name) { return (uint8_t *)find(name, 'C')->data; }
static inline int64_t size(const char *name) { return find(name, 0)->h.count; }
static inline int64_t integer(const char *name) { return integers(name)[0]; }
static inline double number(const char *name) { return floats(name)[0]; }

static size_t width(char type) { return type == 'C' ? 1 : type == 'l' ? 4 : 8; }

// Memory that begins where vectors like it.
static void *room(size_t size) {
  void *data = aligned_alloc(64, (size + 127) / 64 * 64);
  if (!data) fail("no memory", "columns");
  return data;
}

static void read_columns(const char *path) {
  FILE *file = fopen(path, "rb");
  char magic[8];
  if (!file || fread(magic, 8, 1, file) != 1 || memcmp(magic, "IKRACOLS", 8) || fread(&column_count, 8, 1, file) != 1) fail("no columns", path);
  columns = (column *)calloc((size_t)column_count, sizeof(column));
  for (int64_t c = 0; c < column_count; c++)
    if (fread(&columns[c].h, sizeof(heading), 1, file) != 1) fail("too short", path);
  for (int64_t c = 0; c < column_count; c++) {
    columns[c].bytes = (size_t)columns[c].h.count * width(columns[c].h.type);
    size_t padded = (columns[c].bytes + 7) / 8 * 8;
    columns[c].data = room(padded);
    columns[c].before = room(padded);
    if (fread(columns[c].before, 1, padded, file) != padded) fail("too short", path);
    memcpy(columns[c].data, columns[c].before, padded);
  }
  fclose(file);
}

// All that was read is looked at once by one thread, while the others rest: one number after the other, which takes about as long as marking an
// Array of so many.
static void mark(void) {
  uint64_t all = 0;
  for (int64_t c = 0; c < column_count; c++)
    for (size_t at = 0; at + 8 <= columns[c].bytes; at += 8) all = 31 * all + *(const uint64_t *)((const char *)columns[c].before + at);
  static volatile uint64_t seen;
  seen = all;
  (void)seen;
}

// Bytes that a thread copies at once: as many as Ikra packs, and few enough that they go through the caches.
enum { PIECE = 4096 * 8 };

// A column as it was. Each thread writes the part that it reads first in a loop over all rows: what writes columns in a program is the program's
// own threads, be it one or as many as there are cores.
static void restore(const column *column) {
#pragma omp parallel for schedule(static)
  for (size_t at = 0; at < column->bytes; at += PIECE) {
    const size_t left = column->bytes - at;
    memcpy((char *)column->data + at, (const char *)column->before + at, left < PIECE ? left : PIECE);
  }
}

// Outputs first: those that are results, and no inputs as well, nobody has touched before Ikra's kernels for as long as the packing takes.
static void begin(void) {
  mark();
  for (int output = 1; output >= 0; output--)
    for (int64_t c = 0; c < column_count; c++)
      if (columns[c].h.output == output) restore(&columns[c]);
}

static void write_outputs(const char *path) {
  FILE *file = fopen(path, "wb");
  int64_t outputs = 0;
  for (int64_t c = 0; c < column_count; c++) outputs += columns[c].h.output;
  int good = file && fwrite("IKRACOLS", 8, 1, file) == 1 && fwrite(&outputs, 8, 1, file) == 1;
  for (int64_t c = 0; good && c < column_count; c++)
    if (columns[c].h.output) good = fwrite(&columns[c].h, sizeof(heading), 1, file) == 1;
  for (int64_t c = 0; good && c < column_count; c++)
    if (columns[c].h.output) {
      size_t padded = (columns[c].bytes + 7) / 8 * 8;
      good = fwrite(columns[c].data, 1, padded, file) == padded;
    }
  if (!good || fclose(file)) fail("cannot write", path);
}

int main(int argc, char **argv) {
  if (argc != 4) fail("usage", "program INPUT OUTPUT RUNS");
  int runs = atoi(argv[3]);
  read_columns(argv[1]);
  double *seconds = (double *)calloc((size_t)runs + 1, sizeof(double));
  for (int run = 0; run <= runs; run++) {
    begin();
    const double start = omp_get_wtime();
    compute();
    seconds[run] = omp_get_wtime() - start;
    // No more, but two, than ten seconds have room for.
    const int room_for = (int)fmax(2, fmin(10 / fmax(seconds[0], 1e-6), 1e6));
    if (run == 0 && runs > room_for) runs = room_for;
  }
  write_outputs(argv[2]);
  printf("{\"threads\": %d, \"seconds\": [", omp_get_max_threads());
  for (int run = 1; run <= runs; run++) printf("%s%.9f", run > 1 ? ", " : "", seconds[run]);
  printf("]}\n");
}
