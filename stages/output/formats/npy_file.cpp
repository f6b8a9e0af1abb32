#include "stages/output/formats/npy_file.h"

#include <stdexcept>

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
  switch (type) {
    case NumberType::float32:
      return "'<f4'";
    case NumberType::float16:
      return "'<f2'";
    case NumberType::bfloat16:
      return "'<V2'";
    case NumberType::int16:
      return "'<i2'";
    case NumberType::int8:
      return "'|i1'";
    case NumberType::uint8:
      return "'|u1'";
    case NumberType::uint16:
      return "'<u2'";
    case NumberType::int32:
      return "'<i4'";
    case NumberType::int64:
      return "'<i8'";
  }
  throw std::logic_error("a number type without a name in NumPy");
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
