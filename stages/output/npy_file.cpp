#include "stages/output/npy_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "stages/output/npy_header.h"

namespace melflow {
namespace {

constexpr const char* kStage = "npy_write";

}  // namespace

NpyFile::NpyFile(const std::string& target, NumberType type, std::size_t values_per_row,
                 Existing existing)
    : RowPartFile(target, kStage, type, values_per_row, kDataOffset, existing),
      index_(npy_index_path(target), kStage, existing),
      document_(npy_document_path(target), kStage, existing) {}

std::string NpyFile::header(std::span<const std::uint64_t> shape, NumberType type) {
  // numpy has no bfloat16: as an array of ml_dtypes' is saved, two bytes that are no number.
  const char* descr = type == NumberType::float32   ? "'<f4'"
                      : type == NumberType::float16 ? "'<f2'"
                                                    : "'<V2'";
  return npy_header(descr, shape, shape.front() > 0 ? kDataOffset : kLeastHeader);
}

void NpyFile::make_npy(std::span<const std::uint64_t> shape, const OutputIndex& index) {
  const std::string header = NpyFile::header(shape, type());
  put(header.data(), header.size(), 0);
  // Rows of files that failed late may lie behind the end.
  cut(header.size() + shape.front() * row_bytes());
  write_npy_index(index_, index);
  write_npy_document(document_, shape, type(), index);
}

void NpyFile::keep() {
  RowPartFile::keep();
  index_.keep();
  document_.keep();
}

void NpyFile::publish(bool sync) {
  settle();
  index_.settle();
  document_.settle();
  if (sync) {
    flush();
    index_.flush();
    document_.flush();
  }
  const int gone = overwrites() ? ::unlink(target().c_str()) : ::access(target().c_str(), F_OK);
  const int error = !overwrites() && gone == 0 ? EEXIST : gone == 0 || errno == ENOENT ? 0 : errno;
  if (error != 0)
    throw RunError(fmt::format("{}: cannot be given its name: {}; the complete file is {}",
                               target(), std::strerror(error), part_path()));
  if (sync) flush_folder();
  index_.publish(sync);
  document_.publish(sync);
  RowPartFile::publish(sync);
}

}  // namespace melflow
