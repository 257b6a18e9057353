// What happens before what on the stand-in's device, by vector clocks.
//
// Here: a clock for each stream, each event and the host; what streams did to each allocation; the report of a race. A
// race is two operations on the same bytes, of which one writes, without an order. Not here: the operations themselves
// (cuda.cpp), and how kernels tell which bytes they use (nvrtc.cpp).
//
// Rules:
// - An operation is behind all earlier ones of its stream, and behind what the host knew to be done at the call.
// - The host learns what was done from an event or a stream that it waits for, and from an event that has passed. It
//   also learns from a word that a stream writes, when it first reads that word. All threads of the host have one
//   clock, because their own order is not seen here.
// - Operations tell what they used when they are done. It does not matter which of two tells first.
// - A kernel uses the bytes between the first and the last that it reads of an allocation, and those between the first
//   and the last that it writes.
// - A word that is copied from a page-locked buffer of words is a stop key. It may come at any time while a kernel
//   runs. But it must come between the allocation of its memory and the end of that.
//
// Without STAND_IN_RACES=count, the first report ends the process. Tests of the check itself set STAND_IN_FORGETS to
// events, streams or words. Then the host learns nothing by waiting in this way.

#pragma once

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace clocks {

// How many operations of each stream are done.
typedef std::vector<uint64_t> Clock;

// Never destroyed, as in cuda.cpp. It guards all that follows.
static std::mutex &mutex = *new std::mutex;
static Clock &host = *new Clock;
static unsigned streams = 0;
static std::atomic<long> races{0};

static void join(Clock &clock, const Clock &other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (size_t i = 0; i < other.size(); i++) clock[i] = std::max(clock[i], other[i]);
}

struct Operation {
  unsigned stream;
  uint64_t number;
  std::string what;
  // What is done when it ends, itself included.
  std::shared_ptr<const Clock> done;

  bool is_before(const Operation &other) const { return stream < other.done->size() && number <= (*other.done)[stream]; }
};

// The clock of a stream.
struct Line {
  unsigned number;
  Clock clock;

  Line() {
    std::lock_guard<std::mutex> lock(mutex);
    number = streams++;
  }
  // The next operation.
  Operation next(std::string what) {
    std::lock_guard<std::mutex> lock(mutex);
    join(clock, host);
    if (clock.size() <= number) clock.resize(number + 1);
    const uint64_t own = ++clock[number];
    return {number, own, std::move(what), std::make_shared<const Clock>(clock)};
  }
  std::shared_ptr<const Clock> now() {
    std::lock_guard<std::mutex> lock(mutex);
    return std::make_shared<const Clock>(clock);
  }
};

static bool forgets(const char *way) {
  static const char *given = getenv("STAND_IN_FORGETS");
  return given && strcmp(given, way) == 0;
}

// Notes that the host knows what is done.
static void learn(const std::shared_ptr<const Clock> &done, const char *way) {
  if (!done || forgets(way)) return;
  std::lock_guard<std::mutex> lock(mutex);
  join(host, *done);
}

// ---- What streams did to memory ----

// `OWNS`: allocates or releases.
enum Kind { READS, WRITES, STOPS, OWNS };
struct Use {
  Operation by;
  Kind kind;
  uintptr_t begin, end;
};
struct Allocation {
  uintptr_t end;
  std::vector<Use> uses;
};
// Of the device and of page-locked memory, by their first addresses.
static std::map<uintptr_t, Allocation> &allocations = *new std::map<uintptr_t, Allocation>;
// The most uses that are kept of an allocation.
static const size_t MAX_USES = 256;

static void report(const std::string &text) {
  races++;
  fprintf(stderr, "stand-in: %s\n", text.c_str());
  static const char *given = getenv("STAND_IN_RACES");
  if (!given || strcmp(given, "count") != 0) abort();
}
static std::string told(const Use &use, uintptr_t first) {
  static const char *const verbs[] = {"reads", "writes", "writes", "is of"};
  return "  " + use.by.what + " " + verbs[use.kind] + " bytes " + std::to_string(use.begin - first) + " to " + std::to_string(use.end - first) + ", on stream " + std::to_string(use.by.stream) + "\n";
}

static std::map<uintptr_t, Allocation>::iterator find(uintptr_t address) {
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin()) return allocations.end();
  auto found = std::prev(after);
  return address < found->second.end ? found : allocations.end();
}

// The allocation with an address, or the gap around it.
static bool bounds(uintptr_t address, uintptr_t *begin, uintptr_t *end) {
  std::lock_guard<std::mutex> lock(mutex);
  auto after = allocations.upper_bound(address);
  *begin = 0;
  *end = after == allocations.end() ? UINTPTR_MAX : after->first;
  if (after == allocations.begin()) return false;
  auto found = std::prev(after);
  if (address >= found->second.end) return *begin = found->second.end, false;
  return *begin = found->first, *end = found->second.end, true;
}

static void use_of(uintptr_t first, Allocation &allocation, const Use &use) {
  const auto conflicts = [&](const Use &other) {
    if (use.kind == READS && other.kind == READS) return false;
    // which may come while others use the memory
    if ((use.kind == STOPS || other.kind == STOPS) && use.kind != OWNS && other.kind != OWNS) return false;
    if (other.end <= use.begin || use.end <= other.begin) return false;
    return !other.by.is_before(use.by) && !use.by.is_before(other.by);
  };
  // whether a later operation that collides with the other one also collides with this one
  const auto covers = [&](const Use &other) {
    if (use.begin > other.begin || use.end < other.end || !other.by.is_before(use.by)) return false;
    return use.kind == other.kind || use.kind == OWNS || (use.kind == WRITES && other.kind == READS);
  };
  for (const Use &other : allocation.uses)
    if (conflicts(other)) report("nothing orders\n" + told(other, first) + "and\n" + told(use, first) + "of " + std::to_string(allocation.end - first) + " bytes");
  auto &uses = allocation.uses;
  uses.erase(std::remove_if(uses.begin(), uses.end(), covers), uses.end());
  if (uses.size() == MAX_USES) uses.erase(uses.begin());
  uses.push_back(use);
}

static void use(const Operation &by, uintptr_t begin, size_t bytes, Kind kind, bool of_device = true) {
  if (bytes == 0) return;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = find(begin);
  if (found == allocations.end() || begin + bytes > found->second.end) {
    if (of_device) report(by.what + " uses " + std::to_string(bytes) + " bytes that are not allocated, on stream " + std::to_string(by.stream));
    return;
  }
  use_of(found->first, found->second, {by, kind, begin, begin + bytes});
}

static void allocate(const Operation &by, uintptr_t begin, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations[begin] = {begin + bytes, {{by, OWNS, begin, begin + bytes}}};
}
// Page-locked memory, which the host allocates.
static void allocate(uintptr_t begin, size_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations[begin] = {begin + bytes, {}};
}
static void release(const Operation &by, uintptr_t begin) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = allocations.find(begin);
  if (found == allocations.end()) return report(by.what + " releases memory that is not allocated");
  use_of(begin, found->second, {by, OWNS, begin, found->second.end});
  allocations.erase(found);
}
static void release(uintptr_t begin) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations.erase(begin);
}

// ---- Words in page-locked memory that streams write ----
// The host reads a word without a call. So small buffers have pages of their own. When a stream has written a word, its
// page is protected. The host's next read is a page fault, at which the host learns what was done before all words of
// the page. The stand-in itself uses the memory through other pages.

struct Page {
  char *own;
  std::shared_ptr<const Clock> done;
  bool hidden;
};
static std::map<char *, Page> &pages = *new std::map<char *, Page>;
static const size_t PAGE = 4096;
static struct sigaction before;

static char *page_of(const void *address) { return (char *)((uintptr_t)address & ~(uintptr_t)(PAGE - 1)); }

static void look(int signal, siginfo_t *info, void *context) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = pages.find(page_of(info->si_addr));
    if (found != pages.end()) {
      Page &page = found->second;
      if (page.done && !forgets("words")) join(host, *page.done);
      page.hidden = false;
      mprotect(found->first, PAGE, PROT_READ | PROT_WRITE);
      return;
    }
  }
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  sigaction(SIGSEGV, &before, nullptr);
}

// A page for words; null: there is none.
static void *words() {
  const int file = memfd_create("words", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, PAGE) != 0) return nullptr;
  void *shown = mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void *own = mmap(nullptr, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (shown == MAP_FAILED || own == MAP_FAILED) return nullptr;
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = look;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before);
  });
  std::lock_guard<std::mutex> lock(mutex);
  pages[(char *)shown] = {(char *)own, nullptr, false};
  return shown;
}

// Whether memory is a page for words.
static bool has_words(const void *memory) {
  std::lock_guard<std::mutex> lock(mutex);
  return pages.count(page_of(memory)) > 0;
}
// Where the stand-in finds the host's memory.
template <class T> static T *own(T *memory) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = pages.find(page_of(memory));
  return found == pages.end() ? memory : (T *)(found->second.own + ((char *)memory - found->first));
}
// Writes a word for the host. Whoever sees it knows what is done.
static void tell(const Operation &by, uint64_t address, uint32_t value) {
  auto *word = own((std::atomic<uint32_t> *)address);
  std::lock_guard<std::mutex> lock(mutex);
  auto found = pages.find(page_of((void *)address));
  if (found != pages.end()) {
    Page &page = found->second;
    Clock done = page.done ? *page.done : Clock();
    join(done, *by.done);
    page.done = std::make_shared<const Clock>(done);
    if (!page.hidden) mprotect(found->first, PAGE, PROT_NONE);
    page.hidden = true;
  }
  word->store(value);
}

}  // namespace clocks
