#include "program.h"

static double normal(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }

static void compute(void) {
  const int64_t n = size("spot");
  const double rate = number("rate"), volatility = number("volatility");
  const double *spot = floats("spot"), *strike = floats("strike"), *years = floats("years");
  const uint8_t *put = bytes("put");
  double *price = floats("price");
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) {
    const double spread = volatility * sqrt(years[i]);
    const double d1 = (log(spot[i] / strike[i]) + (rate + volatility * volatility / 2.0) * years[i]) / spread;
    const double d2 = d1 - spread, present = strike[i] * exp(-rate * years[i]);
    price[i] = put[i] ? present * normal(-d2) - spot[i] * normal(-d1) : spot[i] * normal(d1) - present * normal(d2);
  }
}
