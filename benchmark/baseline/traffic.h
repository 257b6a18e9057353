// The deterministic traffic simulation (examples/traffic/own_dice.rb) as columns: what traffic.c and traffic.cu share.
//
// Here: the file they read and write, and the arithmetic of one actor's second, in the order in which Ruby does it.
// Not here: the loops over actors and ticks, which is where the two differ.
// Build without contraction (-ffp-contract=off, -fmad=false), and with -DKEEP_STREET to hold a street's fields in registers
// until the actor leaves it, which Ruby's program does not say and a person would write second.

#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __CUDACC__
#define EACH static __host__ __device__ __forceinline__
#else
#define EACH static inline
#endif

typedef struct {
  int64_t magic, streets, neighbors, roads, cars, buses, pedestrians, ticks;
  double car_grip, bus_grip;
} header;

#define MAGIC 0x4646415254 // "TRAFF"

// Streets first, each one's ways on from offset[street] to offset[street + 1]; then actors: cars, buses, pedestrians.
typedef struct {
  header h;
  double *length, *limit;
  int32_t *neighbor_offset, *neighbor, *road_offset, *road;
  double *progress, *max_velocity;
  int32_t *street, *dice;
} world;

typedef struct {
  double progress;
  int32_t street;
  uint32_t dice;
#ifdef KEEP_STREET
  double length, limit;
#endif
} actor;

#ifdef KEEP_STREET
#define LENGTH(a, w) ((a)->length)
#define LIMIT(a, w) ((a)->limit)
#else
#define LENGTH(a, w) ((w)->length[(a)->street])
#define LIMIT(a, w) ((w)->limit[(a)->street])
#endif

EACH void look(actor *a, const world *w) {
#ifdef KEEP_STREET
  a->length = w->length[a->street];
  a->limit = w->limit[a->street];
#else
  (void)a;
  (void)w;
#endif
}

EACH actor load(const world *w, int64_t i) {
  actor a;
  a.progress = w->progress[i];
  a.street = w->street[i];
  a.dice = (uint32_t)w->dice[i];
  look(&a, w);
  return a;
}

EACH void store(const world *w, int64_t i, const actor *a) {
  w->progress[i] = a->progress;
  w->street[i] = a->street;
  w->dice[i] = (int32_t)a->dice;
}

EACH uint32_t roll(actor *a) {
  a->dice = (a->dice * 1103515245u + 12345u) & 0x7fffffffu;
  return a->dice;
}

EACH void advance(actor *a, const world *w, double distance, const int32_t *offset, const int32_t *way) {
  a->progress += distance;
  if (a->progress < 0.0) {
    a->progress = 0.0;
  } else if (a->progress >= LENGTH(a, w)) {
    int32_t first = offset[a->street], ways = offset[a->street + 1] - first;
    if (ways == 0) {
      a->progress = LENGTH(a, w);
    } else {
      a->street = way[first + (int32_t)((roll(a) >> 16) % (uint32_t)ways)];
      a->progress = 0.0;
      look(a, w);
    }
  }
}

EACH void drive(actor *a, const world *w, double max_velocity, double grip) {
  double limit = LIMIT(a, w);
  double velocity = max_velocity < limit ? max_velocity : limit;
  advance(a, w, velocity * grip, w->road_offset, w->road);
}

EACH void walk(actor *a, const world *w) {
  double pace = -2.0 + 6.0 * (double)roll(a) / 2147483648.0;
  advance(a, w, pace * 0.44704, w->neighbor_offset, w->neighbor);
}

static inline void fail(const char *what, const char *path) {
  fprintf(stderr, "%s: %s\n", what, path);
  exit(1);
}

static inline void *column(FILE *file, size_t count, size_t size, const char *path) {
  void *data = malloc(count ? count * size : 1);
  if (!data) fail("no memory for", path);
  if (fread(data, size, count, file) != count) fail("too short", path);
  return data;
}

static inline int64_t actors(const world *w) { return w->h.cars + w->h.buses + w->h.pedestrians; }

static inline world read_world(const char *path) {
  world w;
  FILE *file = fopen(path, "rb");
  if (!file || fread(&w.h, sizeof w.h, 1, file) != 1 || w.h.magic != MAGIC) fail("not an input of this program", path);
  size_t streets = (size_t)w.h.streets, count = (size_t)actors(&w);
  w.length = (double *)column(file, streets, sizeof(double), path);
  w.limit = (double *)column(file, streets, sizeof(double), path);
  w.neighbor_offset = (int32_t *)column(file, streets + 1, sizeof(int32_t), path);
  w.neighbor = (int32_t *)column(file, (size_t)w.h.neighbors, sizeof(int32_t), path);
  w.road_offset = (int32_t *)column(file, streets + 1, sizeof(int32_t), path);
  w.road = (int32_t *)column(file, (size_t)w.h.roads, sizeof(int32_t), path);
  w.progress = (double *)column(file, count, sizeof(double), path);
  w.max_velocity = (double *)column(file, count, sizeof(double), path);
  w.street = (int32_t *)column(file, count, sizeof(int32_t), path);
  w.dice = (int32_t *)column(file, count, sizeof(int32_t), path);
  fclose(file);
  return w;
}

static inline void write_actors(const world *w, const char *path) {
  FILE *file = fopen(path, "wb");
  size_t count = (size_t)actors(w);
  if (!file || fwrite(w->progress, sizeof(double), count, file) != count || fwrite(w->street, sizeof(int32_t), count, file) != count ||
      fwrite(w->dice, sizeof(int32_t), count, file) != count || fclose(file))
    fail("cannot write", path);
}

static inline void print_seconds(const char *name, const double *seconds, int runs, const char *after) {
  printf("\"%s\": [", name);
  for (int run = 0; run < runs; run++) printf("%s%.9f", run ? ", " : "", seconds[run]);
  printf("]%s", after);
}
