// Datasets and attributes of an HDF5 file, as they are stored. What the file says of sizes is
// believed as far as it is large enough for them.
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

/// Throws RunError where it is no HDF5 file, not complete, or being written.
OpenH5 open_h5(const std::string& path);

// All that follows throws RunError naming the object.

bool has_object(hid_t where, const std::string& name);
std::vector<std::uint64_t> h5_shape(hid_t space, const std::string& what);
/// Throws where not all values of the dataset, `bytes` of them, are in the file itself.
void check_storage(hid_t set, std::uint64_t bytes, const OpenH5& file, const std::string& name);

class H5Dataset {
 public:
  H5Dataset(const OpenH5& file, const std::string& name);

  /// Values it has.
  [[nodiscard]] std::size_t count() const { return count_; }
  /// All of them, little-endian; a status as int8.
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

  std::string name_;
  Hid id_, space_, type_;
  std::size_t count_;
};

/// Of one value.
class H5Attribute {
 public:
  H5Attribute(hid_t object, const std::string& name);
  [[nodiscard]] bool is(H5T_class_t kind) const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::int64_t integer() const;

 private:
  std::string name_;
  Hid id_, type_, space_;
  bool is_single_;
};

/// "" where there is none.
std::string text_attribute(hid_t object, const std::string& name);

}  // namespace melflow
