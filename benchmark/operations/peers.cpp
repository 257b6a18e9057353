// One operation of benchmark/operations.rb or mdarray.rb in C++ with OpenMP, and the parallel sort of gcc's library. Nothing is contracted, because Ruby contracts nothing.
//
//     ./peers OPERATION RUNS OUTPUT.npy INPUT.npy...
//
// Prints as its last line {"seconds": [...], "version": "..."}, or {"missing": "..."}.

#include "npy.hpp"

#include <algorithm>
#include <cmath>
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

template <class T> static void chain(const std::vector<T> &x, std::vector<T> &out) {
#pragma omp parallel for simd
  for (size_t i = 0; i < x.size(); i++) out[i] = x[i] * T(2.5) + x[i] * T(0.5) * x[i];
}

// Blocks of rows and of what they are made of, which stay in a cache.
static void product(const std::vector<double> &a, const std::vector<double> &b, std::vector<double> &out, size_t side) {
  const size_t rows = 16, depth = 64;
#pragma omp parallel for schedule(dynamic, 1)
  for (size_t from = 0; from < side; from += rows) {
    const size_t to = std::min(side, from + rows);
    std::fill(out.begin() + from * side, out.begin() + to * side, 0.0);
    for (size_t first = 0; first < side; first += depth)
      for (size_t i = from; i < to; i++)
        for (size_t k = first; k < std::min(side, first + depth); k++) {
          const double left = a[i * side + k];
#pragma omp simd
          for (size_t j = 0; j < side; j++) out[i * side + j] += left * b[k * side + j];
        }
  }
}

static void stencil(const std::vector<double> &g, std::vector<double> &out, size_t side) {
#pragma omp parallel for
  for (size_t i = 0; i < side; i++)
    for (size_t j = 0; j < side; j++) {
      const size_t at = i * side + j;
      const bool inside = i > 0 && i + 1 < side && j > 0 && j + 1 < side;
      out[at] = inside ? g[at] * 0.5 + (g[at - side] + g[at + side] + g[at - 1] + g[at + 1]) * 0.125 : 0.0;
    }
}

// Figure 1 of the paper of 2011; in 32 bits the power is rounded from 64.
template <class T> static void mandelbrot(std::vector<int64_t> &out, size_t side) {
  const T step = T(2.5 / side);
#pragma omp parallel for schedule(dynamic, 1)
  for (size_t i = 0; i < side; i++)
    for (size_t j = 0; j < side; j++) {
      const T cr = T(-2.0) + T(i) * step, ci = T(-1.25) + T(j) * step;
      T zr = 0, zi = 0;
      int64_t count = 0;
      while (count < 256 && T(std::pow(double(zr * zr + zi * zi), 0.5)) < T(2.0)) {
        const T t = zr * zr - zi * zi + cr;
        zi = T(2.0) * zr * zi + ci;
        zr = t;
        count++;
      }
      out[i * side + j] = count;
    }
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
  bool integers = false, single = false;
  std::vector<float> singles(inputs[0].singles.size());
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
  } else if (operation == "a*x + b*x*x") {
    size = x.size();
    seconds = seconds_of(runs, [&] { chain(x, out); });
  } else if (operation == "a*x + b*x*x, f32") {
    size = singles.size();
    single = true;
    seconds = seconds_of(runs, [&] { chain(inputs[0].singles, singles); });
  } else if (operation == "matmul") {
    size = x.size();
    seconds = seconds_of(runs, [&] { product(x, inputs[1].values, out, inputs[0].rows); });
  } else if (operation == "stencil") {
    size = x.size();
    seconds = seconds_of(runs, [&] { stencil(x, out, inputs[0].rows); });
  } else if (operation == "mandelbrot" || operation == "mandelbrot, f32") {
    int64_t side;
    std::memcpy(&side, x.data(), sizeof side);
    size = side * side;
    counts.resize(size);
    integers = true;
    seconds = seconds_of(runs, [&] { operation == "mandelbrot" ? mandelbrot<double>(counts, side) : mandelbrot<float>(counts, side); });
  } else {
    std::printf("{\"missing\": \"it has no such operation\"}\n");
    return 0;
  }
  const void *result = integers ? static_cast<const void *>(counts.data()) : single ? static_cast<const void *>(singles.data()) : out.data();
  write_npy(argv[3], result, size, integers, single);
  print_seconds(seconds, "gcc " __VERSION__);
}
