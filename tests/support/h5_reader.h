// Reads datasets and attributes of any HDF5 file into vectors, for tests. Shares no code with the
// reader in apps/ or the writer in stages/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace melflow::test {

/// Every function throws std::runtime_error that names the file and the object.
class H5File {
 public:
  explicit H5File(const std::string& path);
  ~H5File();
  H5File(const H5File&) = delete;
  H5File& operator=(const H5File&) = delete;

  /// Paths of all groups and datasets below the root, such as "files" and "files/path"; sorted.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has(const std::string& name) const;

  // Datasets.
  [[nodiscard]] std::vector<std::uint64_t> shape(const std::string& name) const;
  /// Returns "float32", "float16", "bfloat16", "float64", "int8" ..., "string" (variable length,
  /// UTF-8), or "enum int8: ok=0 skipped=1"; for big-endian values, the text ends in " big-endian".
  [[nodiscard]] std::string type(const std::string& name) const;
  /// Returns "contiguous", "chunked" or "compact".
  [[nodiscard]] std::string layout(const std::string& name) const;
  /// Returns the offset of a contiguous dataset in the file [bytes]; -1 where it has none.
  [[nodiscard]] std::int64_t offset(const std::string& name) const;
  [[nodiscard]] std::vector<float> floats(const std::string& name) const;
  [[nodiscard]] std::vector<double> doubles(const std::string& name) const;
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> strings(const std::string& name) const;
  /// Returns the bytes as they are stored; not for strings.
  [[nodiscard]] std::string raw(const std::string& name) const;
  /// Returns an axis' label, and the path of the dimension scale attached to it ("" for none).
  [[nodiscard]] std::string axis_label(const std::string& name, unsigned axis) const;
  [[nodiscard]] std::string axis_scale(const std::string& name, unsigned axis) const;

  // Attributes of an object; "/" is the root group.
  [[nodiscard]] std::vector<std::string> attribute_names(const std::string& object) const;
  [[nodiscard]] std::string attribute_type(const std::string& object,
                                           const std::string& name) const;
  [[nodiscard]] std::int64_t integer_attribute(const std::string& object,
                                               const std::string& name) const;
  [[nodiscard]] std::string text_attribute(const std::string& object,
                                           const std::string& name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace melflow::test
