// Stars come through shared memory, a block's worth at a time.
extern "C" __global__ void attract(const double *mass, const double *x, const double *y, const double *z, double *vx, double *vy, double *vz, long long n,
                                   double seconds) {
  __shared__ double sx[128], sy[128], sz[128], sm[128];
  const long long i = blockIdx.x * 128LL + threadIdx.x;
  const double ox = i < n ? x[i] : 0, oy = i < n ? y[i] : 0, oz = i < n ? z[i] : 0;
  double ax = 0, ay = 0, az = 0;
  for (long long from = 0; from < n; from += 128) {
    if (from + threadIdx.x < n) {
      sx[threadIdx.x] = x[from + threadIdx.x];
      sy[threadIdx.x] = y[from + threadIdx.x];
      sz[threadIdx.x] = z[from + threadIdx.x];
      sm[threadIdx.x] = mass[from + threadIdx.x];
    }
    __syncthreads();
    const int there = n - from < 128 ? (int)(n - from) : 128;
    for (int j = 0; j < there; j++) {
      const double dx = sx[j] - ox, dy = sy[j] - oy, dz = sz[j] - oz;
      const double square = dx * dx + dy * dy + dz * dz + 0.05;
      const double pull = sm[j] / (square * sqrt(square));
      ax += dx * pull;
      ay += dy * pull;
      az += dz * pull;
    }
    __syncthreads();
  }
  if (i < n) {
    vx[i] += ax * seconds;
    vy[i] += ay * seconds;
    vz[i] += az * seconds;
  }
}

extern "C" __global__ void move(double *x, double *y, double *z, const double *vx, const double *vy, const double *vz, long long n, double seconds) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  x[i] += vx[i] * seconds;
  y[i] += vy[i] * seconds;
  z[i] += vz[i] * seconds;
}
