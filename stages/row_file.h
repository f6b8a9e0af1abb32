// The output while it is being written: rows at their final place in `<target>.part`, everything
// else of the HDF5 file added around them at the end.
//
// HDF5 cannot grow a contiguous dataset, and the number of rows is not known before the last file
// is decoded. So rows are written by plain pwrite(), from many threads, from byte kDataOffset on;
// at the end HDF5 makes a file of the right shape whose dataset begins at the same place and is
// never written, and its other bytes are copied around the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "pipeline/problem.h"
#include "stages/raii/hdf5.h"
#include "stages/raii/unique_fd.h"

namespace melflow {

enum class RowType { float32, float16 };

/// Rows [row, row + count) of the output.
struct RowRange {
  std::int64_t row = 0;
  const float* values = nullptr;  ///< [count, values_per_row]
  std::int64_t count = 0;
};

class RowFile {
 public:
  /// Creates the `.part` file. Throws RunError when the target exists and `overwrite` is off, the
  /// folder is missing or not writable, or another run is writing there.
  RowFile(std::string target, RowType type, std::size_t values_per_row, bool overwrite);
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  /// Removes the `.part` file, unless it has its name or is to be kept.
  virtual ~RowFile();

  [[nodiscard]] const std::string& target() const { return target_; }
  [[nodiscard]] const std::string& part_path() const { return part_; }
  [[nodiscard]] std::size_t row_bytes() const;

  /// From any thread; neighbours go to the file together. Throws RunError.
  virtual void write(std::span<const RowRange> ranges);
  void write(std::int64_t row, const float* values, std::int64_t count) {
    const RowRange range{row, values, count};
    write({&range, 1});
  }
  /// True: a second thread that writes only waits for the first one, as the file system has it.
  [[nodiscard]] virtual bool is_serial() const { return type_ == RowType::float32; }
  /// The rows from `row` on are void and will be written again. No write of theirs is under way.
  virtual void roll_back(std::int64_t /*row*/) {}
  /// Moves `count` rows down from `from` to `to` < `from`, when all rows are written.
  virtual void move_rows(std::int64_t from, std::int64_t to, std::int64_t count);

  /// Room for the rows of one file that cannot be finished yet: bytes of an unnamed file beside the
  /// target. Throws RunError.
  void spill(std::uint64_t at, const void* data, std::size_t bytes);
  void unspill(std::uint64_t at, void* data, std::size_t bytes) const;

  using Shape = std::span<const hsize_t>;
  using Describe = std::function<void(hid_t file, hid_t rows)>;
  /// Makes it an HDF5 file with /mel of `shape`; `describe` adds what else belongs into it.
  virtual void make_hdf5(Shape shape, const Describe& describe);
  /// Gives the file its name; with `sync` returns only when the system has all of it on disk. Where
  /// that fails the complete `.part` file is kept.
  void publish(bool sync);
  /// Leaves the `.part` file behind as it is.
  void keep();

 protected:
  [[noreturn]] void fail(const std::string& what, int error) const;
  /// Throws fail() for a full disk, and `e` for anything else.
  [[noreturn]] void fail_of_hdf5(const RunError& e) const;
  [[nodiscard]] Hid row_type() const;
  [[nodiscard]] RowType type() const { return type_; }
  [[nodiscard]] std::size_t values_per_row() const { return values_per_row_; }

 private:
  void open_part();
  void put(int fd, const void* data, std::size_t bytes, std::uint64_t at) const;
  void put_joined(std::span<const RowRange> ranges) const;
  void put_halves(const RowRange& range) const;
  [[nodiscard]] std::uint64_t place_of(std::int64_t row) const;
  void get(int fd, void* data, std::size_t bytes, std::uint64_t at) const;
  void make_shell(const std::string& path, Shape shape, bool in_place,
                  const Describe& describe) const;
  Hid make_rows(hid_t file, Shape shape, bool in_place) const;
  void copy_around(const std::string& from, std::uint64_t data_bytes) const;

  std::string target_, part_, folder_;
  RowType type_;
  std::size_t values_per_row_;
  bool overwrite_;
  bool settled_ = false;  // the .part file is not this object's to remove any more
  UniqueFd fd_;
  UniqueFd spill_;
};

}  // namespace melflow
