// Tiles of 16 by 16 through shared memory.
extern "C" __global__ void product(const double *a, const double *b, double *c, long long n) {
  __shared__ double sa[16][16], sb[16][16];
  const int tiles = (int)(n + 15) / 16, x = threadIdx.x % 16, y = threadIdx.x / 16;
  const long long row = blockIdx.x / tiles * 16 + y, column = blockIdx.x % tiles * 16 + x;
  double sum = 0;
  for (int tile = 0; tile < tiles; tile++) {
    sa[y][x] = row < n && tile * 16 + x < n ? a[row * n + tile * 16 + x] : 0;
    sb[y][x] = column < n && tile * 16 + y < n ? b[(tile * 16 + y) * n + column] : 0;
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += sa[y][k] * sb[k][x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}
