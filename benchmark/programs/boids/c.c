#include "program.h"

static double home(double place, double field) { return place < 0.0 ? 0.1 : place > field ? -0.1 : 0.0; }

static void decide(const double *x, const double *y, const double *vx, const double *vy, double *ux, double *uy, int64_t n, int64_t i, double field) {
  int count = 0;
  double away_x = 0, away_y = 0, along_x = 0, along_y = 0, to_x = 0, to_y = 0;
  for (int64_t j = 0; j < n; j++) {
    if (j == i) continue;
    const double dx = x[i] - x[j], dy = y[i] - y[j], square = dx * dx + dy * dy;
    if (square >= 36.0) continue;
    count++;
    along_x += vx[j];
    along_y += vy[j];
    to_x += x[j];
    to_y += y[j];
    if (square >= 2.25) continue;
    away_x += dx;
    away_y += dy;
  }
  ux[i] = home(x[i], field);
  uy[i] = home(y[i], field);
  if (count) {
    ux[i] += away_x * 0.05 + (along_x / count - vx[i]) * 0.08 + (to_x / count - x[i]) * 0.01;
    uy[i] += away_y * 0.05 + (along_y / count - vy[i]) * 0.08 + (to_y / count - y[i]) * 0.01;
  }
}

static void compute(void) {
  const int64_t n = size("x"), steps = integer("steps");
  const double field = number("field");
  double *x = floats("x"), *y = floats("y"), *vx = floats("vx"), *vy = floats("vy");
  double *ux = room((size_t)n * 8), *uy = room((size_t)n * 8);
  for (int64_t step = 0; step < steps; step++) {
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t i = 0; i < n; i++) decide(x, y, vx, vy, ux, uy, n, i, field);
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) {
      vx[i] += ux[i];
      vy[i] += uy[i];
      const double speed = sqrt(vx[i] * vx[i] + vy[i] * vy[i]);
      if (speed > 1.2) {
        vx[i] *= 1.2 / speed;
        vy[i] *= 1.2 / speed;
      }
      x[i] += vx[i];
      y[i] += vy[i];
    }
  }
  free(ux);
  free(uy);
}
