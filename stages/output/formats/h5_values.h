// Reads datasets and attributes of an HDF5 file. Sizes that the file states are accepted only where
// the file is large enough for them.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stages/files/unique_fd.h"
#include "stages/output/formats/column_type.h"
#include "stages/output/formats/hdf5.h"
#include "stages/output/formats/hdf5_descriptor.h"

namespace melflow {

struct OpenH5 {
  UniqueFd fd;
  std::uint64_t bytes = 0;
  std::unique_ptr<Hdf5Descriptor> from;
  Hid id;
};

/// Opens the file. Throws RunError when it is no HDF5 file, not complete, or being written.
OpenH5 open_h5(const std::string& path);

// All functions below throw RunError that names the object.

bool has_object(hid_t where, const std::string& name);
std::vector<std::uint64_t> h5_shape(hid_t space, const std::string& what);
/// Opens the object of that name, which starts with a slash; does not follow links to other files.
Hid open_dataset(hid_t file, const std::string& name);
Hid open_group(hid_t file, const std::string& name);
inline constexpr std::uint64_t kMostUnpacked = 1032;  ///< largest expansion by deflate
/// Throws unless all values of the dataset, `bytes` in total, are in the file itself.
void check_storage(hid_t set, std::uint64_t bytes, const OpenH5& file, const std::string& name);

class H5Dataset {
 public:
  H5Dataset(const OpenH5& file, const std::string& name);

  /// The number of values.
  [[nodiscard]] std::size_t count() const { return count_; }
  /// The bytes of all values, little-endian; a status is an int8.
  [[nodiscard]] std::string bytes(ColumnType type) const;
  template <class T>
  [[nodiscard]] std::vector<T> numbers() const {
    std::vector<T> out(count_);
    read(column_type<T>(), out.data());
    return out;
  }
  [[nodiscard]] std::vector<std::string> texts() const;

 private:
  void read(ColumnType type, void* to) const;

  const OpenH5* file_;
  std::string name_;
  Hid id_, space_, type_;
  std::size_t count_;
};

/// An attribute with one value.
class H5Attribute {
 public:
  H5Attribute(const OpenH5& file, hid_t object, const std::string& name);
  [[nodiscard]] bool is(H5T_class_t kind) const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::int64_t integer() const;

 private:
  const OpenH5* file_;
  std::string name_;
  Hid id_, type_, space_;
  bool is_single_;
};

/// The text of the attribute `name`; "" where there is none.
std::string text_attribute(const OpenH5& file, hid_t object, const std::string& name);

}  // namespace melflow
