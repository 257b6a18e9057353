// The simulations of benchmark/concurrency.rb by hand: 16 worlds of stars, whose columns stay on the device. Arguments: stars of a world, steps.
// Prints as JSON the median microseconds of all worlds: one after the other, with a stream for each, by a graph with a branch for each, and by kernels
// over all worlds. Also prints the sum of all positions. Compile with --fmad=false, as Ruby rounds each operation. Not here: copies from and to the host.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int worlds = 16, threads = 64;
constexpr double dt = 0.001;

struct World { double *x, *y, *u, *v, *m; };
struct Worlds { World each[worlds]; };

__device__ void attract(const World &w, int count, int i) {
  const double x = w.x[i], y = w.y[i];
  double ax = 0, ay = 0;
  for (int j = 0; j < count; ++j) {
    const double dx = w.x[j] - x, dy = w.y[j] - y, near = dx * dx + dy * dy + 0.01, force = w.m[j] / (near * sqrt(near));
    ax += dx * force;
    ay += dy * force;
  }
  w.u[i] += ax * dt;
  w.v[i] += ay * dt;
}

__device__ void move(const World &w, int i) {
  w.x[i] += w.u[i] * dt;
  w.y[i] += w.v[i] * dt;
}

__global__ void attract_one(World w, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) attract(w, count, i);
}
__global__ void move_one(World w, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) move(w, i);
}
__global__ void attract_all(__grid_constant__ const Worlds all, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) attract(all.each[blockIdx.y], count, i);
}
__global__ void move_all(__grid_constant__ const Worlds all, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) move(all.each[blockIdx.y], i);
}

void must(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const int count = std::atoi(argv[1]), steps = std::atoi(argv[2]), blocks = (count + threads - 1) / threads;
  Worlds all;
  std::vector<double> given(5 * count);
  const size_t bytes = given.size() * sizeof(double);
  std::vector<double *> memory(worlds);
  for (int w = 0; w < worlds; ++w) {
    must(cudaMalloc(&memory[w], bytes));
    double *at = memory[w];
    all.each[w] = {at, at + count, at + 2 * count, at + 3 * count, at + 4 * count};
  }
  std::srand(1);
  for (int i = 0; i < count; ++i)
    for (int column : {0, 1, 4}) given[column * count + i] = std::rand() / (RAND_MAX + 1.0);
  const auto begin = [&] { for (double *to : memory) must(cudaMemcpy(to, given.data(), bytes, cudaMemcpyHostToDevice)); };

  std::vector<cudaStream_t> streams(worlds);
  for (auto &stream : streams) must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const auto one = [&](int w, cudaStream_t stream) {
    for (int step = 0; step < steps; ++step) {
      attract_one<<<blocks, threads, 0, stream>>>(all.each[w], count);
      move_one<<<blocks, threads, 0, stream>>>(all.each[w], count);
    }
  };
  const auto in_turn = [&] { for (int w = 0; w < worlds; ++w) { one(w, streams[0]); must(cudaStreamSynchronize(streams[0])); } };
  const auto by_streams = [&] {
    for (int w = 0; w < worlds; ++w) one(w, streams[w]);
    for (auto stream : streams) must(cudaStreamSynchronize(stream));
  };
  const auto by_kernels = [&] {
    for (int step = 0; step < steps; ++step) {
      attract_all<<<dim3(blocks, worlds), threads, 0, streams[0]>>>(all, count);
      move_all<<<dim3(blocks, worlds), threads, 0, streams[0]>>>(all, count);
    }
    must(cudaStreamSynchronize(streams[0]));
  };
  // a graph as the driver records it: the branches begin and end with the first stream
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaEvent_t forked, joined[worlds];
  must(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
  must(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
  must(cudaEventRecord(forked, streams[0]));
  for (int w = 0; w < worlds; ++w) {
    if (w) must(cudaStreamWaitEvent(streams[w], forked, 0));
    one(w, streams[w]);
    if (!w) continue;
    must(cudaEventCreateWithFlags(&joined[w], cudaEventDisableTiming));
    must(cudaEventRecord(joined[w], streams[w]));
    must(cudaStreamWaitEvent(streams[0], joined[w], 0));
  }
  must(cudaStreamEndCapture(streams[0], &graph));
  must(cudaGraphInstantiate(&executable, graph, 0));
  const auto by_graph = [&] { must(cudaGraphLaunch(executable, streams[0])); must(cudaStreamSynchronize(streams[0])); };

  double sum = -1;
  const auto median = [&](auto way) {
    std::vector<double> taken;
    for (int run = 0; run < 12; ++run) {
      begin();
      must(cudaDeviceSynchronize());
      const auto started = std::chrono::steady_clock::now();
      way();
      const std::chrono::duration<double, std::micro> elapsed = std::chrono::steady_clock::now() - started;
      if (run > 1) taken.push_back(elapsed.count());
    }
    double total = 0;
    std::vector<double> found(bytes / sizeof(double));
    for (double *from : memory) {
      must(cudaMemcpy(found.data(), from, bytes, cudaMemcpyDeviceToHost));
      for (int i = 0; i < 2 * count; ++i) total += found[i];
    }
    if (sum >= 0 && total != sum) { std::fprintf(stderr, "another result\n"); std::exit(1); }
    sum = total;
    std::sort(taken.begin(), taken.end());
    return taken[taken.size() / 2];
  };
  const double turn = median(in_turn), stream = median(by_streams), branch = median(by_graph), kernel = median(by_kernels);
  std::printf("{\"in turn\":%f,\"streams\":%f,\"one graph\":%f,\"one kernel\":%f}\n", turn, stream, branch, kernel);
}
