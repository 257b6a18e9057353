// One operation of benchmark/operations.rb in C++ with OpenMP, and the parallel sort of gcc's library.
//
//     ./peers OPERATION RUNS OUTPUT.npy INPUT.npy...
//
// Prints as its last line {"seconds": [...], "version": "..."}, or {"missing": "..."}.

#include "npy.hpp"

#include <algorithm>
#include <numeric>
#include <omp.h>
#include <parallel/algorithm>

// Gives each thread a part of the list, from one place to another, and then what all parts before it come to.
template <class T, class Own, class Behind> static T in_parts(size_t size, Own own, Behind behind) {
  std::vector<T> before(omp_get_max_threads() + 1, T());
#pragma omp parallel
  {
    const size_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    const size_t from = size * me / threads, to = size * (me + 1) / threads;
    before[me + 1] = own(from, to);
#pragma omp barrier
#pragma omp single
    for (size_t k = 0; k < threads; k++) before[k + 1] += before[k];
    behind(from, to, before[me]);
  }
  return before[omp_get_max_threads()];
}

static void scan(const std::vector<double> &x, std::vector<double> &out) {
  in_parts<double>(
      x.size(), [&](size_t from, size_t to) { return std::accumulate(x.begin() + from, x.begin() + to, 0.0); },
      [&](size_t from, size_t to, double sum) {
        for (size_t i = from; i < to; i++) out[i] = sum += x[i];
      });
}

static size_t select(const std::vector<double> &x, std::vector<double> &out) {
  const auto chosen = [](double value) { return value > 0.5; };
  return in_parts<size_t>(
      x.size(), [&](size_t from, size_t to) { return std::count_if(x.begin() + from, x.begin() + to, chosen); },
      [&](size_t from, size_t to, size_t at) {
        for (size_t i = from; i < to; i++)
          if (chosen(x[i])) out[at++] = x[i];
      });
}

static void tally(const std::vector<double> &x, std::vector<int64_t> &counts) {
  const auto *keys = reinterpret_cast<const int64_t *>(x.data());
  int64_t *all = counts.data();
  const size_t kinds = counts.size();
  std::fill(counts.begin(), counts.end(), 0);
#pragma omp parallel for reduction(+ : all[:kinds])
  for (size_t i = 0; i < x.size(); i++) all[keys[i]]++;
}

int main(int argc, char **argv) {
  if (argc < 5) fail("OPERATION RUNS OUTPUT INPUT...");
  const std::string operation = argv[1];
  const int runs = std::atoi(argv[2]);
  std::vector<Array> inputs;
  for (int i = 4; i < argc; i++) inputs.push_back(read_npy(argv[i]));
  const std::vector<double> &x = inputs[0].values;
  std::vector<double> out(x.size());
  std::vector<int64_t> counts(256);
  std::vector<double> seconds;
  size_t size = 1;
  bool integers = false;
  if (operation == "sum") {
    seconds = seconds_of(runs, [&] {
      double sum = 0.0;
#pragma omp parallel for simd reduction(+ : sum)
      for (size_t i = 0; i < x.size(); i++) sum += x[i];
      out[0] = sum;
    });
  } else if (operation == "dot") {
    const std::vector<double> &y = inputs[1].values;
    seconds = seconds_of(runs, [&] {
      double sum = 0.0;
#pragma omp parallel for simd reduction(+ : sum)
      for (size_t i = 0; i < x.size(); i++) sum += x[i] * y[i];
      out[0] = sum;
    });
  } else if (operation == "scan") {
    size = x.size();
    seconds = seconds_of(runs, [&] { scan(x, out); });
  } else if (operation == "select") {
    seconds = seconds_of(runs, [&] { size = select(x, out); });
  } else if (operation == "sort") {
    size = x.size();
    seconds = seconds_of(runs, [&] {
      out = x;
      __gnu_parallel::sort(out.begin(), out.end());
    });
  } else if (operation == "tally") {
    size = counts.size();
    integers = true;
    seconds = seconds_of(runs, [&] { tally(x, counts); });
  } else {
    std::printf("{\"missing\": \"it has no such operation\"}\n");
    return 0;
  }
  write_npy(argv[3], integers ? static_cast<const void *>(counts.data()) : out.data(), size, integers);
  print_seconds(seconds, "gcc " __VERSION__);
}
