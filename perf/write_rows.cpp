// Writing alone: the same rows by RowFile, which makes the HDF5 file that hdf5_write makes, and by
// plain pwrite into a flat file.
//
// In:  the number of rows, of columns and of threads.
// Out: the file, left for whoever asked for it; one line on stdout. The clock runs from before the
//      file is created until it is closed; filling the one buffer of rows comes before it.
//
// Both take blocks of 948 rows (four files of the two-stage job) from one counter, from one buffer
// that stays in cache, so that all of the time is the file system's and whatever RowFile adds.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "stages/raii/unique_fd.h"
#include "stages/row_file.h"

namespace melflow {
namespace {

constexpr std::int64_t kBlock = 948;  // rows written at a time

struct Options {
  std::string out, by = "rowfile", dtype = "float32";
  std::int64_t rows = 9'376'431;
  int columns = 32;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
};

/// Calls write(row, count) for every block, from all threads.
void each_block(const Options& options,
                const std::function<void(std::int64_t, std::int64_t)>& write) {
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::string error;
  const auto work = [&] {
    try {
      for (std::int64_t row = next.fetch_add(kBlock); row < options.rows;
           row = next.fetch_add(kBlock)) {
        write(row, std::min(kBlock, options.rows - row));
      }
    } catch (const std::exception& e) {
      next = options.rows;
      const std::scoped_lock lock(mutex);
      if (error.empty()) error = e.what();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < options.threads; ++t) threads.emplace_back(work);
  }
  if (!error.empty()) throw std::runtime_error(error);
}

void by_row_file(const Options& options, const std::vector<float>& values) {
  RowFile file(options.out, options.dtype == "float16" ? RowType::float16 : RowType::float32,
               static_cast<std::size_t>(options.columns), false);
  each_block(options,
             [&](std::int64_t row, std::int64_t count) { file.write(row, values.data(), count); });
  const std::array<hsize_t, 2> shape{static_cast<hsize_t>(options.rows),
                                     static_cast<hsize_t>(options.columns)};
  file.make_hdf5(shape, [](hid_t, hid_t) {});
  file.publish(false);
}

void by_pwrite(const Options& options, const std::vector<float>& values) {
  const UniqueFd file(::open(options.out.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) throw std::runtime_error(options.out + ": " + std::strerror(errno));
  const std::int64_t row_bytes = options.columns * static_cast<std::int64_t>(sizeof(float));
  each_block(options, [&](std::int64_t row, std::int64_t count) {
    if (::pwrite(file.get(), values.data(), static_cast<std::size_t>(count * row_bytes),
                 row * row_bytes) != count * row_bytes) {
      throw std::runtime_error(options.out + ": " + std::strerror(errno));
    }
  });
}

void run(const Options& options) {
  std::vector<float> values(static_cast<std::size_t>(kBlock * options.columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 977) - 80.0F;
  const auto begin = std::chrono::steady_clock::now();
  options.by == "pwrite" ? by_pwrite(options, values) : by_row_file(options, values);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("rows=%lld seconds=%.4f threads=%u by=%s\n", static_cast<long long>(options.rows),
              took.count(), options.threads, options.by.c_str());
}

}  // namespace
}  // namespace melflow

int main(int argc, char** argv) {
  melflow::Options options;
  CLI::App app{"Writes rows and computes nothing: RowFile (HDF5) or plain pwrite."};
  app.add_option("out", options.out, "file to make; must not be there")->required();
  app.add_option("--by", options.by, "who writes")
      ->check(CLI::IsMember({"rowfile", "pwrite"}))
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "of the rows; pwrite writes float32")
      ->check(CLI::IsMember({"float32", "float16"}))
      ->capture_default_str();
  app.add_option("--rows", options.rows, "rows")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--columns", options.columns, "values of a row")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    melflow::run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "melflow_write_rows: %s\n", e.what());
    return 1;
  }
  return 0;
}
