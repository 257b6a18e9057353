// What CUDA C++ needs to be compiled by a C++ compiler and run on the host, a block after the other: enough for the kernels written by hand.
#include <barrier>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static

struct place {
  unsigned x, y = 0, z = 0;
};
static thread_local place threadIdx, blockIdx;
static place blockDim, gridDim;
static std::barrier<> *gate;

static inline void __syncthreads() { gate->arrive_and_wait(); }
static inline unsigned long long atomicAdd(unsigned long long *to, unsigned long long value) { return __atomic_fetch_add(to, value, __ATOMIC_RELAXED); }

// A function takes Integers and Floats from registers of their own, and further Integers from the stack: with these it has all that it looks for.
typedef int64_t i;
typedef double d;
typedef void (*kernel)(i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, d, d, d, d, d, d, d, d);

extern "C" void emulate(kernel run, unsigned blocks, unsigned threads, const i *n, const d *x) {
  blockDim.x = threads;
  gridDim.x = blocks;
  for (unsigned block = 0; block < blocks; block++) {
    std::barrier<> here(threads);
    gate = &here;
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < threads; thread++)
      all.emplace_back([=, &here] {
        threadIdx.x = thread;
        blockIdx.x = block;
        run(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15], n[16], n[17], n[18], n[19], x[0], x[1], x[2],
            x[3], x[4], x[5], x[6], x[7]);
        here.arrive_and_drop();
      });
    for (auto &thread : all) thread.join();
  }
}
