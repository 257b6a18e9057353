// As ceilings.c, on a GPU.
extern "C" __global__ void triad(double *a, const double *b, const double *c, long long n) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) a[i] = b[i] + 3.0 * c[i];
}

extern "C" __global__ void contracted(double *out, long long rounds, double scale, double shift) {
  double x[8];
  for (int c = 0; c < 8; c++) x[c] = threadIdx.x + c;
  for (long long round = 0; round < rounds; round++)
    for (int c = 0; c < 8; c++) x[c] = fma(x[c], scale, shift);
  double sum = 0;
  for (int c = 0; c < 8; c++) sum += x[c];
  out[blockIdx.x * (long long)blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void separate(double *out, long long rounds, double scale, double shift) {
  double x[8];
  for (int c = 0; c < 8; c++) x[c] = threadIdx.x + c;
  for (long long round = 0; round < rounds; round++)
    for (int c = 0; c < 8; c++) x[c] = x[c] * scale + shift;
  double sum = 0;
  for (int c = 0; c < 8; c++) sum += x[c];
  out[blockIdx.x * (long long)blockDim.x + threadIdx.x] = sum;
}
