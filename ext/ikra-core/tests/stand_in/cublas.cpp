// A stand-in for libcublas: products of matrices, which the stand-in for libcuda computes on their stream. Sums run from
// the last product to the first, so that nobody takes them for another's.

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>

using Status = int;

static int calls = 0;

struct Handle {
  void *stream;
  void *workspace;
};

// As cuda.cpp has it: memory that work reads or writes.
struct Range {
  const void *begin;
  size_t bytes;
  bool writes;
};
static void run(void *stream, const Range *ranges, size_t count, std::function<void()> work) {
  using Run = void (*)(void *, const char *, const Range *, size_t, std::function<void()> *);
  static Run run = (Run)dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "stand_in_run");
  run(stream, "a product", ranges, count, &work);
}
// Bytes from the first element of the first matrix to the last of the last.
template <typename T> static size_t span(int rows, int columns, int lead, long long apart, int count) {
  return rows == 0 || columns == 0 || count == 0 ? 0 : ((count - 1) * apart + (columns - 1) * (long long)lead + rows) * sizeof(T);
}

template <typename T>
static Status gemm(Handle *handle, int opA, int opB, int m, int n, int k, const T *alpha, const T *A, int lda, long long strideA, const T *B, int ldb, long long strideB, const T *beta, T *C, int ldc,
                   long long strideC, int count) {
  if (m < 0 || n < 0 || k < 0 || lda < (opA ? k : m) || ldb < (opB ? n : k) || ldc < m || *beta != 0) return 7;
  if (!handle->workspace) return 3;
  calls++;
  const Range ranges[] = {{A, opA ? span<T>(k, m, lda, strideA, count) : span<T>(m, k, lda, strideA, count), false},
                          {B, opB ? span<T>(n, k, ldb, strideB, count) : span<T>(k, n, ldb, strideB, count), false},
                          {C, span<T>(m, n, ldc, strideC, count), true}};
  run(handle->stream, ranges, 3, [=, factor = *alpha]() mutable {
    for (int t = 0; t < count; t++, A += strideA, B += strideB, C += strideC)
      for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
          T sum = 0;
          for (int l = k; l-- > 0;) sum += (opA ? A[l + (long long)i * lda] : A[i + (long long)l * lda]) * (opB ? B[j + (long long)l * ldb] : B[l + (long long)j * ldb]);
          C[i + (long long)j * ldc] = factor * sum;
        }
  });
  return 0;
}

extern "C" {
int stand_in_products() { return calls; }
Status cublasCreate_v2(Handle **handle) {
  return *handle = new Handle{nullptr, nullptr}, 0;
}
Status cublasDestroy_v2(Handle *handle) { return delete handle, 0; }
Status cublasSetStream_v2(Handle *handle, void *stream) { return handle->stream = stream, handle->workspace = nullptr, 0; }
Status cublasSetWorkspace_v2(Handle *handle, void *memory, size_t bytes) { return handle->workspace = memory, memory && bytes ? 0 : 7; }

Status cublasDgemmStridedBatched(Handle *handle, int opA, int opB, int m, int n, int k, const double *alpha, const double *A, int lda, long long strideA, const double *B, int ldb, long long strideB,
                                 const double *beta, double *C, int ldc, long long strideC, int count) {
  return gemm(handle, opA, opB, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, count);
}
Status cublasSgemmStridedBatched(Handle *handle, int opA, int opB, int m, int n, int k, const float *alpha, const float *A, int lda, long long strideA, const float *B, int ldb, long long strideB,
                                 const float *beta, float *C, int ldc, long long strideC, int count) {
  return gemm(handle, opA, opB, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, count);
}
}
