#include "program.h"

static void compute(void) {
  const int64_t n = integer("size");
  double *distance = floats("distance");
#pragma omp parallel
  for (int64_t between = 0; between < n; between++) {
    const double *on = distance + between * n;
#pragma omp for schedule(static)
    for (int64_t from = 0; from < n; from++) {
      double *row = distance + from * n;
      const double start = row[between];
      for (int64_t to = 0; to < n; to++) {
        const double through = start + on[to];
        row[to] = through < row[to] ? through : row[to];
      }
    }
  }
}
