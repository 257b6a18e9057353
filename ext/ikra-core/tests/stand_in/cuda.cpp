// A stand-in for libcuda: "device memory" is the host's, each stream is a thread that works off a queue, and a "cubin" is a
// shared object that stand_in/nvrtc.cpp made of the kernel and the shim.
//
// Here: exactly the functions that the backend calls, with the driver's own rules as far as they matter to it: work is
// asynchronous, arguments are copied at the launch, freed memory stays with the pool until it is trimmed. STAND_IN says what
// is wrong with the machine: absent, broken, old, mute (streams write no words), faulty, faulty elsewhere (where another thread than the first launches), without graphs. STAND_IN_MEMORY is its size, STAND_IN_STACK the largest stack that
// there is room for. What streams do to memory is checked for its order (clocks.hpp), which no time of a run changes. A test may call stand_in_fail, which lets allocations fail, stand_in_used, stand_in_locked, stand_in_copies, stand_in_questions, stand_in_allocations, stand_in_launched, stand_in_launches, stand_in_running, stand_in_words (written by streams), stand_in_elsewhere (launches by other threads than the first), stand_in_submissions (runs of graphs), stand_in_races (operations that nothing orders), and how many there are of what was made and not destroyed: stand_in_graphs, stand_in_streams, stand_in_events, stand_in_modules, stand_in_page_locked (bytes). Not here: speed.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "clocks.hpp"

typedef int Result;
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, NOT_FOUND = 500, NOT_READY = 600, FAULT = 700, OUT_OF_RESOURCES = 701, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713, NOT_SUPPORTED = 801, UNKNOWN = 999 };

static bool is(const char *what) {
  const char *given = getenv("STAND_IN");
  return given && strcmp(given, what) == 0;
}

static pid_t initialised = 0;
static std::atomic<int> sticky{OK};
#define USABLE \
  if (sticky) return sticky

// Where each stream's thread takes work from.
struct Stream {
  std::deque<std::function<void()>> queue;
  clocks::Line line;
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false, busy = false;
  std::thread thread{[this] { work(); }};

  void work() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return over || !queue.empty(); });
      if (queue.empty()) return;
      auto next = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      next();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
  // Returns the operation's place in the order.
  template <class Work> clocks::Operation push(std::string what, Work work) {
    std::lock_guard<std::mutex> lock(mutex);
    const clocks::Operation by = line.next(std::move(what));
    queue.push_back([=] { work(by); });
    changed.notify_all();
    return by;
  }
  void finish() {
    const auto done = line.now();
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return queue.empty() && !busy; });
    lock.unlock();
    clocks::learn(done, "streams");
  }
};

struct Event {
  std::atomic<int> pending{0};
  // The program, until it destroys it, which it may before the stream has come there, and each place in a stream.
  std::atomic<int> holders{1};
  std::chrono::steady_clock::time_point time;
  // What is done before the last place at which it was recorded.
  std::shared_ptr<const clocks::Clock> done;
  std::mutex mutex;

  std::shared_ptr<const clocks::Clock> last() {
    std::lock_guard<std::mutex> lock(mutex);
    return done;
  }
  void let_go() {
    if (--holders == 0) delete this;
  }
};

struct Module {
  void *library;
  void (*launch)(unsigned, unsigned, const void *);
  unsigned long bytes;
  int threads;
  // Of the allocations that the last run used, the bytes that it read and wrote.
  size_t (*used)(const struct Used **);
  std::string name;
};
// As nvrtc.cpp has it.
struct Used {
  uintptr_t begin, end;
  bool known;
  uintptr_t read_begin, read_end, written_begin, written_end;
};

// Memory that the pool holds, and what of it is in use.
// Never destroyed: threads that are under way when the process exits still look at them, as they may at a real driver.
static std::mutex &memory_mutex = *new std::mutex;
static std::map<void *, size_t> &in_use = *new std::map<void *, size_t>;
static size_t used = 0, reserved = 0;
// Stacks are reserved for all threads that run at once; those of the first size are no part of the memory here.
static const size_t FIRST_STACK = 1024, THREADS = 2 * 2048;
static size_t stack_limit = FIRST_STACK;
static size_t stacks(size_t limit) { return limit > FIRST_STACK ? (limit - FIRST_STACK) * THREADS : 0; }
static size_t total() {
  const char *given = getenv("STAND_IN_MEMORY");
  return given ? strtoull(given, nullptr, 10) : (size_t)4 << 30;
}

// The host's memory that is page-locked where it is, and what was allocated so.
static std::map<void *, size_t> &locked = *new std::map<void *, size_t>, &page_locked_at = *new std::map<void *, size_t>;
static std::atomic<long> copies{0}, questions{0}, allocations{0}, launched{0}, launches{0}, elsewhere{0}, words{0}, running{0}, graphs{0}, submissions{0}, streams{0}, events{0}, modules{0}, page_locked{0};

// Allocations, page-locked ones too, until they begin to fail, and how many then do.
static std::atomic<long> before_failing{-1}, failing{0}, have_failed{0};
static bool fails() {
  if (before_failing < 0 || before_failing-- > 0) return false;
  before_failing = 0;
  if (failing-- > 0) return ++have_failed;
  return before_failing = -1, false;
}

// Tells whether bytes change.
static uint64_t sum(const void *from, size_t bytes) {
  uint64_t sum = 0, word = 0;
  for (size_t i = 0; i < bytes; i += 8) {
    memcpy(&word, (const char *)from + i, std::min<size_t>(8, bytes - i));
    sum = (sum << 5 | sum >> 59) + word;
  }
  return sum;
}

extern "C" {
// After `first` allocations, `count` fail.
void stand_in_fail(long first, long count) { have_failed = 0, failing = count, before_failing = first; }
// How many have.
long stand_in_failed() { return have_failed; }
// Bytes that are allocated.
unsigned long stand_in_used() {
  std::lock_guard<std::mutex> lock(memory_mutex);
  return used;
}

// Bytes that are page-locked where they are.
unsigned long stand_in_locked() {
  std::lock_guard<std::mutex> lock(memory_mutex);
  unsigned long sum = 0;
  for (auto &one : locked) sum += one.second;
  return sum;
}
// Copies to and from the device.
long stand_in_copies() { return copies; }
// What the host asked for that takes time: whether events had passed, and memory.
long stand_in_questions() { return questions; }
long stand_in_allocations() { return allocations; }
// Threads of the last launch.
long stand_in_launched() { return launched; }
long stand_in_launches() { return launches; }
// Launches that are not over.
long stand_in_running() { return running; }
long stand_in_elsewhere() { return elsewhere; }
// Runs of graphs, and how many graphs there are.
long stand_in_submissions() { return submissions; }
long stand_in_graphs() { return graphs; }
long stand_in_streams() { return streams; }
long stand_in_events() { return events; }
long stand_in_modules() { return modules; }
long stand_in_page_locked() { return page_locked; }
// Operations on the same memory that nothing orders.
long stand_in_races() { return clocks::races; }

Result cuDriverGetVersion(int *version) { return *version = is("old") ? 11040 : 13010, OK; }
Result cuInit(unsigned) {
  if (is("absent")) return NO_DEVICE;
  if (is("broken")) return UNKNOWN;
  if (initialised && initialised != getpid()) return NOT_INITIALIZED;
  initialised = getpid();
  return OK;
}
Result cuGetErrorName(Result status, const char **name) {
  static auto &names = *new std::map<int, std::string>{{NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"}, {FAULT, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {UNKNOWN, "CUDA_ERROR_UNKNOWN"}};
  return *name = names.count(status) ? names[status].c_str() : "CUDA_ERROR_SOMETHING", OK;
}
Result cuGetErrorString(Result, const char **text) { return *text = "the stand-in says no", OK; }
Result cuDeviceGetCount(int *count) { return *count = 1, OK; }
Result cuDeviceGet(int *device, int) { return *device = 0, OK; }
Result cuDeviceGetName(char *name, int length, int) { return snprintf(name, (size_t)length, "Stand-in"), OK; }
Result cuDeviceTotalMem_v2(size_t *bytes, int) { return *bytes = total(), OK; }
Result cuDeviceGetAttribute(int *value, int attribute, int) {
  switch (attribute) {
    case 75: *value = 9; break;      // compute capability
    case 76: *value = 0; break;
    case 10: *value = 32; break;     // warp
    case 16: *value = 2; break;      // multiprocessors
    case 39: *value = 2048; break;   // threads of each
    case 115: *value = 1; break;     // memory pools
    default: return INVALID;
  }
  return OK;
}
Result cuDevicePrimaryCtxRetain(void **context, int) { return *context = &used, OK; }
Result cuCtxSetCurrent(void *) { return sticky; }
// Bytes of stacks that are reserved.
unsigned long stand_in_stacks() { return stacks(stack_limit); }
Result cuCtxGetLimit(size_t *value, int) { return *value = stack_limit, OK; }
Result cuCtxSetLimit(int, size_t value) {
  const char *most = getenv("STAND_IN_STACK");
  if (most && value > strtoull(most, nullptr, 10)) return NO_MEMORY;
  std::lock_guard<std::mutex> lock(memory_mutex);
  if (reserved + stacks(value) > total()) return NO_MEMORY;
  return stack_limit = value, OK;
}

Result cuDeviceGetDefaultMemPool(void **pool, int) { return *pool = &reserved, OK; }
Result cuMemPoolSetAttribute(void *, int, void *) { return OK; }
Result cuMemPoolTrimTo(void *, size_t) {
  std::lock_guard<std::mutex> lock(memory_mutex);
  return reserved = used, OK;
}
Result cuMemGetInfo_v2(size_t *free, size_t *all) {
  std::lock_guard<std::mutex> lock(memory_mutex);
  return *all = total(), *free = *all - used - stacks(stack_limit), OK;
}
// A pool that never fits a smaller block into a larger one that was freed: it grows unless it is trimmed.
Result cuMemAllocAsync(uint64_t *address, size_t bytes, Stream *stream) {
  USABLE;
  allocations++;
  std::lock_guard<std::mutex> lock(memory_mutex);
  if (fails() || reserved + bytes + stacks(stack_limit) > total()) return NO_MEMORY;
  reserved += bytes;
  used += bytes;
  void *memory = malloc(bytes);
  memset(memory, 0xab, bytes);
  in_use[memory] = bytes;
  clocks::allocate(stream->push("the allocation", [](const clocks::Operation &) {}), (uintptr_t)memory, bytes);
  return *address = (uint64_t)memory, OK;
}
Result cuMemFreeAsync(uint64_t address, Stream *stream) {
  stream->push("the end of the allocation", [address](const clocks::Operation &by) {
    clocks::release(by, address);
    std::lock_guard<std::mutex> lock(memory_mutex);
    used -= in_use.at((void *)address);
    in_use.erase((void *)address);
    free((void *)address);
  });
  return OK;
}
Result cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  USABLE;
  if (fails()) return NO_MEMORY;
  *memory = bytes <= clocks::PAGE ? clocks::words() : malloc(bytes);
  if (!*memory) return NO_MEMORY;
  clocks::allocate((uintptr_t)*memory, bytes);
  std::lock_guard<std::mutex> lock(memory_mutex);
  page_locked += page_locked_at[*memory] = bytes;
  return OK;
}
Result cuMemFreeHost(void *memory) {
  clocks::release((uintptr_t)memory);
  std::lock_guard<std::mutex> lock(memory_mutex);
  page_locked -= page_locked_at[memory];
  page_locked_at.erase(memory);
  // streams may still write words to a page
  if (!clocks::has_words(memory)) free(memory);
  return OK;
}
Result cuMemHostRegister_v2(void *memory, size_t bytes, unsigned) {
  USABLE;
  std::lock_guard<std::mutex> lock(memory_mutex);
  if (fails()) return NO_MEMORY;
  for (auto &one : locked)
    if (memory < (char *)one.first + one.second && one.first < (char *)memory + bytes) return ALREADY_REGISTERED;
  return locked[memory] = bytes, OK;
}
Result cuMemHostUnregister(void *memory) {
  std::lock_guard<std::mutex> lock(memory_mutex);
  return locked.erase(memory) ? OK : NOT_REGISTERED;
}
Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, Stream *stream) {
  USABLE;
  copies++;
  const void *source = clocks::own(from);
  if (bytes == 8 && clocks::has_words(from)) {
    stream->push("a stop key", [=](const clocks::Operation &by) {
      __atomic_store_n((uint64_t *)to, *(const uint64_t *)source, __ATOMIC_SEQ_CST);
      clocks::use(by, to, bytes, clocks::STOPS);
    });
    return OK;
  }
  const uint64_t queued = sum(source, bytes);
  stream->push("a copy to the device", [=](const clocks::Operation &by) {
    if (sum(source, bytes) != queued) clocks::report("the host changed what a copy to the device had not yet read, on stream " + std::to_string(by.stream));
    memcpy((void *)to, source, bytes);
    clocks::use(by, to, bytes, clocks::WRITES);
    clocks::use(by, (uintptr_t)from, bytes, clocks::READS, false);
  });
  return OK;
}
Result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, Stream *stream) {
  USABLE;
  copies++;
  void *target = clocks::own(to);
  stream->push("a copy to the host", [=](const clocks::Operation &by) {
    if (sticky) return;
    memcpy(target, (const void *)from, bytes);
    clocks::use(by, from, bytes, clocks::READS);
    clocks::use(by, (uintptr_t)to, bytes, clocks::WRITES, false);
  });
  return OK;
}

Result cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, Stream *stream) {
  USABLE;
  stream->push("a copy", [=](const clocks::Operation &by) {
    memcpy((void *)to, (const void *)from, bytes);
    clocks::use(by, from, bytes, clocks::READS);
    clocks::use(by, to, bytes, clocks::WRITES);
  });
  return OK;
}
Result cuMemsetD8Async(uint64_t to, unsigned char byte, size_t bytes, Stream *stream) {
  USABLE;
  stream->push("a fill", [=](const clocks::Operation &by) {
    memset((void *)to, byte, bytes);
    clocks::use(by, to, bytes, clocks::WRITES);
  });
  return OK;
}

Result cuStreamCreate(Stream **stream, unsigned) {
  USABLE;
  streams++;
  return *stream = new Stream, OK;
}
Result cuStreamSynchronize(Stream *stream) { return stream->finish(), sticky; }
Result cuStreamWaitValue32_v2(Stream *stream, uint64_t address, uint32_t value, unsigned flags) {
  USABLE;
  if (flags != 0) return INVALID;
  stream->push("a wait for the host", [word = clocks::own((std::atomic<uint32_t> *)address), value](const clocks::Operation &) {
    while (word->load() < value) std::this_thread::yield();
  });
  return OK;
}
Result cuStreamWriteValue32_v2(Stream *stream, uint64_t address, uint32_t value, unsigned flags) {
  USABLE;
  if (flags != 0 || is("mute")) return INVALID;
  stream->push("a word", [address, value](const clocks::Operation &by) {
    if (sticky) return;
    words++;
    clocks::tell(by, address, value);
  });
  return OK;
}
// For other libraries: work on a stream, and the memory that it uses.
struct Range {
  const void *begin;
  size_t bytes;
  bool writes;
};
void stand_in_run(Stream *stream, const char *what, const Range *ranges, size_t count, std::function<void()> *work) {
  stream->push(what, [used = std::vector<Range>(ranges, ranges + count), run = *work](const clocks::Operation &by) {
    auto own = run;
    own();
    for (const Range &range : used) clocks::use(by, (uintptr_t)range.begin, range.bytes, range.writes ? clocks::WRITES : clocks::READS);
  });
}
// How many words streams have written.
long stand_in_words() { return words; }
Result cuStreamDestroy_v2(Stream *stream) {
  {
    std::lock_guard<std::mutex> lock(stream->mutex);
    stream->over = true;
    stream->changed.notify_all();
  }
  stream->thread.join();
  clocks::learn(stream->line.now(), "streams");
  streams--;
  delete stream;
  return OK;
}

Result cuEventCreate(Event **event, unsigned) {
  USABLE;
  events++;
  return *event = new Event, OK;
}
Result cuEventRecord(Event *event, Stream *stream) {
  USABLE;
  event->holders++;
  event->pending++;
  std::lock_guard<std::mutex> lock(event->mutex);
  const clocks::Operation by = stream->push("an event", [event](const clocks::Operation &) {
    event->time = std::chrono::steady_clock::now();
    event->pending--;
    event->let_go();
  });
  event->done = by.done;
  return OK;
}
Result cuEventQuery(Event *event) {
  USABLE;
  questions++;
  const auto done = event->last();
  if (event->pending) return NOT_READY;
  clocks::learn(done, "events");
  return OK;
}
Result cuEventSynchronize(Event *event) {
  const auto done = event->last();
  while (event->pending) std::this_thread::yield();
  clocks::learn(done, "events");
  return sticky;
}
Result cuEventElapsedTime(float *milliseconds, Event *from, Event *to) {
  return *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count(), OK;
}
Result cuEventDestroy_v2(Event *event) { return events--, event->let_go(), OK; }

Result cuModuleLoadDataEx(Module **module, const char *image, unsigned, void *, void *) {
  USABLE;
  uint64_t bytes;
  if (memcmp(image, "STAND-IN", 8) != 0) return INVALID;
  memcpy(&bytes, image + 8, 8);
  char path[] = "/tmp/ikra-stand-in-XXXXXX";
  const int file = mkstemp(path);
  if (write(file, image + 16, bytes) != (ssize_t)bytes) return INVALID;
  close(file);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), INVALID;
  *module = new Module{library, (void (*)(unsigned, unsigned, const void *))dlsym(library, "stand_in_launch"),
                       ((unsigned long (*)())dlsym(library, "stand_in_bytes"))(), ((int (*)())dlsym(library, "stand_in_threads"))(), (size_t(*)(const Used **))dlsym(library, "stand_in_used")};
  (*(bool (**)(uintptr_t, uintptr_t *, uintptr_t *))dlsym(library, "stand_in_bounds")) = clocks::bounds;
  modules++;
  return OK;
}
Result cuModuleGetFunction(Module **function, Module *module, const char *name) { return module->name = name, *function = module, OK; }
Result cuModuleUnload(Module *module) { return modules--, dlclose(module->library), delete module, OK; }
Result cuFuncGetAttribute(int *value, int attribute, Module *module) {
  const int values[] = {module->threads, 0, 0, 16, 32};  // threads, shared, constant, local, registers
  return *value = values[attribute], OK;
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Module *, int block, size_t) { return *blocks = std::min(32, 2048 / ((block + 31) / 32 * 32)), OK; }
Result cuLaunchKernel(Module *module, unsigned grid, unsigned, unsigned, unsigned block, unsigned, unsigned, unsigned, Stream *stream, void **params, void **) {
  USABLE;
  std::vector<uint64_t> args((module->bytes + 7) / 8);
  memcpy(args.data(), params[0], module->bytes);
  launched = long(grid) * block;
  launches++;
  running++;
  if (gettid() != getpid()) {
    elsewhere++;
    if (is("faulty elsewhere")) return running--, OUT_OF_RESOURCES;
  }
  stream->push(module->name, [=](const clocks::Operation &by) {
    if (is("faulty")) {
      sticky = FAULT;
      running--;
      return;
    }
    // The shim's built-in variables belong to the module.
    static std::mutex alone;
    std::lock_guard<std::mutex> lock(alone);
    module->launch(grid, block, args.data());
    const Used *each;
    for (size_t left = module->used(&each); left > 0; left--, each++) {
      if (each->read_begin < each->read_end) clocks::use(by, each->read_begin, each->read_end - each->read_begin, clocks::READS);
      if (each->written_begin < each->written_end) clocks::use(by, each->written_begin, each->written_end - each->written_begin, clocks::WRITES);
    }
    running--;
  });
  return OK;
}

struct Node {
  Module *module;
  unsigned grid, block;
  std::vector<uint64_t> args;
};
// CUDA_KERNEL_NODE_PARAMS.
struct NodeParams {
  Module *module;
  unsigned grid, grid_y, grid_z, block, block_y, block_z, shared;
  void **params, **extra, *kernel, *context;
};
static void change(Node *node, const NodeParams *params) {
  Module *module = params->module;
  *node = {module, params->grid, params->block, std::vector<uint64_t>((module->bytes + 7) / 8)};
  memcpy(node->args.data(), params->params[0], module->bytes);
}
typedef std::vector<Node *> Graph;
// Here a graph that can run has the nodes of the graph from which it was made.
Result cuGraphCreate(Graph **graph, unsigned) {
  if (is("without graphs")) return NOT_SUPPORTED;
  return *graph = new Graph, OK;
}
Result cuGraphAddKernelNode_v2(Node **node, Graph *graph, Node *const *before, size_t count, const NodeParams *params) {
  // only chains are made
  if (count != !graph->empty() || (count && before[0] != graph->back())) return INVALID;
  change(*node = new Node, params);
  return graph->push_back(*node), OK;
}
Result cuGraphInstantiateWithFlags(Graph **executable, Graph *graph, unsigned long long) { return *executable = graph, graphs++, OK; }
Result cuGraphExecKernelNodeSetParams_v2(Graph *graph, Node *node, const NodeParams *params) {
  if (std::find(graph->begin(), graph->end(), node) == graph->end()) return INVALID;
  return change(node, params), OK;
}
Result cuGraphLaunch(Graph *graph, Stream *stream) {
  submissions++;
  for (Node *node : *graph) {
    void *params[] = {node->args.data()};
    if (Result failed = cuLaunchKernel(node->module, node->grid, 1, 1, node->block, 1, 1, 0, stream, params, nullptr)) return failed;
  }
  return OK;
}
Result cuGraphExecDestroy(Graph *) { return graphs--, OK; }
Result cuGraphDestroy(Graph *graph) {
  for (Node *node : *graph) delete node;
  return delete graph, OK;
}
}
