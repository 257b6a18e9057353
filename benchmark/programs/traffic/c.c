// Structure of arrays, actors sorted by type, all ticks of an actor in registers.
#include "program.h"
#define EACH static inline
#include "second.h"

static void compute(void) {
  const world w = {floats("length"), floats("limit"), narrow("neighbors_offset"), narrow("neighbors"), narrow("roads_offset"), narrow("roads")};
  const int64_t cars = integer("cars"), vehicles = cars + integer("buses"), all = size("progress"), ticks = integer("ticks");
  const double car_grip = number("car_grip"), bus_grip = number("bus_grip"), *own = floats("own");
  double *progress = floats("progress");
  int32_t *street = narrow("street"), *dice = narrow("dice");
#pragma omp parallel
  {
#pragma omp for schedule(dynamic, 4096) nowait
    for (int64_t i = 0; i < cars; i++) live(&w, progress, street, dice, i, ticks, own[i], car_grip);
#pragma omp for schedule(dynamic, 4096) nowait
    for (int64_t i = cars; i < vehicles; i++) live(&w, progress, street, dice, i, ticks, own[i], bus_grip);
#pragma omp for schedule(dynamic, 4096)
    for (int64_t i = vehicles; i < all; i++) live(&w, progress, street, dice, i, ticks, 0.0, -1.0);
  }
}
