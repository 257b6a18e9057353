// Structure of arrays, actors sorted by type, each type from a warp's beginning, all ticks of an actor in one thread's registers.
#define EACH static __device__ __forceinline__
#include "second.h"

static __device__ long long warps(long long count) { return (count + 31) / 32 * 32; }

extern "C" __global__ void __launch_bounds__(256)
    simulate(const double *length, const double *limit, const int *neighbors_offset, const int *neighbors, const int *roads_offset, const int *roads,
             const double *own, double *progress, int *street, int *dice, long long cars, long long buses, long long pedestrians, long long ticks,
             double car_grip, double bus_grip) {
  const world w = {length, limit, neighbors_offset, neighbors, roads_offset, roads};
  const long long thread = blockIdx.x * 256LL + threadIdx.x, bus_threads = warps(cars), walkers = bus_threads + warps(buses);
  if (thread < bus_threads) {
    if (thread < cars) live(&w, progress, street, dice, thread, ticks, own[thread], car_grip);
  } else if (thread < walkers) {
    const long long i = thread - bus_threads + cars;
    if (thread - bus_threads < buses) live(&w, progress, street, dice, i, ticks, own[i], bus_grip);
  } else if (thread - walkers < pedestrians) {
    live(&w, progress, street, dice, thread - walkers + cars + buses, ticks, 0.0, -1.0);
  }
}
