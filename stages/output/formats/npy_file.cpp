#include "stages/output/formats/npy_file.h"

#include "stages/output/formats/npy_header.h"

namespace melflow {
namespace {

constexpr const char* kStage = "npy_write";
// Rows that an earlier run left are recognized by the length of their header, which is longer than
// numpy makes one.
constexpr const char* kLongHeader = "\xF6\x0F{'descr': ";
constexpr const char* kNoRows = "'fortran_order': False, 'shape': (0, ";
static_assert(NpyFile::kDataOffset - 10 == 0x0FF6);

// The index of rows that are extended in place is made anew.
Existing made_anew(Existing existing) {
  return existing == Existing::extend ? Existing::replace : existing;
}

}  // namespace

NpyFile::NpyFile(const std::string& target, NumberType type, std::size_t values_per_row,
                 const Opening& opening)
    : RowPartFile(target, kStage, type, values_per_row, kDataOffset, opening,
                  has_one_of({kLongHeader, kNoRows})),
      index_(target, kStage, made_anew(opening.existing)) {}

const char* NpyFile::descr(NumberType type) {
  // numpy has no bfloat16: an array of ml_dtypes is saved as two bytes that are no number.
  return type == NumberType::float32   ? "'<f4'"
         : type == NumberType::float16 ? "'<f2'"
         : type == NumberType::int16   ? "'<i2'"
                                       : "'<V2'";
}

std::string NpyFile::header(std::span<const std::uint64_t> shape, NumberType type) {
  return npy_header(descr(type), shape, shape.front() > 0 ? kDataOffset : kLeastHeader);
}

void NpyFile::make_npy(std::span<const std::uint64_t> shape, const OutputIndex& index) {
  const std::string header = NpyFile::header(shape, type());
  put(header.data(), header.size(), 0);
  std::string there(header.size(), '\0');
  get(there.data(), there.size(), 0);
  if (there != header) fail_read_back(part_path());
  // Rows of files that failed late may still lie behind the end.
  cut(header.size() + shape.front() * row_bytes());
  index_.write(shape, type(), index);
}

}  // namespace melflow
