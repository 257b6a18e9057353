// The kernels of benchmark/mdarray.rb as one would write them by hand: for each element a thread, or a loop over all of a grid. by_hand.rb launches them.

extern "C" __global__ void chain(const double *x, double *out, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * 2.5 + x[i] * 0.5 * x[i];
}

extern "C" __global__ void chain_f32(const float *x, float *out, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * 2.5f + x[i] * 0.5f * x[i];
}

// A sum for each block of 256 threads, then one block for the sums.
extern "C" __global__ void sums(const double *x, double *partial, long long n) {
  __shared__ double shared[256];
  double sum = 0;
  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < n; i += gridDim.x * 256LL) sum += x[i];
  shared[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if ((int)threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = shared[0];
}

// A tile of 16 by 16 for each block of 256 threads.
extern "C" __global__ void product(const double *a, const double *b, double *out, long long side) {
  __shared__ double left[16][16], right[16][16];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const long long tiles = (side + 15) / 16;
  const long long row = blockIdx.x / tiles * 16 + y, column = blockIdx.x % tiles * 16 + x;
  double sum = 0;
  for (long long tile = 0; tile < tiles; tile++) {
    const long long across = tile * 16 + x, down = tile * 16 + y;
    left[y][x] = row < side && across < side ? a[row * side + across] : 0;
    right[y][x] = down < side && column < side ? b[down * side + column] : 0;
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += left[y][k] * right[k][x];
    __syncthreads();
  }
  if (row < side && column < side) out[row * side + column] = sum;
}

extern "C" __global__ void stencil(const double *g, double *out, long long side) {
  const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (at >= side * side) return;
  const long long i = at / side, j = at % side;
  const bool inside = i > 0 && i < side - 1 && j > 0 && j < side - 1;
  out[at] = inside ? g[at] * 0.5 + (g[at - side] + g[at + side] + g[at - 1] + g[at + 1]) * 0.125 : 0.0;
}

// Figure 1 of the paper of 2011.
extern "C" __global__ void mandelbrot(long long *out, long long side) {
  const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (at >= side * side) return;
  const double step = 2.5 / side;
  const double cr = -2.0 + (at / side) * step, ci = -1.25 + (at % side) * step;
  double zr = 0.0, zi = 0.0;
  int count = 0;
  while (count < 256 && pow(zr * zr + zi * zi, 0.5) < 2.0) {
    const double t = zr * zr - zi * zi + cr;
    zi = 2.0 * zr * zi + ci;
    zr = t;
    count++;
  }
  out[at] = count;
}

// The same in 32 bits; the power is rounded from 64, as Ikra does it.
extern "C" __global__ void mandelbrot_f32(long long *out, long long side) {
  const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (at >= side * side) return;
  const float step = (float)(2.5 / side);
  const float cr = -2.0f + (float)(at / side) * step, ci = -1.25f + (float)(at % side) * step;
  float zr = 0.0f, zi = 0.0f;
  int count = 0;
  while (count < 256 && (float)pow((double)(zr * zr + zi * zi), 0.5) < 2.0f) {
    const float t = zr * zr - zi * zi + cr;
    zi = 2.0f * zr * zi + ci;
    zr = t;
    count++;
  }
  out[at] = count;
}
