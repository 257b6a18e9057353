// The common part of all generated kernels: number types, checked arithmetic, the launch protocol, random numbers.
//
// Here: only operations of the IR that C++ lacks. Not here: any rule of Ruby; the program has made those explicit. No
// header is included, so that NVRTC starts at once. The host's compiler reads shim.hpp first, which stands in for the
// device. NVRTC gets only the declarations that a program mentions (emit/needed.rs). So each declaration must begin in
// the first column, and all its other lines except the closing brace must be indented.

typedef unsigned char u8;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef double f64;
typedef __int128 i128;

#define INLINE static __device__ __forceinline__

#define INT_LEAST (i64(0x8000000000000000ull))

// ---- Integers. Signed overflow is undefined in C++ and wraps in the IR, so arithmetic uses unsigned numbers. ----

INLINE i64 add(i64 a, i64 b) { return i64(u64(a) + u64(b)); }
INLINE i64 sub(i64 a, i64 b) { return i64(u64(a) - u64(b)); }
INLINE i64 mul(i64 a, i64 b) { return i64(u64(a) * u64(b)); }
// The product of two 32-bit numbers, in one instruction. NVRTC's optimiser loads them with 64 bits and would need five.
#ifdef __CUDACC__
INLINE i64 mul_wide(i32 a, i32 b) {
  i64 product;
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
}
#else
INLINE i64 mul_wide(i32 a, i32 b) { return i64(a) * b; }
#endif
INLINE i64 shl(i64 a, i64 n) { return i64(u64(a) << n); }
INLINE i64 shr(i64 a, i64 n) { return a >> n; }
INLINE i64 ushr(i64 a, i64 n) { return i64(u64(a) >> n); }
INLINE i64 mul_high(i64 a, i64 b) { return __mul64hi(a, b); }
INLINE i64 umul_high(i64 a, i64 b) { return i64(__umul64hi(u64(a), u64(b))); }
INLINE i64 udiv(i64 a, i64 b) { return i64(u64(a) / u64(b)); }
INLINE i64 urem(i64 a, i64 b) { return i64(u64(a) % u64(b)); }
INLINE i64 leading_zeros(i64 a) { return __clzll(a); }

INLINE i32 add32(i32 a, i32 b) { return i32(u32(a) + u32(b)); }
INLINE i32 sub32(i32 a, i32 b) { return i32(u32(a) - u32(b)); }
INLINE i32 mul32(i32 a, i32 b) { return i32(u32(a) * u32(b)); }
INLINE i32 shl32(i32 a, i32 n) { return i32(u32(a) << n); }
INLINE i32 shr32(i32 a, i32 n) { return a >> n; }
INLINE i32 ushr32(i32 a, i32 n) { return i32(u32(a) >> n); }
INLINE i32 udiv32(i32 a, i32 b) { return i32(u32(a) / u32(b)); }
INLINE i32 urem32(i32 a, i32 b) { return i32(u32(a) % u32(b)); }

// Each returns whether the exact result exceeds 64 bits, and stores the wrapped result in `result`. Only signs decide,
// which are in the high words: that takes one instruction on values that are in registers.
INLINE i32 high(i64 x) { return i32(u64(x) >> 32); }
INLINE bool add_overflows(i64 a, i64 b, i64 &result) {
  const i64 sum = add(a, b);
  result = sum;
  return ((high(a) ^ high(sum)) & (high(b) ^ high(sum))) < 0;
}
INLINE bool sub_overflows(i64 a, i64 b, i64 &result) {
  const i64 difference = sub(a, b);
  result = difference;
  return ((high(a) ^ high(b)) & (high(a) ^ high(difference))) < 0;
}
INLINE bool mul_overflows(i64 a, i64 b, i64 &result) {
  const i128 product = i128(a) * b;
  result = i64(product);
  return i64(product >> 64) != i64(product) >> 63;
}
// A product with a constant. It fits if `x` is between `least` and `most`. That test takes four instructions instead of
// a 128-bit product.
INLINE bool times_overflows(i64 x, i64 by, i64 least, i64 most, i64 &result) {
  result = mul(x, by);
  return x < least || x > most;
}
INLINE bool and_overflows(i64 a, i64 b, i64 &result) {
  result = a & b;
  return high(result) < 0;
}

// The remainder with the sign of the divisor, which is positive. Uses 128 bits if the dividend exceeds 64 bits.
INLINE i64 floored(i64 remainder, i64 m) { return remainder < 0 ? remainder + m : remainder; }
static __device__ __noinline__ i64 wide_mod(u64 high, u64 low, i64 m) {
  return floored(i64(i128((unsigned __int128)high << 64 | low) % i128(m)), m);
}
INLINE i64 add_mod(i64 a, i64 b, i64 m) {
  i64 sum;
  if (add_overflows(a, b, sum)) return wide_mod(a < 0 ? ~0ull : 0ull, u64(sum), m);
  return floored(sum % m, m);
}
INLINE i64 mul_mod(i64 a, i64 b, i64 m) {
  i64 product;
  if (mul_overflows(a, b, product)) return wide_mod(u64(__mul64hi(a, b)), u64(product), m);
  return floored(product % m, m);
}

// ---- Floats ----

// If all operands around are such values, the compiler uses 32-bit arithmetic.
INLINE f64 single(f64 x) { return f64(float(x)); }
INLINE i32 single_bits(float x) { return i32(__float_as_uint(x)); }
INLINE i64 float_bits(f64 x) { return __double_as_longlong(x); }
INLINE f64 float_of(u64 bits) { return __longlong_as_double(i64(bits)); }
// The clamping changes no result: beyond, it is already 0 or infinite.
INLINE f64 scale(f64 x, i64 exponent) { return ldexp(x, exponent < -9999 ? -9999 : exponent > 9999 ? 9999 : i32(exponent)); }

// Quotients and square roots of ordinary Floats. The compiler generates the same steps: Newton's iteration from the
// device's approximation, and one more step for the last bit. But it adds a branch for other numbers, and these
// functions have none. The bits are the same for operands from 2^-255 to 2^257.
#ifdef __CUDACC__
INLINE f64 quick_div(f64 a, f64 b) {
  f64 guess;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(b));
  guess = __hiloint2double(__double2hiint(guess), 1);
  const f64 far = __fma_rn(-b, guess, 1.0);
  const f64 near = __fma_rn(guess, __fma_rn(far, far, far), guess);
  const f64 inverse = __fma_rn(near, __fma_rn(-b, near, 1.0), near);
  const f64 quotient = __dmul_rn(a, inverse);
  return __fma_rn(inverse, __fma_rn(-b, quotient, a), quotient);
}
INLINE f64 quick_sqrt(f64 x) {
  f64 guess;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(x));
  guess = __hiloint2double(__double2hiint(guess), __double2hiint(x) - 0x03500000);
  const f64 far = __fma_rn(x, -__dmul_rn(guess, guess), 1.0);
  const f64 near = __fma_rn(__fma_rn(far, 0.375, 0.5), __dmul_rn(guess, far), guess);
  const f64 root = __dmul_rn(x, near);
  const f64 half = __hiloint2double(__double2hiint(near) - 0x00100000, __double2loint(near));
  return __fma_rn(__fma_rn(root, -root, x), half, root);
}
// The same with 32 bits. The bits are the same for roots of, and quotients by, numbers from 2^-63 to 2^65, if the
// dividend is from 2^-31 to 2^33.
INLINE float quick_div32(float a, float b) {
  float guess;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(b));
  const float inverse = __fmaf_rn(guess, __fmaf_rn(-b, guess, 1.0f), guess);
  const float far = __fmul_rn(a, inverse);
  const float near = __fmaf_rn(inverse, __fmaf_rn(-b, far, a), far);
  return __fmaf_rn(inverse, __fmaf_rn(-b, near, a), near);
}
INLINE float quick_sqrt32(float x) {
  float guess;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(guess) : "f"(x));
  const float root = __fmul_rn(x, guess);
  return __fmaf_rn(__fmaf_rn(-root, root, x), __fmul_rn(guess, 0.5f), root);
}
#else
INLINE f64 quick_div(f64 a, f64 b) { return a / b; }
INLINE f64 quick_sqrt(f64 x) { return sqrt(x); }
INLINE float quick_div32(float a, float b) { return a / b; }
INLINE float quick_sqrt32(float x) { return sqrtf(x); }
#endif

// ---- Neighbours, 16 bytes at a time ----

INLINE bool are_left(i64 from, i64 end, u64 count) { return from < end && u64(end) - u64(from) >= count; }
INLINE bool is_even(const void *slot) { return (u64(slot) & 15) == 0; }
INLINE void of_bits(i64 bits, i64 &x) { x = bits; }
INLINE void of_bits(i64 bits, f64 &x) { x = __longlong_as_double(bits); }
template <class T, u32 N> struct Neighbours {
  T at[N];
  __device__ __forceinline__ Neighbours(const T *from) {
#pragma unroll
    for (u32 i = 0; i < N; i += 2) {
      const longlong2 pair = __ldg((const longlong2 *)(from + i));
      of_bits(pair.x, at[i]);
      of_bits(pair.y, at[i + 1]);
    }
  }
};
template <u32 N> struct Neighbours<i32, N> {
  i32 at[N];
  __device__ __forceinline__ Neighbours(const u32 *from) {
#pragma unroll
    for (u32 i = 0; i < N; i += 4) {
      const uint4 four = __ldg((const uint4 *)(from + i));
      at[i] = i32(four.x);
      at[i + 1] = i32(four.y);
      at[i + 2] = i32(four.z);
      at[i + 3] = i32(four.w);
    }
  }
};

// ---- Rows of several jobs of a thread, which are neighbours: accessed 16 bytes at a time if their address is aligned
// ----

INLINE void of_words(const u32 *words, u32 i, u8 &x) { x = u8(words[i / 4] >> i % 4 * 8); }
INLINE void of_words(const u32 *words, u32 i, u32 &x) { x = words[i]; }
INLINE void of_words(const u32 *words, u32 i, i32 &x) { x = i32(words[i]); }
INLINE void of_words(const u32 *words, u32 i, float &x) { x = __uint_as_float(words[i]); }
INLINE void of_words(const u32 *words, u32 i, i64 &x) { x = i64(u64(words[2 * i + 1]) << 32 | words[2 * i]); }
INLINE void of_words(const u32 *words, u32 i, f64 &x) {
  i64 bits;
  of_words(words, i, bits);
  x = __longlong_as_double(bits);
}
INLINE void to_words(u32 *words, u32 i, u8 x) { words[i / 4] |= u32(x) << i % 4 * 8; }
INLINE void to_words(u32 *words, u32 i, u32 x) { words[i] = x; }
INLINE void to_words(u32 *words, u32 i, i32 x) { words[i] = u32(x); }
INLINE void to_words(u32 *words, u32 i, float x) { words[i] = __float_as_uint(x); }
INLINE void to_words(u32 *words, u32 i, i64 x) {
  words[2 * i] = u32(u64(x));
  words[2 * i + 1] = u32(u64(x) >> 32);
}
INLINE void to_words(u32 *words, u32 i, f64 x) { to_words(words, i, __double_as_longlong(x)); }

template <u32 BYTES> struct AtOnce;
template <> struct AtOnce<2> {
  static __device__ __forceinline__ void load(const void *from, u32 *words) { words[0] = __ldg((const unsigned short *)from); }
  static __device__ __forceinline__ void store(void *to, const u32 *words) { *(unsigned short *)to = (unsigned short)words[0]; }
};
template <> struct AtOnce<4> {
  static __device__ __forceinline__ void load(const void *from, u32 *words) { words[0] = __ldg((const u32 *)from); }
  static __device__ __forceinline__ void store(void *to, const u32 *words) { *(u32 *)to = words[0]; }
};
template <> struct AtOnce<8> {
  static __device__ __forceinline__ void load(const void *from, u32 *words) {
    const uint2 two = __ldg((const uint2 *)from);
    words[0] = two.x;
    words[1] = two.y;
  }
  static __device__ __forceinline__ void store(void *to, const u32 *words) { *(uint2 *)to = {words[0], words[1]}; }
};
template <> struct AtOnce<16> {
  static __device__ __forceinline__ void load(const void *from, u32 *words) {
    const uint4 four = __ldg((const uint4 *)from);
    words[0] = four.x;
    words[1] = four.y;
    words[2] = four.z;
    words[3] = four.w;
  }
  static __device__ __forceinline__ void store(void *to, const u32 *words) { *(uint4 *)to = {words[0], words[1], words[2], words[3]}; }
};
template <class T, u32 N> struct Rows {
  static const u32 BYTES = N * sizeof(T);
  T at[N];
  // For columns that nothing writes.
  __device__ __forceinline__ void load(const T *from) {
    if (u64(from) % BYTES == 0) {
      u32 words[4];
      AtOnce<BYTES>::load(from, words);
#pragma unroll
      for (u32 i = 0; i < N; i++) of_words(words, i, at[i]);
    } else {
#pragma unroll
      for (u32 i = 0; i < N; i++) at[i] = __ldg(from + i);
    }
  }
  __device__ __forceinline__ void store(T *to) const {
    if (u64(to) % BYTES == 0) {
      u32 words[4] = {0, 0, 0, 0};
#pragma unroll
      for (u32 i = 0; i < N; i++) to_words(words, i, at[i]);
      AtOnce<BYTES>::store(to, words);
    } else {
#pragma unroll
      for (u32 i = 0; i < N; i++) to[i] = at[i];
    }
  }
};

// ---- Words of a trap ----

INLINE u64 word(bool x) { return x; }
INLINE u64 word(i32 x) { return u64(i64(x)); }
INLINE u64 word(i64 x) { return u64(x); }
INLINE u64 word(f64 x) { return u64(float_bits(x)); }

// ---- The launch protocol; see backend/mod.rs. Each member takes 8 bytes, because the host writes words. ----

// The trap with the least key so far. `lock` guards the other members.
struct TrapRecord {
  u64 lock;
  u64 key;
  u64 site;
  u64 words[4];
};

struct Launch {
  u64 jobs;
  i64 tick_begin;
  i64 tick_end;
  u64 limit;
  u64 seed;
  alignas(8) u32 section;
  alignas(8) u32 call_depth;
  u64 *stop_key;
  TrapRecord *trap;
};

// The state of one job, which is in registers once all is inlined. `site` and `words` describe its trap, if it has
// trapped.
struct Ctx {
  const Launch &launch;
  u32 tick;
  u32 index;
  u32 draws;
  u32 polls;
  u32 depth;
  u32 site;
  u64 words[4];
  u32 looks;
  // The parts of the next pair's key: a KeyParts, in kernels that have such keys.
  void *key;
};
#define NO_SITE 0xffffffffu

// The number of the thread in the grid.
INLINE i64 slot() { return i64(u64(blockIdx.x) * blockDim.x + threadIdx.x); }

INLINE u64 key_of(const Ctx &ctx) { return (u64(ctx.tick) << 32 | ctx.index) + 1; }

// Whether all jobs of this launch come after the trap that stopped it.
INLINE bool launch_is_over(const Launch &launch) { return *launch.stop_key <= u64(launch.tick_begin) << 32; }

INLINE bool stopped(const Ctx &ctx) { return *(const volatile u64 *)ctx.launch.stop_key < key_of(ctx); }

// Reads the shared word at every 1024th call.
INLINE bool poll(Ctx &ctx) { return (++ctx.polls & 1023) == 0 && stopped(ctx); }

// ---- Teams of threads that run one job. A team of at most 32 lanes is within a warp, a larger one is a block. ----

INLINE u32 team_mask(u32 lanes) {
  return lanes >= 32 ? ~0u : ((1u << lanes) - 1) << (threadIdx.x % 32 & ~(lanes - 1));
}
// Waits for all lanes, and makes visible what they have stored.
INLINE void gather(u32 lanes) {
  if (lanes > 32) {
    __syncthreads();
  } else {
    __syncwarp(team_mask(lanes));
  }
}
// The same. Returns the least of the lanes' values.
INLINE i64 meet(u32 lanes, i64 x) {
  const u32 mask = team_mask(lanes);
  __syncwarp(mask);
  for (u32 apart = (lanes < 32 ? lanes : 32) / 2; apart; apart /= 2) {
    const i64 other = __shfl_xor_sync(mask, x, apart);
    if (other < x) x = other;
  }
  if (lanes <= 32) return x;
  __shared__ i64 least[32];
  if (threadIdx.x % 32 == 0) least[threadIdx.x / 32] = x;
  __syncthreads();
  for (u32 warp = 0; warp < lanes / 32; warp++) {
    if (least[warp] < x) x = least[warp];
  }
  __syncthreads();
  return x;
}
// As `poll`, for one lane. Others do so more or less often.
INLINE bool poll_alone(Ctx &ctx) { return (++ctx.looks & 1023) == 0 && stopped(ctx); }
// As `poll`, for all lanes alike.
INLINE bool poll_together(Ctx &ctx, u32 lanes) {
  return (++ctx.polls & 1023) == 0 && meet(lanes, i64(!stopped(ctx))) == 0;
}

// Begins an element's tick. The checked form returns whether the job must end instead.
INLINE void begin(Ctx &ctx, i64 index, i64 tick) {
  ctx.index = u32(index);
  ctx.tick = u32(tick);
  ctx.draws = 0;
}
INLINE bool begin_checked(Ctx &ctx, i64 index, i64 tick) {
  begin(ctx, index, tick);
  return key_of(ctx) > ctx.launch.limit;
}
// The same in a loop over ticks, for launches that may be stopped: it reads the shared word from time to time.
INLINE bool begin_watching(Ctx &ctx, i64 index, i64 tick) {
  bool over = begin_checked(ctx, index, tick);
  if ((ctx.tick & 1023) == 1023) over |= stopped(ctx);
  return over;
}

// Lowers the shared word to `key`, and stores the record if no trap with a lesser key did. A thread takes and releases
// the lock within one branch, so threads of one warp cannot wait for each other for ever.
//
// In PTX, this is one instruction for the compiler's optimiser, and a part of the kernel for the assembler. As a
// separate C++ function, it took NVRTC 5 ms for each kernel that may raise.
#ifdef __CUDACC__
INLINE void record_trap(u64 *stop_key, TrapRecord *record, u64 key, u64 site, u64 a, u64 b, u64 c, u64 d) {
  asm volatile(
      "{\n"
      ".reg .pred done, waits;\n"
      ".reg .u64 seen;\n"
      "atom.global.min.u64 seen, [%0], %2;\n"
      "setp.lt.u64 done, seen, %2;\n"
      "@done bra END;\n"
      "AGAIN:\n"
      "atom.global.cas.b64 seen, [%1], 0, 1;\n"
      "setp.ne.u64 waits, seen, 0;\n"
      "@waits bra NEXT;\n"
      "membar.gl;\n"
      "ld.volatile.global.u64 seen, [%1 + 8];\n"
      "setp.le.u64 done, seen, %2;\n"
      "@done bra LEAVE;\n"
      "st.volatile.global.u64 [%1 + 8], %2;\n"
      "st.volatile.global.u64 [%1 + 16], %3;\n"
      "st.volatile.global.u64 [%1 + 24], %4;\n"
      "st.volatile.global.u64 [%1 + 32], %5;\n"
      "st.volatile.global.u64 [%1 + 40], %6;\n"
      "st.volatile.global.u64 [%1 + 48], %7;\n"
      "LEAVE:\n"
      "membar.gl;\n"
      "atom.global.exch.b64 seen, [%1], 0;\n"
      "NEXT:\n"
      "@waits bra AGAIN;\n"
      "END:\n"
      "}"
      ::"l"(__cvta_generic_to_global(stop_key)), "l"(__cvta_generic_to_global(record)), "l"(key), "l"(site), "l"(a), "l"(b), "l"(c), "l"(d)
      : "memory");
}
#else
INLINE void record_trap(u64 *stop_key, TrapRecord *record, u64 key, u64 site, u64 a, u64 b, u64 c, u64 d) {
  if (atomicMin(stop_key, key) < key) return;
  for (bool waits = true; waits;) {
    if (atomicCAS(&record->lock, 0ull, 1ull) == 0ull) {
      __threadfence();
      volatile TrapRecord *mine = record;
      if (key < mine->key) {
        mine->key = key;
        mine->site = site;
        mine->words[0] = a;
        mine->words[1] = b;
        mine->words[2] = c;
        mine->words[3] = d;
      }
      __threadfence();
      atomicExch(&record->lock, 0ull);
      waits = false;
    }
  }
}
#endif
// Notes a trap; the job then ends. One place of the kernel, behind the job, records it. A call at each site would force
// the compiler to keep values out of registers.
INLINE void trap(Ctx &ctx, u32 site) { ctx.site = site; }
INLINE void trap(Ctx &ctx, u32 site, u64 a, u64 b = 0, u64 c = 0, u64 d = 0) {
  ctx.site = site;
  ctx.words[0] = a;
  ctx.words[1] = b;
  ctx.words[2] = c;
  ctx.words[3] = d;
}
// Stops later jobs before the trap is recorded. Threads of the same warp may be waiting for that, and this thread waits
// for their end.
INLINE void stop_others(Ctx &ctx) { atomicMin(ctx.launch.stop_key, key_of(ctx)); }
// Called after a job that ended early, by a trap or because the launch was stopped.
INLINE void ended(const Ctx &ctx) {
  if (ctx.site == NO_SITE) return;
  record_trap(ctx.launch.stop_key, ctx.launch.trap, key_of(ctx), ctx.site, ctx.words[0], ctx.words[1], ctx.words[2], ctx.words[3]);
}

// `enter` and `leave` are called around a call that may recurse. `enter` returns whether the job must end.
INLINE bool enter(Ctx &ctx, u32 site) {
  if (++ctx.depth > ctx.launch.call_depth) {
    trap(ctx, site);
    stop_others(ctx);
    return true;
  }
  return poll(ctx);
}
INLINE void leave(Ctx &ctx) { --ctx.depth; }

// ---- Slots that several elements may access ----

INLINE void atomic_add(i64 *slot, i64 x) { atomicAdd((u64 *)slot, u64(x)); }
INLINE bool atomic_add_overflows(i64 *slot, i64 x) {
  i64 sum;
  return add_overflows(i64(atomicAdd((u64 *)slot, u64(x))), x, sum);
}
INLINE i64 fetch_add(i64 *slot, i64 x) { return i64(atomicAdd((u64 *)slot, u64(x))); }
INLINE void atomic_fadd(f64 *slot, f64 x) { atomicAdd(slot, x); }
INLINE void atomic_min(i64 *slot, i64 x) { atomicMin(slot, x); }
INLINE void atomic_max(i64 *slot, i64 x) { atomicMax(slot, x); }
INLINE void atomic_and(i64 *slot, i64 x) { atomicAnd((u64 *)slot, u64(x)); }
INLINE void atomic_or(i64 *slot, i64 x) { atomicOr((u64 *)slot, u64(x)); }
INLINE void atomic_xor(i64 *slot, i64 x) { atomicXor((u64 *)slot, u64(x)); }

// ---- Random numbers: the first two words of Philox4x32-10 with key = seed and counter (section, tick, index, draw)
// ----

INLINE i64 random_bits(Ctx &ctx) {
  u32 c0 = ctx.launch.section, c1 = ctx.tick, c2 = ctx.index, c3 = ctx.draws++;
  u32 k0 = u32(ctx.launch.seed), k1 = u32(ctx.launch.seed >> 32);
#pragma unroll
  for (i32 round = 0; round < 10; round++) {
    const u64 p0 = u64(0xD2511F53u) * c0, p1 = u64(0xCD9E8D57u) * c2;
    c0 = u32(p1 >> 32) ^ c1 ^ k0;
    c1 = u32(p1);
    c2 = u32(p0 >> 32) ^ c3 ^ k1;
    c3 = u32(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return i64(u64(c1) << 32 | c0);
}
