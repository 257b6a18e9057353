static __device__ double normal(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }

extern "C" __global__ void prices(const double *spot, const double *strike, const double *years, const unsigned char *put, double *price, long long n,
                                  double rate, double volatility) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  const double spread = volatility * sqrt(years[i]);
  const double d1 = (log(spot[i] / strike[i]) + (rate + volatility * volatility / 2.0) * years[i]) / spread;
  const double d2 = d1 - spread, present = strike[i] * exp(-rate * years[i]);
  price[i] = put[i] ? present * normal(-d2) - spot[i] * normal(-d1) : spot[i] * normal(d1) - present * normal(d2);
}
