#define EACH static __device__ __forceinline__
#include "particle.h"

extern "C" __global__ void weigh(const int *cell, const int *first, const int *members, long long across, const double *x, const double *y, double *density,
                                 double *pressure, long long n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const grid g = {cell, first, members, (int)across};
  if (i < n) weigh_one(g, i, x, y, density, pressure);
}

extern "C" __global__ void push(const int *cell, const int *first, const int *members, long long across, const double *x, const double *y, const double *vx,
                                const double *vy, const double *density, const double *pressure, double *ax, double *ay, long long n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const grid g = {cell, first, members, (int)across};
  if (i < n) push_one(g, i, x, y, vx, vy, density, pressure, ax, ay);
}

extern "C" __global__ void move(double *x, double *y, double *vx, double *vy, const double *ax, const double *ay, long long n, double seconds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  vx[i] += ax[i] * seconds;
  vy[i] += ay[i] * seconds;
  x[i] += vx[i] * seconds;
  y[i] += vy[i] * seconds;
}
