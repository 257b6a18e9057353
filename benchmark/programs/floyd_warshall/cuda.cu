extern "C" __global__ void improve(double *distance, long long size, long long between) {
  const int n = (int)size, pair = blockIdx.x * blockDim.x + threadIdx.x;
  if (pair >= n * n) return;
  const int from = pair / n, to = pair % n;
  const double through = distance[from * n + between] + distance[between * n + to];
  if (through < distance[pair]) distance[pair] = through;
}
