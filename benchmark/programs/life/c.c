#include "program.h"

static void generation(const uint8_t *restrict from, uint8_t *restrict to, int64_t n) {
#pragma omp parallel for
  for (int64_t row = 0; row < n; row++) {
    const uint8_t *up = from + (row + n - 1) % n * n, *here = from + row * n, *down = from + (row + 1) % n * n;
    for (int64_t column = 0; column < n; column++) {
      const int64_t left = column ? column - 1 : n - 1, right = column < n - 1 ? column + 1 : 0;
      const int around = up[left] + up[column] + up[right] + here[left] + here[right] + down[left] + down[column] + down[right];
      to[row * n + column] = around == 3 || (around == 2 && here[column]);
    }
  }
}

static void compute(void) {
  const int64_t n = integer("size"), generations = integer("generations");
  uint8_t *alive = bytes("alive"), *next = malloc((size_t)(n * n));
  for (int64_t g = 0; g < generations; g += 2) {
    generation(alive, next, n);
    generation(next, alive, n);
  }
  free(next);
}
