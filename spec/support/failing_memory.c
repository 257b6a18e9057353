/* Allocations that fail when they are told to: loaded in front of the C library (LD_PRELOAD), for failing_memory_spec.rb. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

enum { LEAST = 65536, NONE = 0, ALL = -1 };

/* n: the nth from now on fails; ALL: each does. */
static atomic_long left = NONE;
static atomic_int all_behind;
static atomic_long failed;

/* The nth allocation of LEAST bytes or more fails; with `all` those behind it do, too. */
void fail_nth(long n, int all) {
  failed = 0;
  all_behind = all;
  left = n;
}

/* No more fail; how many did. */
long fail_end(void) {
  left = NONE;
  return failed;
}

static int fails(size_t bytes) {
  if (bytes < LEAST) return 0;
  long now = left;
  while (now != NONE && now != ALL) {
    long next = now > 1 ? now - 1 : all_behind ? ALL : NONE;
    if (!atomic_compare_exchange_weak(&left, &now, next)) continue;
    if (now > 1) return 0;
    now = ALL;
  }
  if (now == NONE) return 0;
  failed++;
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t bytes) { return fails(bytes) ? NULL : __libc_malloc(bytes); }

void *calloc(size_t count, size_t bytes) {
  size_t all;
  if (!__builtin_mul_overflow(count, bytes, &all) && fails(all)) return NULL;
  return __libc_calloc(count, bytes);
}

void *realloc(void *from, size_t bytes) { return fails(bytes) ? NULL : __libc_realloc(from, bytes); }

void *memalign(size_t multiple, size_t bytes) { return fails(bytes) ? NULL : __libc_memalign(multiple, bytes); }

void *aligned_alloc(size_t multiple, size_t bytes) { return memalign(multiple, bytes); }

int posix_memalign(void **to, size_t multiple, size_t bytes) {
  void *found = memalign(multiple, bytes);
  if (!found) return ENOMEM;
  *to = found;
  return 0;
}

void *mmap(void *address, size_t bytes, int access, int flags, int file, off_t from) {
  static void *(*system)(void *, size_t, int, int, int, off_t);
  if (!system) system = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
  return fails(bytes) ? (void *)-1 : system(address, bytes, access, flags, file, from);
}
