extern "C" __global__ void sweep(const double *a0, const double *a1, const double *a2, const double *a3, const double *b0, const double *b1, const double *b2,
                                 const double *c0, const double *c1, const double *c2, const double *bound, const double *work, const double *from, double *to,
                                 long long size) {
  const int row = 2 * (int)size, plane = (int)size * row;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size * plane) return;
  const int x = i / plane, y = i % plane / row, z = i % row;
  if (x == 0 || y == 0 || z == 0 || x == size - 1 || y == size - 1 || z == row - 1) return;
  const double s0 = a0[i] * from[i + plane] + a1[i] * from[i + row] + a2[i] * from[i + 1] +
                    b0[i] * (from[i + plane + row] - from[i + plane - row] - from[i - plane + row] + from[i - plane - row]) +
                    b1[i] * (from[i + row + 1] - from[i - row + 1] - from[i + row - 1] + from[i - row - 1]) +
                    b2[i] * (from[i + plane + 1] - from[i - plane + 1] - from[i + plane - 1] + from[i - plane - 1]) +
                    c0[i] * from[i - plane] + c1[i] * from[i - row] + c2[i] * from[i - 1] + work[i];
  const double ss = (s0 * a3[i] - from[i]) * bound[i];
  to[i] = from[i] + 0.8 * ss;
}
