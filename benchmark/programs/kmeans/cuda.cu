#define CLUSTERS 16
typedef unsigned long long word;

// Sums in shared memory first, then one addition for each block and cluster. sums: x, y and count of each cluster.
extern "C" __global__ void join(const long long *x, const long long *y, const long long *cx, const long long *cy, long long *cluster, word *sums, long long n) {
  __shared__ word mine[3 * CLUSTERS];
  for (int k = threadIdx.x; k < 3 * CLUSTERS; k += blockDim.x) mine[k] = 0;
  __syncthreads();
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) {
    long long best = 0, least = 0x7fffffffffffffff;
    for (int k = 0; k < CLUSTERS; k++) {
      const long long dx = cx[k] - x[i], dy = cy[k] - y[i], distance = dx * dx + dy * dy;
      if (distance < least) {
        least = distance;
        best = k;
      }
    }
    cluster[i] = best;
    atomicAdd(&mine[3 * best], (word)x[i]);
    atomicAdd(&mine[3 * best + 1], (word)y[i]);
    atomicAdd(&mine[3 * best + 2], (word)1);
  }
  __syncthreads();
  for (int k = threadIdx.x; k < 3 * CLUSTERS; k += blockDim.x) atomicAdd(&sums[k], mine[k]);
}

static __device__ long long down(long long a, long long b) { return a / b - (a % b != 0 && a < 0); }

extern "C" __global__ void settle(long long *cx, long long *cy, word *sums) {
  const int k = threadIdx.x;
  const long long count = (long long)sums[3 * k + 2];
  if (count) {
    cx[k] = down((long long)sums[3 * k], count);
    cy[k] = down((long long)sums[3 * k + 1], count);
  }
  sums[3 * k] = sums[3 * k + 1] = sums[3 * k + 2] = 0;
}
