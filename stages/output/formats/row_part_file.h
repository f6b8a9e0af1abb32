// A `.part` file that rows are written to, for any format: in place, at their final position from a
// fixed byte on, by pwrite() from many threads. The class of the format adds everything else at the
// end.
//
// Threads: write() and hash() from any, for different rows at once; every other call from one at a
// time, before the first row or when all are written. It has no lock: rows never overlap, which
// RowOrder sees to. Errors: RunError that names the file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/base/number_type.h"
#include "stages/files/part_file.h"
#include "stages/files/publication.h"

namespace melflow {

/// Rows [row, row + count) of the output, in its stored type or float32.
struct RowRange {
  std::int64_t row = 0;
  const void* values = nullptr;  ///< [count, values_per_row]
  std::int64_t count = 0;
  NumberType type = NumberType::float32;
};

class RowPartFile : public PartFile {
 public:
  /// Row 0 begins at byte `data_offset`, behind PartFile::kMark, by which an abandoned file is
  /// recognized as melflow's, and which resume_at() writes again; `completed` recognizes one in
  /// which the format's own bytes have replaced the mark. Throws RunError as PartFile does.
  RowPartFile(const std::string& target, std::string stage, NumberType type,
              std::size_t values_per_row, std::uint64_t data_offset, const Opening& opening,
              Recognizer completed)
      : PartFile(target, std::move(stage), opening, std::move(completed)),
        type_(type),
        values_per_row_(values_per_row),
        data_offset_(data_offset) {}

  /// Prepares an existing file for more rows, keeping its first `rows` rows.
  void extend(std::int64_t rows) { save(data_offset_, place_of(rows)); }
  /// Makes row `row` of the output the first in this file; to be called before anything else.
  void begin_at(std::int64_t row) { first_row_ = row; }
  [[nodiscard]] std::int64_t first_row() const { return first_row_; }
  /// Copies rows [row, row + count) from `from`. Throws RunError.
  void take_rows(const RowPartFile& from, std::int64_t row, std::int64_t count) {
    write(row, count, Elsewhere{from.fd(), from.place_of(row), from.part_path()});
  }

  // For a run that continues with the file.
  /// The end of the rows that are in the file itself, whatever happens to the program.
  [[nodiscard]] virtual std::int64_t safe_rows() const;
  /// Prepares a file that was opened to be continued, keeping its rows before `rows`, at most
  /// safe_rows().
  virtual void resume_at(std::int64_t rows);
  /// XXH3 of rows [row, row + count) as they are stored; nothing where they cannot be read.
  [[nodiscard]] virtual std::optional<std::uint64_t> hash(std::int64_t row,
                                                          std::int64_t count) const;
  /// The same for rows that this run has written. Throws RunError.
  [[nodiscard]] std::uint64_t hash_written(std::int64_t row, std::int64_t count) const;

  /// All files of the output, in the order in which they get their names.
  [[nodiscard]] virtual std::vector<PartFile*> parts() { return {this}; }
  void publish(bool sync) { Publication::publish(target(), parts(), sync); }

  [[nodiscard]] std::size_t row_bytes() const { return values_per_row_ * size_of(type_); }

  /// The number of rows that are read back and changed or copied at a time.
  [[nodiscard]] std::int64_t rows_at_once() const {
    constexpr std::size_t kBytes = 256 << 10;  // as float32
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(kBytes / (4 * values_per_row_)));
  }

  /// Writes rows, adjacent ranges in one system call. From any thread. Throws RunError, and
  /// std::logic_error for rows of a type that is neither the file's nor float32.
  virtual void write(std::span<const RowRange> ranges);
  void write(std::int64_t row, const float* values, std::int64_t count) {
    const RowRange range{row, values, count};
    write({&range, 1});
  }
  /// Writes rows that another file has at byte `at`, in the form in which they are stored here.
  /// From any thread. Throws RunError that also names `from`.
  struct Elsewhere {
    int fd = -1;
    std::uint64_t at = 0;
    const std::string& path;
  };
  virtual void write(std::int64_t row, std::int64_t count, const Elsewhere& from);
  /// Whether a second thread that writes rows of this type would only wait for the first, because
  /// file systems allow one write to a file at a time.
  [[nodiscard]] virtual bool is_serial(NumberType rows) const { return rows == type_; }
  /// Notes that the rows from `row` on are void and will be written again; no write to them may be
  /// in progress.
  virtual void roll_back(std::int64_t /*row*/) {}
  /// Reads rows [row, row + count), which must have been written, as float32 [count,
  /// values_per_row].
  virtual void read(std::int64_t row, std::int64_t count, float* values);
  /// Moves `count` rows from `from` to `to` < `from`; to be called when all rows are written.
  virtual void move_rows(std::int64_t from, std::int64_t to, std::int64_t count);

  /// An unnamed temporary file beside the target, for data that has no position yet. The first
  /// put() creates it; only one put() at a time.
  class Spill {
   public:
    explicit Spill(const RowPartFile& beside) : beside_(beside) {}
    /// Both throw RunError.
    void put(const void* data, std::size_t bytes, std::uint64_t at);
    void get(void* data, std::size_t bytes, std::uint64_t at) const;

   private:
    const RowPartFile& beside_;
    UniqueFd fd_;
  };
  /// For rows of a recording that cannot be finished yet.
  [[nodiscard]] Spill& spill() { return spill_; }

 protected:
  [[nodiscard]] NumberType type() const { return type_; }
  [[nodiscard]] std::size_t values_per_row() const { return values_per_row_; }
  void check_type(const RowRange& range) const;

 private:
  void put_joined(std::span<const RowRange> ranges) const;
  void put_converted(const RowRange& range) const;
  [[nodiscard]] std::uint64_t place_of(std::int64_t row) const {
    return data_offset_ + static_cast<std::uint64_t>(row - first_row_) * row_bytes();
  }

  NumberType type_;
  std::size_t values_per_row_;
  std::uint64_t data_offset_;
  std::int64_t first_row_ = 0;
  Spill spill_{*this};
};

}  // namespace melflow
