#include "program.h"

static void stage(int64_t distance, const double *restrict re, const double *restrict im, double *restrict to_re, double *restrict to_im) {
  const int64_t half = size("cosine");
  const double *restrict cosine = floats("cosine"), *restrict sine = floats("sine");
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < half; i++) {
    const int64_t angle = i & -distance, up = i + angle, down = up + distance;
    const double down_re = re[i] - re[i + half], down_im = im[i] - im[i + half];
    to_re[up] = re[i] + re[i + half];
    to_im[up] = im[i] + im[i + half];
    to_re[down] = down_re * cosine[angle] - down_im * sine[angle];
    to_im[down] = down_re * sine[angle] + down_im * cosine[angle];
  }
}

static void compute(void) {
  double *re = floats("re"), *im = floats("im"), *other_re = floats("other_re"), *other_im = floats("other_im");
  for (int64_t s = 0; s < integer("stages"); s++) s % 2 == 0 ? stage(1LL << s, re, im, other_re, other_im) : stage(1LL << s, other_re, other_im, re, im);
}
