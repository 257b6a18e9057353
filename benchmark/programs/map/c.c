#include "program.h"

static void compute(void) {
  const int64_t n = size("x");
  const double *restrict x = floats("x");
  double *restrict y = floats("y");
#pragma omp parallel for simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * 0.999 + 0.5;
}
