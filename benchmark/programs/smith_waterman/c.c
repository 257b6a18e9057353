#include "program.h"

static void compute(void) {
  const int64_t rows = size("one"), columns = size("other"), width = columns + 1;
  const int32_t *one = narrow("one"), *other = narrow("other");
  int32_t *score = narrow("score");
#pragma omp parallel
  for (int64_t diagonal = 2; diagonal <= rows + columns; diagonal++) {
    const int64_t first = diagonal > columns ? diagonal - columns : 1, last = diagonal > rows ? rows : diagonal - 1;
#pragma omp for schedule(static)
    for (int64_t row = first; row <= last; row++) {
      const int64_t column = diagonal - row;
      int32_t *here = score + row * width + column, best = 0;
      const int32_t both = here[-width - 1] + (one[row - 1] == other[column - 1] ? 3 : -2), up = here[-width] - 2, left = here[-1] - 2;
      if (both > best) best = both;
      if (up > best) best = up;
      if (left > best) best = left;
      *here = best;
    }
  }
}
