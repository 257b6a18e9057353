// Arrays of 64 bits, or Floats of 32, in NumPy's .npy, one dimension or two: what the peers of benchmark/operations.rb and mdarray.rb are given, and what they give.

#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct Array {
  std::vector<double> values; // of Integers: their bits
  std::vector<float> singles; // in place of those
  size_t rows = 0, columns = 1;
};

[[noreturn]] static void fail(const std::string &why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

static Array read_npy(const char *path) {
  FILE *file = std::fopen(path, "rb");
  if (!file) fail(std::string("cannot read ") + path);
  unsigned char head[10];
  if (std::fread(head, 1, 10, file) != 10 || std::memcmp(head, "\x93NUMPY", 6) != 0 || head[6] != 1) fail("no .npy of version 1");
  std::string text(head[8] | head[9] << 8, ' ');
  if (std::fread(&text[0], 1, text.size(), file) != text.size()) fail("a short header");
  const bool single = text.find("'<f4'") != std::string::npos;
  if (!single && text.find("'<f8'") == std::string::npos && text.find("'<i8'") == std::string::npos) fail("not of 64 bits: " + text);
  if (text.find("'fortran_order': False") == std::string::npos) fail("not row after row: " + text);
  Array array;
  const char *shape = std::strchr(std::strstr(text.c_str(), "'shape'"), '(') + 1;
  char *end;
  array.rows = std::strtoull(shape, &end, 10);
  if (*end == ',') {
    const unsigned long long columns = std::strtoull(end + 1, &end, 10);
    if (columns) array.columns = columns;
  }
  const size_t count = array.rows * array.columns;
  single ? array.singles.resize(count) : array.values.resize(count);
  void *to = single ? static_cast<void *>(array.singles.data()) : array.values.data();
  if (std::fread(to, single ? 4 : 8, count, file) != count) fail("a short array");
  std::fclose(file);
  return array;
}

static void write_npy(const char *path, const void *values, size_t count, bool integers, bool single = false) {
  FILE *file = std::fopen(path, "wb");
  if (!file) fail(std::string("cannot write ") + path);
  std::string text = std::string("{'descr': '") + (integers ? "<i8" : single ? "<f4" : "<f8") + "', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  text.resize((text.size() + 11 + 63) / 64 * 64 - 10, ' ');
  text.back() = '\n';
  const unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<unsigned char>(text.size() & 255), static_cast<unsigned char>(text.size() >> 8)};
  std::fwrite(head, 1, 10, file);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fwrite(values, single ? 4 : 8, count, file);
  std::fclose(file);
}

// Seconds of each of `runs` calls, after some that do not count.
template <class F> static std::vector<double> seconds_of(int runs, F &&call) {
  const char *given = std::getenv("WARMUP");
  const int warmup = given ? std::atoi(given) : 10;
  std::vector<double> seconds;
  for (int i = 0; i < runs + warmup; i++) {
    const auto began = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    if (i >= warmup) seconds.push_back(took.count());
  }
  return seconds;
}

static void print_seconds(const std::vector<double> &seconds, const char *version) {
  std::printf("{\"seconds\": [");
  for (size_t i = 0; i < seconds.size(); i++) std::printf("%s%.9f", i ? ", " : "", seconds[i]);
  std::printf("], \"version\": \"%s\"}\n", version);
}
