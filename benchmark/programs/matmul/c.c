#include "program.h"

static void compute(void) {
  const int64_t n = integer("size");
  const double *restrict a = floats("a"), *restrict b = floats("b");
  double *restrict c = floats("c");
#pragma omp parallel for
  for (int64_t row = 0; row < n; row++)
    for (int64_t k = 0; k < n; k++)
      for (int64_t column = 0; column < n; column++) c[row * n + column] += a[row * n + k] * b[k * n + column];
}
