// What this machine's cores can do at most: memory streamed by the triad of STREAM (a = b + s * c), and double arithmetic in registers, with and without
// contraction of a multiplication and an addition.
//
//   OMP_NUM_THREADS=4 ./ceilings MILLIONS     # of doubles in each of three arrays; prints the best of twenty as JSON
//
// As STREAM counts: 24 bytes for each element, and no more for what caches read before they write.

#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static double least(double a, double b) { return a < b ? a : b; }

#define CHAINS 64

// CHAINS independent sums, so that no addition waits for the one before it.
#define LOOP(name, attributes)                                                                                                   \
  attributes __attribute__((noinline)) static double name(int64_t rounds, double scale, double shift) {                          \
    double x[CHAINS];                                                                                                            \
    for (int c = 0; c < CHAINS; c++) x[c] = c;                                                                                   \
    for (int64_t round = 0; round < rounds; round++)                                                                             \
      for (int c = 0; c < CHAINS; c++) x[c] = x[c] * scale + shift;                                                              \
    double sum = 0;                                                                                                              \
    for (int c = 0; c < CHAINS; c++) sum += x[c];                                                                                \
    return sum;                                                                                                                  \
  }
LOOP(contracted, __attribute__((optimize("fp-contract=fast"))))
LOOP(separate, __attribute__((optimize("fp-contract=off"))))
LOOP(scalar, __attribute__((optimize("fp-contract=off", "no-tree-vectorize", "no-tree-slp-vectorize"))))

static volatile double kept;

static double rate(double (*loop)(int64_t, double, double)) {
  const int64_t rounds = 500000;
  double best = 1e9;
  for (int run = 0; run < 20; run++) {
    const double start = omp_get_wtime();
#pragma omp parallel
    {
      const double sum = loop(rounds, 0.999999, 1e-9);
#pragma omp critical
      kept = sum;
    }
    best = least(best, omp_get_wtime() - start);
  }
  return 2.0 * CHAINS * (double)rounds * omp_get_max_threads() / best;
}

int main(int argc, char **argv) {
  const int64_t n = (argc > 1 ? atoll(argv[1]) : 32) * 1000000;
  double *a = malloc((size_t)n * 8), *b = malloc((size_t)n * 8), *c = malloc((size_t)n * 8);
  if (!a || !b || !c) return 1;
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) {
    a[i] = 0;
    b[i] = 1;
    c[i] = 2;
  }
  double best = 1e9;
  for (int run = 0; run < 20; run++) {
    const double start = omp_get_wtime();
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i];
    best = least(best, omp_get_wtime() - start);
    kept = a[n / 2];
  }
  printf("{\"threads\": %d, \"bytes\": %.0f, \"fma\": %.0f, \"flops\": %.0f, \"scalar\": %.0f}\n", omp_get_max_threads(), 24.0 * (double)n / best,
         rate(contracted), rate(separate), rate(scalar));
}
