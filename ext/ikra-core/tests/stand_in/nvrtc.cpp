// A stand-in for libnvrtc: the kernel, made a shared object by the host's compiler with the shim that STAND_IN_SHIM names.
// The compiler also adds a call before each access to memory, by which the shared object notes what the kernel uses.
// Each compilation adds a line to the file STAND_IN_LOG.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

struct Program {
  std::string source, code;
};

// Notes of what allocations a run has read and written, from the first byte to the last. `stand_in_bounds` gives the
// allocation with an address, or the gap around it.
static const char NOTES[] = R"(
extern "C" {
struct StandInUsed {
  unsigned long begin, end;
  bool known;
  unsigned long read_begin, read_end, written_begin, written_end;
};
#define PLAIN __attribute__((no_sanitize_address))
bool (*stand_in_bounds)(unsigned long, unsigned long *, unsigned long *);
static StandInUsed stand_in_all[1024];
static unsigned stand_in_count, stand_in_last;
PLAIN static StandInUsed &stand_in_of(unsigned long at) {
  if (stand_in_last < stand_in_count && at - stand_in_all[stand_in_last].begin < stand_in_all[stand_in_last].end - stand_in_all[stand_in_last].begin) return stand_in_all[stand_in_last];
  for (unsigned i = 0; i < stand_in_count; i++)
    if (at - stand_in_all[i].begin < stand_in_all[i].end - stand_in_all[i].begin) return stand_in_all[stand_in_last = i];
  if (stand_in_count == 1024) __builtin_trap();
  StandInUsed &one = stand_in_all[stand_in_last = stand_in_count++];
  one = {0, 0, false, ~0ul, 0, ~0ul, 0};
  one.known = stand_in_bounds(at, &one.begin, &one.end);
  return one;
}
PLAIN static void stand_in_note(void *address, unsigned long bytes, bool writes) {
  const unsigned long at = (unsigned long)address;
  StandInUsed &one = stand_in_of(at);
  if (!one.known) return;
  unsigned long &begin = writes ? one.written_begin : one.read_begin, &end = writes ? one.written_end : one.read_end;
  if (at < begin) begin = at;
  if (at + bytes > end) end = at + bytes;
}
#define ACCESS(bytes) \
  PLAIN void __asan_load##bytes##_noabort(void *at) { stand_in_note(at, bytes, false); } \
  PLAIN void __asan_store##bytes##_noabort(void *at) { stand_in_note(at, bytes, true); }
ACCESS(1) ACCESS(2) ACCESS(4) ACCESS(8) ACCESS(16)
PLAIN void __asan_loadN_noabort(void *at, long bytes) { stand_in_note(at, bytes, false); }
PLAIN void __asan_storeN_noabort(void *at, long bytes) { stand_in_note(at, bytes, true); }
PLAIN void __asan_handle_no_return() {}
// The notes of the last run, which the next one begins anew.
PLAIN unsigned long stand_in_used(const StandInUsed **all) {
  const unsigned count = stand_in_count;
  stand_in_count = stand_in_last = 0;
  return *all = stand_in_all, count;
}
}
)";

static std::string read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

extern "C" {
int nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0, 0; }
int nvrtcGetNumSupportedArchs(int *count) { return *count = 1, 0; }
int nvrtcGetSupportedArchs(int *architectures) { return *architectures = 90, 0; }
int nvrtcCreateProgram(Program **program, const char *source, const char *, int, const char *const *, const char *const *) {
  return *program = new Program{source, ""}, 0;
}
int nvrtcCompileProgram(Program *program, int, const char *const *) {
  // `GLOBAL __launch_bounds__(256) name(` of a collective, or the same spelt out.
  const std::string bounds = "void __launch_bounds__(", instance = "\nGLOBAL __launch_bounds__(";
  const size_t start = program->source.find(bounds), collective = program->source.rfind(instance);
  const size_t at = program->source.find(") ", collective == std::string::npos ? start : collective) + 2;
  const std::string kernel = program->source.substr(at, program->source.find('(', at) - at);
  // What the bounds say: `512`, or `512, 1`.
  const size_t open = program->source.rfind('(', at - 3);
  const int threads = atoi(program->source.c_str() + open + 1);
  char folder[] = "/tmp/ikra-stand-in-XXXXXX";
  if (!mkdtemp(folder)) return 1;
  const std::string path = folder;
  std::ofstream(path + "/k.cpp") << read(getenv("STAND_IN_SHIM")) << program->source << "IKRA_LAUNCHER(stand_in_launch, " << kernel
                                 << ")\ntemplate <class T> static unsigned long bytes(void (*)(T)) { return sizeof(T); }\n"
                                 << "extern \"C\" unsigned long stand_in_bytes() { return bytes(" << kernel << "); }\n"
                                 << "extern \"C\" int stand_in_threads() { return " << threads << "; }\n"
                                 << NOTES;
  // Threads that meet at barriers are fibers.
  const std::string fibers = program->source.find("__syncthreads") == std::string::npos ? "" : "-DIKRA_FIBERS ";
  const std::string flags = "g++ -std=gnu++17 -O1 -ffp-contract=off -fPIC -shared -w -fsanitize=kernel-address --param asan-instrumentation-with-call-threshold=0 --param asan-stack=0 --param asan-globals=0 " + fibers;
  const int status = system((flags + path + "/k.cpp -o " + path + "/k.so").c_str());
  const std::string library = read(path + "/k.so");
  const uint64_t bytes = library.size();
  program->code = "STAND-IN" + std::string((const char *)&bytes, 8) + library;
  if (system(("rm -rf " + path).c_str()) != 0) return 1;
  std::ofstream(getenv("STAND_IN_LOG"), std::ios::app) << kernel << "\n";
  return status == 0 ? 0 : 6;
}
static const char LOG[] = "ptxas         .     104 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
int nvrtcGetProgramLogSize(Program *, size_t *bytes) { return *bytes = sizeof LOG, 0; }
int nvrtcGetProgramLog(Program *, char *log) { return memcpy(log, LOG, sizeof LOG), 0; }
int nvrtcGetCUBINSize(Program *program, size_t *bytes) { return *bytes = program->code.size(), 0; }
int nvrtcGetCUBIN(Program *program, char *code) { return memcpy(code, program->code.data(), program->code.size()), 0; }
int nvrtcDestroyProgram(Program **program) { return delete *program, 0; }
}
