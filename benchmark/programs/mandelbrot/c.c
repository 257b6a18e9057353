#include "program.h"

static void compute(void) {
  const int64_t width = integer("width");
  const double left = number("left"), top = number("top"), step = number("step");
  int64_t *steps = integers("steps");
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t row = 0; row < width; row++)
    for (int64_t column = 0; column < width; column++) {
      const double real = left + column * step, imaginary = top + row * step;
      double x = 0, y = 0;
      int64_t count = 0;
      while (count < 256 && x * x + y * y <= 4.0) {
        const double next = x * x - y * y + real;
        y = 2.0 * x * y + imaginary;
        x = next;
        count++;
      }
      steps[row * width + column] = count;
    }
}
