#include "program.h"

static void compute(void) {
  const int64_t n = size("mass"), steps = integer("steps");
  const double seconds = number("seconds"), *restrict mass = floats("mass");
  double *restrict x = floats("x"), *restrict y = floats("y"), *restrict z = floats("z");
  double *restrict vx = floats("vx"), *restrict vy = floats("vy"), *restrict vz = floats("vz");
  for (int64_t step = 0; step < steps; step++) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) {
      double ax = 0, ay = 0, az = 0;
      for (int64_t j = 0; j < n; j++) {
        const double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
        const double square = dx * dx + dy * dy + dz * dz + 0.05;
        const double pull = mass[j] / (square * sqrt(square));
        ax += dx * pull;
        ay += dy * pull;
        az += dz * pull;
      }
      vx[i] += ax * seconds;
      vy[i] += ay * seconds;
      vz[i] += az * seconds;
    }
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) {
      x[i] += vx[i] * seconds;
      y[i] += vy[i] * seconds;
      z[i] += vz[i] * seconds;
    }
  }
}
