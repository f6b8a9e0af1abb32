// Measures writing: rows of 80 bands, block by block, by the class that hdf5_write uses, and the
// same bytes into a plain file. The time counts from no file to a complete file under its name. The
// page cache takes the data and nobody waits for the disk, as in a run without `sync`.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/bench/measurements.h"
#include "pipeline/base/problem.h"
#include "stages/files/unique_fd.h"
#include "stages/files/whole_io.h"
#include "stages/output/formats/row_file.h"

namespace melflow {
namespace {

constexpr std::int64_t kColumns = 80, kBlock = 1000, kBlocks = 100;  // 32 MB
constexpr std::int64_t kBlockBytes = kBlock * kColumns * static_cast<std::int64_t>(sizeof(float));

using Values = std::vector<float>;

void write_hdf5(const std::string& path, const Values& values) {
  RowFile file(path, "mel", NumberType::float32, kColumns, Existing::refuse);
  for (std::int64_t i = 0; i < kBlocks; ++i) file.write(i * kBlock, values.data(), kBlock);
  const std::array<hsize_t, 2> shape{kBlocks * kBlock, kColumns};
  file.make_hdf5(shape, [](hid_t, hid_t) {});
  file.publish(false);
}

void write_flat(const std::string& path, const Values& values) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  int error = fd ? 0 : errno;
  for (std::int64_t i = 0; error == 0 && i < kBlocks; ++i)
    error = write_whole(fd.get(), values.data(), kBlockBytes,
                        static_cast<std::uint64_t>(i * kBlockBytes));
  if (error != 0)
    throw RunError(fmt::format("{}: cannot be written: {}", path, std::strerror(error)));
}

double megabytes_per_second(const Slice& slice, const std::string& path, const Values& values,
                            void (*write)(const std::string&, const Values&)) {
  const auto began = std::chrono::steady_clock::now();
  double seconds = 0, megabytes = 0;
  do {
    const auto file_began = std::chrono::steady_clock::now();
    write(path, values);
    seconds += Slice::seconds_since(file_began);
    megabytes += static_cast<double>(kBlocks * kBlockBytes) / 1e6;
    std::filesystem::remove(path);
  } while (!slice.is_over(began));
  return megabytes / seconds;
}

}  // namespace

std::vector<Measurement> writing(const TemporaryFolder& folder) {
  const auto values = std::make_shared<Values>(kBlock * kColumns);
  for (std::size_t i = 0; i < values->size(); ++i)
    (*values)[i] = -20.0F - static_cast<float>(i % 61);
  const std::string hdf5 = folder / "rows.h5", flat = folder / "rows.raw";
  return {
      {"write rows into HDF5", "MB/s",
       [=](const Slice& slice) { return megabytes_per_second(slice, hdf5, *values, write_hdf5); }},
      {"write rows into a flat file", "MB/s",
       [=](const Slice& slice) { return megabytes_per_second(slice, flat, *values, write_flat); }}};
}

}  // namespace melflow
