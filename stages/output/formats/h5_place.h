// A group of an HDF5 file with its datasets and attributes. The same calls are made twice: first to
// write them, and once the file is complete, to read them back and compare.
#pragma once

#include <hdf5.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/output/formats/column_type.h"
#include "stages/output/formats/hdf5.h"

namespace melflow {

/// Every call throws RunError naming what cannot be written, or differs from what was written.
class H5Place {
 public:
  enum class Pass { write, check };
  H5Place(hid_t id, Pass pass) : id_(id), pass_(pass) {}
  /// The group `name` in the group `in`.
  H5Place(const H5Place& in, const std::string& name);
  operator hid_t() const { return id_; }  // NOLINT: as Hid does
  [[nodiscard]] Pass pass() const { return pass_; }
  [[nodiscard]] bool writes() const { return pass_ == Pass::write; }

  using Shape = std::vector<hsize_t>;
  /// Writes the bytes of entries [first, first + count) of the first axis to `to`, which is filled
  /// with zeros. Called for all entries in order.
  using PutBytes = std::function<void(std::size_t first, std::size_t count, char* to)>;
  /// A dataset of numbers with one axis or two. `is_packed`: compressed by deflate; not for
  /// datasets without values.
  void numbers(const char* name, ColumnType type, const Shape& shape, const PutBytes& put,
               bool is_packed = false) const;
  /// A dataset of texts with one axis.
  void texts(const char* name, std::size_t count,
             const std::function<std::string(std::size_t)>& text) const;
  /// A dataset of numbers or texts; value(i) is a number, a FeatureData::Status or a text.
  template <class Value>
  void list(const char* name, std::size_t count, const Value& value) const {
    using T = std::remove_cvref_t<std::invoke_result_t<Value, std::size_t>>;
    if constexpr (std::is_same_v<T, std::string>)
      texts(name, count, value);
    else
      numbers(name, column_type<T>(), {count}, [&](std::size_t first, std::size_t n, char* to) {
        for (std::size_t i = first; i < first + n; ++i, to += sizeof(T)) put_bytes(to, value(i));
      });
  }
  template <class T>
  void list(const char* name, const std::vector<T>& values) const {
    list(name, values.size(), [&](std::size_t i) { return values[i]; });
  }

  void attribute(const char* name, const std::string& text) const;
  template <class T>
  void attribute(const char* name, T number) const {
    std::string bytes(sizeof number, '\0');
    put_bytes(bytes.data(), number);
    attribute(name, column_type<T>(), bytes);
  }

 private:
  void attribute(const char* name, ColumnType type, const std::string& bytes) const;

  Hid group_;
  hid_t id_;
  Pass pass_;
};

}  // namespace melflow
