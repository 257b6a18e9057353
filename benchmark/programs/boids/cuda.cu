static __device__ double home(double place, double field) { return place < 0.0 ? 0.1 : place > field ? -0.1 : 0.0; }

extern "C" __global__ void decide(const double *__restrict__ x, const double *__restrict__ y, const double *__restrict__ vx, const double *__restrict__ vy,
                                  double *ux, double *uy, long long n, double field) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  int count = 0;
  double away_x = 0, away_y = 0, along_x = 0, along_y = 0, to_x = 0, to_y = 0;
  for (long long j = 0; j < n; j++) {
    if (j == i) continue;
    const double dx = x[i] - x[j], dy = y[i] - y[j], square = dx * dx + dy * dy;
    if (square >= 36.0) continue;
    count++;
    along_x += vx[j];
    along_y += vy[j];
    to_x += x[j];
    to_y += y[j];
    if (square >= 2.25) continue;
    away_x += dx;
    away_y += dy;
  }
  ux[i] = home(x[i], field);
  uy[i] = home(y[i], field);
  if (count) {
    ux[i] += away_x * 0.05 + (along_x / count - vx[i]) * 0.08 + (to_x / count - x[i]) * 0.01;
    uy[i] += away_y * 0.05 + (along_y / count - vy[i]) * 0.08 + (to_y / count - y[i]) * 0.01;
  }
}

extern "C" __global__ void fly(double *x, double *y, double *vx, double *vy, const double *ux, const double *uy, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  vx[i] += ux[i];
  vy[i] += uy[i];
  const double speed = sqrt(vx[i] * vx[i] + vy[i] * vy[i]);
  if (speed > 1.2) {
    vx[i] *= 1.2 / speed;
    vy[i] *= 1.2 / speed;
  }
  x[i] += vx[i];
  y[i] += vy[i];
}
