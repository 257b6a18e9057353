static __device__ const int RIGHT[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, DOWN[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1}, OPPOSITE[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
#define EACH static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#include "collide.h"

extern "C" __global__ void step(const double *from, double *to, const unsigned char *solid, long long size, double relaxation) {
  const int n = (int)size, cells = n * n, cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  const int row = cell / n, column = cell % n;
  double incoming[9];
#pragma unroll
  for (int d = 0; d < 9; d++) {
    const int y = row - DOWN[d], x = column - RIGHT[d];
    incoming[d] = from[d * cells + (y < 0 ? n - 1 : y == n ? 0 : y) * n + (x < 0 ? n - 1 : x == n ? 0 : x)];
  }
  if (solid[cell]) {
#pragma unroll
    for (int d = 0; d < 9; d++) to[d * cells + cell] = incoming[OPPOSITE[d]];
  } else {
    collide(incoming, to + cell, cells, relaxation);
  }
}
