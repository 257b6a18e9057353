// The traffic simulation on an NVIDIA GPU, by hand.
//
//   nvcc -O3 -fmad=false -arch=native traffic.cu -o traffic_cuda
//   ./traffic_cuda INPUT OUTPUT RUNS     # prints {"device": "...", "kernel": [...], "upload": [...], "download": [...]}
//
// Structure of arrays, actors sorted by type, each type from a warp's beginning, all ticks of an actor in one thread's registers.
// Upload and download are of pinned memory: what every run must carry is all columns up, the three written ones down.

#include <cuda_runtime.h>
#include "traffic.h"

#define WARP 32
#define BLOCK 256

static void check(cudaError_t status, const char *what) {
  if (status != cudaSuccess) fail(what, cudaGetErrorString(status));
}

static __host__ __device__ int64_t warps(int64_t count) { return (count + WARP - 1) / WARP * WARP; }

__global__ void __launch_bounds__(BLOCK) simulate(const world w) {
  int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
  const int64_t ticks = w.h.ticks, bus_threads = warps(w.h.cars), pedestrian_threads = bus_threads + warps(w.h.buses);
  if (i < bus_threads) {
    if (i >= w.h.cars) return;
    actor a = load(&w, i);
    const double own = w.max_velocity[i];
    for (int64_t tick = 0; tick < ticks; tick++) drive(&a, &w, own, w.h.car_grip);
    store(&w, i, &a);
  } else if (i < pedestrian_threads) {
    i -= bus_threads;
    if (i >= w.h.buses) return;
    i += w.h.cars;
    actor a = load(&w, i);
    const double own = w.max_velocity[i];
    for (int64_t tick = 0; tick < ticks; tick++) drive(&a, &w, own, w.h.bus_grip);
    store(&w, i, &a);
  } else {
    i -= pedestrian_threads;
    if (i >= w.h.pedestrians) return;
    i += w.h.cars + w.h.buses;
    actor a = load(&w, i);
    for (int64_t tick = 0; tick < ticks; tick++) walk(&a, &w);
    store(&w, i, &a);
  }
}

// A column on both sides: its pinned copy here replaces the one that was read.
typedef struct {
  void *host, *device;
  size_t bytes;
} mirror;

static mirror mirrored(const void *data, size_t bytes) {
  mirror m;
  m.bytes = bytes ? bytes : 1;
  check(cudaMallocHost(&m.host, m.bytes), "pinned memory");
  check(cudaMalloc(&m.device, m.bytes), "device memory");
  memcpy(m.host, data, bytes);
  return m;
}

static float milliseconds(cudaEvent_t from, cudaEvent_t to) {
  float value = 0;
  check(cudaEventElapsedTime(&value, from, to), "timing");
  return value;
}

int main(int argc, char **argv) {
  if (argc != 4) fail("usage", "traffic_cuda INPUT OUTPUT RUNS");
  world w = read_world(argv[1]);
  const int runs = atoi(argv[3]);
  const size_t streets = (size_t)w.h.streets, count = (size_t)actors(&w);
  const mirror columns[10] = {
      mirrored(w.length, streets * sizeof(double)),
      mirrored(w.limit, streets * sizeof(double)),
      mirrored(w.neighbor_offset, (streets + 1) * sizeof(int32_t)),
      mirrored(w.neighbor, (size_t)w.h.neighbors * sizeof(int32_t)),
      mirrored(w.road_offset, (streets + 1) * sizeof(int32_t)),
      mirrored(w.road, (size_t)w.h.roads * sizeof(int32_t)),
      mirrored(w.max_velocity, count * sizeof(double)),
      mirrored(w.progress, count * sizeof(double)),
      mirrored(w.street, count * sizeof(int32_t)),
      mirrored(w.dice, count * sizeof(int32_t)),
  };
  world d = w;
  d.length = (double *)columns[0].device;
  d.limit = (double *)columns[1].device;
  d.neighbor_offset = (int32_t *)columns[2].device;
  d.neighbor = (int32_t *)columns[3].device;
  d.road_offset = (int32_t *)columns[4].device;
  d.road = (int32_t *)columns[5].device;
  d.max_velocity = (double *)columns[6].device;
  d.progress = (double *)columns[7].device;
  d.street = (int32_t *)columns[8].device;
  d.dice = (int32_t *)columns[9].device;
  void *const written[3] = {w.progress, w.street, w.dice};

  const int64_t threads = warps(w.h.cars) + warps(w.h.buses) + warps(w.h.pedestrians);
  double *kernel = (double *)calloc((size_t)runs, sizeof(double));
  double *upload = (double *)calloc((size_t)runs, sizeof(double));
  double *download = (double *)calloc((size_t)runs, sizeof(double));
  cudaEvent_t event[4];
  for (int e = 0; e < 4; e++) check(cudaEventCreate(&event[e]), "event");

  for (int run = 0; run < runs; run++) {
    for (int c = 7; c < 10; c++) memcpy(columns[c].host, written[c - 7], columns[c].bytes);
    check(cudaEventRecord(event[0], 0), "event");
    for (int c = 0; c < 10; c++) check(cudaMemcpyAsync(columns[c].device, columns[c].host, columns[c].bytes, cudaMemcpyHostToDevice, 0), "upload");
    check(cudaEventRecord(event[1], 0), "event");
    simulate<<<(unsigned)((threads + BLOCK - 1) / BLOCK), BLOCK>>>(d);
    check(cudaGetLastError(), "launch");
    check(cudaEventRecord(event[2], 0), "event");
    for (int c = 7; c < 10; c++) check(cudaMemcpyAsync(columns[c].host, columns[c].device, columns[c].bytes, cudaMemcpyDeviceToHost, 0), "download");
    check(cudaEventRecord(event[3], 0), "event");
    check(cudaDeviceSynchronize(), "kernel");
    upload[run] = milliseconds(event[0], event[1]) / 1e3;
    kernel[run] = milliseconds(event[1], event[2]) / 1e3;
    download[run] = milliseconds(event[2], event[3]) / 1e3;
  }

  w.progress = (double *)columns[7].host;
  w.street = (int32_t *)columns[8].host;
  w.dice = (int32_t *)columns[9].host;
  write_actors(&w, argv[2]);
  struct cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "device");
  printf("{\"device\": \"%s\", ", properties.name);
  print_seconds("kernel", kernel, runs, ", ");
  print_seconds("upload", upload, runs, ", ");
  print_seconds("download", download, runs, "}\n");
}
