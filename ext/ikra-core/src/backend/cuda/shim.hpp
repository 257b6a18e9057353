// A stand-in for a CUDA device in a host compiler, so that generated kernels run without a GPU.
//
// Here: the qualifiers, built-in variables, intrinsics and atomics that the prelude and the kernels use; and launch(),
// which runs a grid block by block in one host thread. In a kernel without barriers, threads run one after the other.
// If a kernel has barriers or warp primitives (IKRA_FIBERS is defined), each thread of a block is a fiber. It switches
// to others where it has to wait for them. Not here: memory spaces, timing, concurrency between blocks.
//
// No header is included unless fibers are needed, because that would take most of the time to compile a small kernel.

#define __device__
#define __global__
#define __grid_constant__
#define __constant__ static
#define __shared__ static
// Inlining is not forced, so long programs compile in half the time. Tests compile far more than they run.
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)

extern "C" {
double sin(double), cos(double), tan(double), asin(double), acos(double), atan(double), atan2(double, double);
double sinh(double), cosh(double), tanh(double), asinh(double), acosh(double), atanh(double);
double exp(double), log(double), log2(double), log10(double), cbrt(double), hypot(double, double), pow(double, double);
double erf(double), erfc(double), tgamma(double), lgamma(double), ldexp(double, int);
double fabs(double), sqrt(double), floor(double), ceil(double), trunc(double), rint(double), round(double);
double fmod(double, double), nextafter(double, double), copysign(double, double);
float fabsf(float), sqrtf(float), floorf(float), ceilf(float), truncf(float), rintf(float), copysignf(float, float);
}

namespace shim {
struct dim3 {
  unsigned x, y, z;
};
}  // namespace shim
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct longlong2 {
  long long x, y;
};
static shim::dim3 threadIdx, blockIdx, blockDim, gridDim;

template <class T> static inline T __ldg(const T *p) { return *p; }
static inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
static inline int __ffs(int a) { return __builtin_ffs(a); }
static inline int __popc(unsigned a) { return __builtin_popcount(a); }
static inline int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
static inline int __clzll(long long a) { return a ? __builtin_clzll((unsigned long long)a) : 64; }
static inline long long __double_as_longlong(double x) {
  long long bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}
static inline double __longlong_as_double(long long bits) {
  double x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
}
static inline unsigned __float_as_uint(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
static inline float __uint_as_float(unsigned bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

// real atomics, because another host thread may write the word that stops a launch
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __threadfence(); }
template <class T, class F> static inline T shim_update(T *p, F &&f) {
  T old = __atomic_load_n(p, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(p, &old, f(old), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return old;
}
template <class T> static inline T atomicCAS(T *p, T expected, T wanted) {
  __atomic_compare_exchange_n(p, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
template <class T> static inline T atomicExch(T *p, T x) { return __atomic_exchange_n(p, x, __ATOMIC_SEQ_CST); }
template <class T> static inline T atomicAdd(T *p, T x) { return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST); }
static inline double atomicAdd(double *p, double x) {
  unsigned long long *bits = (unsigned long long *)p, old = __atomic_load_n(bits, __ATOMIC_SEQ_CST), sum;
  double seen;
  do {
    __builtin_memcpy(&seen, &old, sizeof seen);
    double next = seen + x;
    __builtin_memcpy(&sum, &next, sizeof sum);
  } while (!__atomic_compare_exchange_n(bits, &old, sum, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  return seen;
}
template <class T> static inline T atomicAnd(T *p, T x) { return __atomic_fetch_and(p, x, __ATOMIC_SEQ_CST); }
template <class T> static inline T atomicOr(T *p, T x) { return __atomic_fetch_or(p, x, __ATOMIC_SEQ_CST); }
template <class T> static inline T atomicXor(T *p, T x) { return __atomic_fetch_xor(p, x, __ATOMIC_SEQ_CST); }
template <class T> static inline T atomicMin(T *p, T x) {
  return shim_update(p, [x](T old) { return x < old ? x : old; });
}
template <class T> static inline T atomicMax(T *p, T x) {
  return shim_update(p, [x](T old) { return x > old ? x : old; });
}

namespace shim {

#ifndef IKRA_FIBERS

template <class Args> void launch(void (*kernel)(Args), unsigned grid, unsigned block, const void *args) {
  gridDim = {grid, 1, 1};
  blockDim = {block, 1, 1};
  threadIdx = blockIdx = {0, 0, 0};
  for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < block; threadIdx.x++) kernel(*static_cast<const Args *>(args));
}

#else

}  // namespace shim
// With this macro, longjmp refuses to switch between stacks of fibers. Some compilers define it by default.
#undef _FORTIFY_SOURCE
#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>
namespace shim {

const unsigned WARP = 32;
const unsigned long STACK = 256 * 1024;

// A fiber starts with a context switch. After that, jumps enter and leave it, which need no system calls.
struct Fiber {
  ucontext_t context;
  jmp_buf place;
  bool started;
  char *stack;
  // How many barriers of its block and of its warp it has reached. A fiber waits until no other is behind.
  unsigned long block_barriers, warp_barriers;
  bool done;
};

static Fiber *fibers;
static unsigned current;
static jmp_buf scheduler;
static void (*body)();
// The value that each thread of the block shows to its warp.
static unsigned long long shown[1024];

static __attribute__((noinline)) void pause() {
  const unsigned self = current;
  if (!_setjmp(fibers[self].place)) _longjmp(scheduler, 1);
  threadIdx.x = current = self;
}
// Runs a fiber until it pauses or ends.
static __attribute__((noinline)) void enter(Fiber *fiber) {
  if (_setjmp(scheduler)) return;
  if (fiber->started) _longjmp(fiber->place, 1);
  fiber->started = true;
  setcontext(&fiber->context);
}
static inline void wait(unsigned first, unsigned end, unsigned long Fiber::*count) {
  const unsigned long mine = ++(fibers[current].*count);
  for (bool lags = true; lags;) {
    lags = false;
    for (unsigned f = first; f < end; f++) lags |= !fibers[f].done && fibers[f].*count < mine;
    if (lags) pause();
  }
}
static inline void wait_for_block() { wait(0, blockDim.x, &Fiber::block_barriers); }
static inline void wait_for_warp() {
  const unsigned first = current / WARP * WARP, end = first + WARP;
  wait(first, end < blockDim.x ? end : blockDim.x, &Fiber::warp_barriers);
}
// Shows `x` to the warp, and returns the result of `seen` for the values of all its lanes. `seen` gets the index of the
// first lane's value, and the number of lanes.
template <class T, class F> static auto together(T x, F &&seen) {
  static_assert(sizeof(T) <= sizeof *shown, "a lane shows a word");
  __builtin_memcpy(&shown[current], &x, sizeof x);
  wait_for_warp();
  const unsigned first = current / WARP * WARP;
  const auto answer = seen(shown + first, blockDim.x - first < WARP ? blockDim.x - first : WARP);
  wait_for_warp();
  return answer;
}
template <class T> static T exchange(T x, unsigned lane) {
  return together(x, [=](const unsigned long long *lanes, unsigned count) {
    T seen = x;
    if (lane < count) __builtin_memcpy(&seen, lanes + lane, sizeof x);
    return seen;
  });
}

static void run_fiber() {
  body();
  fibers[current].done = true;
  _longjmp(scheduler, 1);
}

template <class Args> struct Kernel {
  static void (*kernel)(Args);
  static const Args *args;
  static void call() { kernel(*args); }
};
template <class Args> void (*Kernel<Args>::kernel)(Args);
template <class Args> const Args *Kernel<Args>::args;

template <class Args> void launch(void (*kernel)(Args), unsigned grid, unsigned block, const void *args) {
  Kernel<Args>::kernel = kernel;
  Kernel<Args>::args = static_cast<const Args *>(args);
  body = Kernel<Args>::call;
  gridDim = {grid, 1, 1};
  blockDim = {block, 1, 1};
  threadIdx = blockIdx = {0, 0, 0};
  fibers = static_cast<Fiber *>(calloc(block, sizeof(Fiber)));
  for (unsigned t = 0; t < block; t++) fibers[t].stack = static_cast<char *>(malloc(STACK));
  for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++) {
    for (unsigned t = 0; t < block; t++) {
      Fiber &fiber = fibers[t];
      fiber.block_barriers = fiber.warp_barriers = 0;
      fiber.done = fiber.started = false;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack;
      fiber.context.uc_stack.ss_size = STACK;
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, run_fiber, 0);
    }
    for (unsigned left = block; left;) {
      left = 0;
      for (unsigned t = 0; t < block; t++) {
        if (fibers[t].done) continue;
        threadIdx.x = current = t;
        enter(&fibers[t]);
        left += !fibers[t].done;
      }
    }
  }
  for (unsigned t = 0; t < block; t++) free(fibers[t].stack);
  free(fibers);
}

#endif

}  // namespace shim

#ifdef IKRA_FIBERS
static inline void __syncthreads() { shim::wait_for_block(); }
static inline void __syncwarp(unsigned = ~0u) { shim::wait_for_warp(); }
template <class T> static inline T __shfl_sync(unsigned, T x, unsigned lane) { return shim::exchange(x, lane % shim::WARP); }
template <class T> static inline T __shfl_down_sync(unsigned, T x, unsigned delta) {
  return shim::exchange(x, threadIdx.x % shim::WARP + delta);
}
template <class T> static inline T __shfl_up_sync(unsigned, T x, unsigned delta) {
  return shim::exchange(x, threadIdx.x % shim::WARP - delta);
}
template <class T> static inline T __shfl_xor_sync(unsigned, T x, unsigned mask) {
  return shim::exchange(x, threadIdx.x % shim::WARP ^ mask);
}
static inline unsigned __ballot_sync(unsigned mask, bool vote) {
  return shim::together((unsigned long long)vote, [=](const unsigned long long *lanes, unsigned count) {
    unsigned votes = 0;
    for (unsigned lane = 0; lane < count; lane++) votes |= unsigned(lanes[lane] && (mask >> lane & 1)) << lane;
    return votes;
  });
}
template <class T> static inline unsigned __match_any_sync(unsigned mask, T x) {
  return shim::together((unsigned long long)x, [=](const unsigned long long *lanes, unsigned count) {
    unsigned same = 0;
    for (unsigned lane = 0; lane < count; lane++) same |= unsigned(lanes[lane] == (unsigned long long)x && (mask >> lane & 1)) << lane;
    return same;
  });
}
static inline bool __any_sync(unsigned mask, bool vote) { return __ballot_sync(mask, vote) != 0; }
static inline bool __all_sync(unsigned mask, bool vote) { return __ballot_sync(mask, !vote) == 0; }
#else
// The prelude mentions these, and kernels without barriers do not call what does.
static inline void __syncthreads() {}
static inline void __syncwarp(unsigned = ~0u) {}
template <class T> static inline T __shfl_xor_sync(unsigned, T x, unsigned) { return x; }
#endif

// The symbol that the host calls.
#define IKRA_LAUNCHER(name, kernel) \
  extern "C" void name(unsigned grid, unsigned block, const void *args) { shim::launch(kernel, grid, block, args); }
