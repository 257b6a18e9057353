#include "program.h"

static void compute(void) {
  const int64_t n = size("x");
  const double *x = floats("x");
  double total = 0;
#pragma omp parallel for simd reduction(+ : total)
  for (int64_t i = 0; i < n; i++) total += x[i];
  floats("total")[0] = total;
}
