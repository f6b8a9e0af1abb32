// Measures writing alone: the same rows by RowFile, which writes the HDF5 files of hdf5_write, by
// plain pwrite into a flat file, and, compressed, by HDF5's own filters from one thread.
//
// In:  the number of rows, of columns and of threads.
// Out: the file, left for the caller; one line on stdout. The clock runs from before the file is
//      created until it is closed; filling the only buffer of rows comes before.
//
// Blocks of 948 rows (four files of the two-stage job) come from one counter and one buffer that
// stays in the cache, so that all time is that of the file system and the layers above it. HDF5's
// filters get whole chunks. The values are levels of noise, which compress as badly as real ones.

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
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "stages/files/unique_fd.h"
#include "stages/output/formats/chunked_row_file.h"
#include "stages/output/formats/row_file.h"

namespace melflow {
namespace {

constexpr std::int64_t kBlock = 948;      // rows written at a time
constexpr std::int64_t kDistinct = 4096;  // period of the rows: longer than deflate's window

struct Options {
  std::string out, by = "rowfile", dtype = "float32";
  std::int64_t rows = 9'376'431;
  int columns = 32;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  int deflate = 0;  // level; 0: not compressed
};

constexpr std::int64_t kChunkBytes = 256 * 1024;  // as in hdf5_write

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

const float* values_of(const Options& options, const std::vector<float>& values, std::int64_t row) {
  return values.data() + row % kDistinct * options.columns;
}

std::int64_t chunk_rows(const Options& options) {
  return std::max<std::int64_t>(1, kChunkBytes / (options.columns * 4));
}

void by_row_file(const Options& options, const std::vector<float>& values) {
  NumberType type = NumberType::float32;
  if (options.dtype == to_text(NumberType::float16)) type = NumberType::float16;
  if (options.dtype == to_text(NumberType::bfloat16)) type = NumberType::bfloat16;
  std::unique_ptr<RowFile> made;
  if (options.deflate > 0) {
    made = std::make_unique<ChunkedRowFile>(
        options.out, "mel", type, std::vector<hsize_t>{static_cast<hsize_t>(options.columns)},
        Existing::refuse, ChunkSettings{chunk_rows(options), options.deflate, true});
  } else {
    made = std::make_unique<RowFile>(options.out, "mel", type,
                                     static_cast<std::size_t>(options.columns), Existing::refuse);
  }
  RowFile& file = *made;
  each_block(options, [&](std::int64_t row, std::int64_t count) {
    file.write(row, values_of(options, values, row), count);
  });
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
    if (::pwrite(file.get(), values_of(options, values, row),
                 static_cast<std::size_t>(count * row_bytes),
                 row * row_bytes) != count * row_bytes) {
      throw std::runtime_error(options.out + ": " + std::strerror(errno));
    }
  });
}

// Writes like a program without a writer of its own.
void by_hdf5(const Options& options, const std::vector<float>& values) {
  const Hid file(H5Fcreate(options.out.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose,
                 options.out);
  const std::array<hsize_t, 2> shape{static_cast<hsize_t>(options.rows),
                                     static_cast<hsize_t>(options.columns)};
  const std::array<hsize_t, 2> chunk{static_cast<hsize_t>(chunk_rows(options)), shape[1]};
  const Hid space(H5Screate_simple(2, shape.data(), nullptr), H5Sclose, "dataspace");
  const Hid create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "dataset creation");
  h5_check(H5Pset_chunk(create, 2, chunk.data()), "chunk");
  if (options.deflate > 0) {
    h5_check(H5Pset_shuffle(create), "shuffle");
    h5_check(H5Pset_deflate(create, static_cast<unsigned>(options.deflate)), "deflate");
  }
  const Hid rows(H5Dcreate2(file, "mel", H5T_IEEE_F32LE, space, H5P_DEFAULT, create, H5P_DEFAULT),
                 H5Dclose, "/mel");
  for (hsize_t row = 0; row < shape[0]; row += chunk[0]) {
    const std::array<hsize_t, 2> at{row, 0}, count{std::min(chunk[0], shape[0] - row), shape[1]};
    h5_check(H5Sselect_hyperslab(space, H5S_SELECT_SET, at.data(), nullptr, count.data(), nullptr),
             "selection");
    const Hid memory(H5Screate_simple(2, count.data(), nullptr), H5Sclose, "dataspace");
    h5_check(H5Dwrite(rows, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT,
                      values_of(options, values, static_cast<std::int64_t>(row))),
             "/mel");
  }
}

// Noise around a falling spectrum, in dB.
std::vector<float> levels(const Options& options) {
  const std::int64_t rows = kDistinct + std::max(kBlock, chunk_rows(options));
  std::vector<float> values(static_cast<std::size_t>(rows * options.columns));
  std::mt19937 generator(1);
  std::normal_distribution<float> noise(0.0F, 6.0F);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = -20.0F - static_cast<float>(i % static_cast<std::size_t>(options.columns)) +
                noise(generator);
  return values;
}

void run(const Options& options) {
  const std::vector<float> values = levels(options);
  const auto begin = std::chrono::steady_clock::now();
  options.by == "pwrite"     ? by_pwrite(options, values)
  : options.by == "h5dwrite" ? by_hdf5(options, values)
                             : by_row_file(options, values);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("rows=%lld seconds=%.4f threads=%u by=%s\n", static_cast<long long>(options.rows),
              took.count(), options.threads, options.by.c_str());
}

}  // namespace
}  // namespace melflow

int main(int argc, char** argv) try {
  melflow::Options options;
  CLI::App app{
      "Writes rows and computes nothing: RowFile (HDF5), plain pwrite, or HDF5 by itself."};
  app.add_option("out", options.out, "file to make; must not be there")->required();
  app.add_option("--by", options.by, "who writes")
      ->check(CLI::IsMember({"rowfile", "pwrite", "h5dwrite"}))
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "of the rows of rowfile; the others write float32")
      ->check(CLI::IsMember({"float32", "float16", "bfloat16"}))
      ->capture_default_str();
  app.add_option("--rows", options.rows, "rows")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--columns", options.columns, "values of a row")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--deflate", options.deflate, "level of compression, for rowfile and h5dwrite")
      ->check(CLI::Range(0, 9))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  melflow::run(options);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "melflow_write_rows: %s\n", e.what());
  return 1;
}
