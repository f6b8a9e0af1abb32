// Reads the files that hdf5_write and npy_write make; docs/output-format.md says what is in them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stages/raii/hdf5.h"
#include "stages/raii/unique_fd.h"

namespace melflow {

class FeatureFile {
 public:
  enum class Status : std::int8_t { ok, skipped, failed, not_run };
  struct Entry {
    std::string path;
    std::int64_t offset = 0, count = 0;  ///< rows of /mel
    std::int32_t label = -1;
    std::int8_t split = -1;
    std::int32_t sample_rate = 0;  ///< of the file itself [Hz]
    double duration = 0;           ///< [s]
    Status status = Status::ok;
  };
  struct Remark {
    std::int64_t file = 0;
    std::string path;
    Status status = Status::ok;
    std::string stage, reason;
  };

  /// Opens and reads all but the rows. Throws RunError, saying what is wrong with the file and, for
  /// one that is not complete, what to do.
  explicit FeatureFile(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
  [[nodiscard]] bool complete() const { return integer("complete").value_or(0) == 1; }
  /// Of /mel: [rows, bands] or [rows, frames, bands].
  [[nodiscard]] const std::vector<std::uint64_t>& shape() const { return shape_; }
  [[nodiscard]] std::uint64_t rows() const { return shape_.front(); }
  [[nodiscard]] std::uint64_t frames_per_row() const { return shape_.size() == 3 ? shape_[1] : 1; }
  [[nodiscard]] std::uint64_t bands() const { return shape_.back(); }
  [[nodiscard]] const std::string& dtype() const { return dtype_; }
  [[nodiscard]] const std::string& unit() const { return unit_; }
  [[nodiscard]] const std::vector<double>& band_hz() const { return band_hz_; }
  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] const std::vector<Entry>& files() const { return files_; }
  [[nodiscard]] const std::vector<std::string>& labels() const { return labels_; }
  [[nodiscard]] const std::vector<std::string>& splits() const { return splits_; }
  [[nodiscard]] const std::vector<Remark>& remarks() const { return remarks_; }

  /// Attributes of the root group, entries of the .npy document; nothing or "" where there is no such attribute.
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name) const;

  /// Rows of /mel as float32 [count, frames_per_row, bands].
  [[nodiscard]] std::vector<float> read_rows(std::uint64_t offset, std::uint64_t count) const;

 private:
  void open();
  void check_format() const;
  // In npy_reader.cpp:
  void read_npy();
  void check_npy_rows() const;
  void read_npy_index(const std::string& path);
  [[nodiscard]] std::vector<float> read_npy_rows(std::uint64_t offset, std::uint64_t count) const;
  void read_mel();
  void read_files();
  void read_remarks();

  std::string path_;
  QuietHdf5 quiet_;
  Hid file_, mel_;
  std::uint64_t file_bytes_ = 0;
  std::vector<std::uint64_t> shape_;
  std::string dtype_, unit_, root_;
  std::vector<double> band_hz_;
  std::vector<Entry> files_;
  std::vector<std::string> labels_, splits_;
  std::vector<Remark> remarks_;
  // Of a .npy file:
  UniqueFd rows_;
  std::map<std::string, std::int64_t> integers_;
  std::map<std::string, std::string> texts_;
};

const char* to_text(FeatureFile::Status status);

}  // namespace melflow
