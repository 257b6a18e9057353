#include "program.h"
#define EACH static inline
#include "particle.h"

static void compute(void) {
  const int n = (int)size("x");
  const double seconds = number("seconds");
  const grid g = {narrow("cell"), narrow("first"), narrow("members"), (int)integer("across")};
  double *x = floats("x"), *y = floats("y"), *vx = floats("vx"), *vy = floats("vy");
  double *density = room((size_t)n * 8), *pressure = room((size_t)n * 8), *ax = room((size_t)n * 8), *ay = room((size_t)n * 8);
  for (int64_t step = 0; step < integer("steps"); step++) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < n; i++) weigh_one(g, i, x, y, density, pressure);
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < n; i++) push_one(g, i, x, y, vx, vy, density, pressure, ax, ay);
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
      vx[i] += ax[i] * seconds;
      vy[i] += ay[i] * seconds;
      x[i] += vx[i] * seconds;
      y[i] += vy[i] * seconds;
    }
  }
  free(density);
  free(pressure);
  free(ax);
  free(ay);
}
