#include "program.h"

static void sweep(const double *restrict from, double *restrict to) {
  const int64_t size = integer("size"), row = 2 * size, plane = size * row;
  const double *restrict a0 = floats("a0"), *restrict a1 = floats("a1"), *restrict a2 = floats("a2"), *restrict a3 = floats("a3");
  const double *restrict b0 = floats("b0"), *restrict b1 = floats("b1"), *restrict b2 = floats("b2");
  const double *restrict c0 = floats("c0"), *restrict c1 = floats("c1"), *restrict c2 = floats("c2");
  const double *restrict bound = floats("bound"), *restrict work = floats("work");
#pragma omp parallel for collapse(2)
  for (int64_t x = 1; x < size - 1; x++)
    for (int64_t y = 1; y < size - 1; y++)
      for (int64_t z = 1; z < row - 1; z++) {
        const int64_t i = x * plane + y * row + z;
        const double s0 = a0[i] * from[i + plane] + a1[i] * from[i + row] + a2[i] * from[i + 1] +
                          b0[i] * (from[i + plane + row] - from[i + plane - row] - from[i - plane + row] + from[i - plane - row]) +
                          b1[i] * (from[i + row + 1] - from[i - row + 1] - from[i + row - 1] + from[i - row - 1]) +
                          b2[i] * (from[i + plane + 1] - from[i - plane + 1] - from[i + plane - 1] + from[i - plane - 1]) +
                          c0[i] * from[i - plane] + c1[i] * from[i - row] + c2[i] * from[i - 1] + work[i];
        const double ss = (s0 * a3[i] - from[i]) * bound[i];
        to[i] = from[i] + 0.8 * ss;
      }
}

static void compute(void) {
  double *p = floats("p"), *q = floats("q");
  for (int64_t iteration = 0; iteration < integer("iterations"); iteration++) iteration % 2 == 0 ? sweep(p, q) : sweep(q, p);
}
