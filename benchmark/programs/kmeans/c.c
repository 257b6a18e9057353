#include "program.h"

#define CLUSTERS 16

static int64_t down(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

static void compute(void) {
  const int64_t n = size("x"), rounds = integer("rounds");
  const int64_t *x = integers("x"), *y = integers("y");
  int64_t *cx = integers("cx"), *cy = integers("cy"), *cluster = integers("cluster");
  for (int64_t round = 0; round < rounds; round++) {
    int64_t sx[CLUSTERS] = {0}, sy[CLUSTERS] = {0}, count[CLUSTERS] = {0};
#pragma omp parallel for reduction(+ : sx, sy, count)
    for (int64_t i = 0; i < n; i++) {
      int64_t best = 0, least = INT64_MAX;
      for (int64_t k = 0; k < CLUSTERS; k++) {
        const int64_t dx = cx[k] - x[i], dy = cy[k] - y[i], distance = dx * dx + dy * dy;
        if (distance < least) {
          least = distance;
          best = k;
        }
      }
      cluster[i] = best;
      sx[best] += x[i];
      sy[best] += y[i];
      count[best]++;
    }
    for (int64_t k = 0; k < CLUSTERS; k++)
      if (count[k]) {
        cx[k] = down(sx[k], count[k]);
        cy[k] = down(sy[k], count[k]);
      }
  }
}
