// A stand-in for libcublas: products of matrices, computed on the host when they are queued, which is behind all that the
// stream has been given. Sums run from the last product to the first, so that nobody takes them for another's.

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

using Status = int;

static int calls = 0;

struct Handle {
  void *stream;
  void *workspace;
};

static void wait(void *stream) {
  using Synchronize = int (*)(void *);
  static Synchronize synchronize = (Synchronize)dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuStreamSynchronize");
  synchronize(stream);
}

template <typename T>
static Status gemm(Handle *handle, int opA, int opB, int m, int n, int k, const T *alpha, const T *A, int lda, long long strideA, const T *B, int ldb, long long strideB, const T *beta, T *C, int ldc,
                   long long strideC, int count) {
  if (m < 0 || n < 0 || k < 0 || lda < (opA ? k : m) || ldb < (opB ? n : k) || ldc < m || *beta != 0) return 7;
  if (!handle->workspace) return 3;
  calls++;
  wait(handle->stream);
  for (int t = 0; t < count; t++, A += strideA, B += strideB, C += strideC)
    for (int i = 0; i < m; i++)
      for (int j = 0; j < n; j++) {
        T sum = 0;
        for (int l = k; l-- > 0;) sum += (opA ? A[l + (long long)i * lda] : A[i + (long long)l * lda]) * (opB ? B[j + (long long)l * ldb] : B[l + (long long)j * ldb]);
        C[i + (long long)j * ldc] = *alpha * sum;
      }
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
