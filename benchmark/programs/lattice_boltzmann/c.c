#include "program.h"

static const int RIGHT[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, DOWN[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1}, OPPOSITE[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
#define EACH static inline
#define UNROLL _Pragma("GCC unroll 9")
#include "collide.h"

static void step(const double *restrict from, double *restrict to) {
  const int64_t n = integer("size"), cells = n * n;
  const double relaxation = number("relaxation");
  const uint8_t *solid = bytes("solid");
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < n; row++)
    for (int64_t column = 0; column < n; column++) {
      const int64_t cell = row * n + column;
      double incoming[9];
#pragma GCC unroll 9
      for (int d = 0; d < 9; d++) {
        const int64_t y = row - DOWN[d], x = column - RIGHT[d];
        incoming[d] = from[d * cells + (y < 0 ? n - 1 : y == n ? 0 : y) * n + (x < 0 ? n - 1 : x == n ? 0 : x)];
      }
      if (solid[cell]) {
        for (int d = 0; d < 9; d++) to[d * cells + cell] = incoming[OPPOSITE[d]];
      } else {
        collide(incoming, to + cell, cells, relaxation);
      }
    }
}

static void compute(void) {
  double *flows = floats("flows"), *others = floats("others");
  for (int64_t s = 0; s < integer("steps"); s++) s % 2 == 0 ? step(flows, others) : step(others, flows);
}
