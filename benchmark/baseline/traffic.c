// The traffic simulation on CPU cores, by hand.
//
//   gcc -O3 -march=native -ffp-contract=off -fopenmp traffic.c -o traffic
//   OMP_NUM_THREADS=4 ./traffic INPUT OUTPUT RUNS     # prints {"threads": 4, "seconds": [...]}
//
// Structure of arrays, actors sorted by type, all ticks of an actor in registers. Measured: the loops alone, neither files nor copies.

#include "traffic.h"
#include <omp.h>

static void simulate(const world *w) {
  const int64_t cars = w->h.cars, vehicles = cars + w->h.buses, all = actors(w), ticks = w->h.ticks;
#pragma omp parallel
  {
#pragma omp for schedule(dynamic, 4096) nowait
    for (int64_t i = 0; i < cars; i++) {
      actor a = load(w, i);
      const double own = w->max_velocity[i];
      for (int64_t tick = 0; tick < ticks; tick++) drive(&a, w, own, w->h.car_grip);
      store(w, i, &a);
    }
#pragma omp for schedule(dynamic, 4096) nowait
    for (int64_t i = cars; i < vehicles; i++) {
      actor a = load(w, i);
      const double own = w->max_velocity[i];
      for (int64_t tick = 0; tick < ticks; tick++) drive(&a, w, own, w->h.bus_grip);
      store(w, i, &a);
    }
#pragma omp for schedule(dynamic, 4096)
    for (int64_t i = vehicles; i < all; i++) {
      actor a = load(w, i);
      for (int64_t tick = 0; tick < ticks; tick++) walk(&a, w);
      store(w, i, &a);
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 4) fail("usage", "traffic INPUT OUTPUT RUNS");
  const world w = read_world(argv[1]);
  const int runs = atoi(argv[3]);
  const size_t count = (size_t)actors(&w);
  world work = w;
  work.progress = malloc(count * sizeof(double));
  work.street = malloc(count * sizeof(int32_t));
  work.dice = malloc(count * sizeof(int32_t));
  double *seconds = calloc((size_t)runs, sizeof(double));

  for (int run = 0; run < runs; run++) {
    memcpy(work.progress, w.progress, count * sizeof(double));
    memcpy(work.street, w.street, count * sizeof(int32_t));
    memcpy(work.dice, w.dice, count * sizeof(int32_t));
    const double start = omp_get_wtime();
    simulate(&work);
    seconds[run] = omp_get_wtime() - start;
  }

  write_actors(&work, argv[2]);
  printf("{\"threads\": %d, ", omp_get_max_threads());
  print_seconds("seconds", seconds, runs, "}\n");
}
