// Writes a file from its beginning, in pieces that are large enough for a system call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "stages/files/part_file.h"
#include "stages/output/formats/output_index.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {

class Appender {
 public:
  explicit Appender(const PartFile& file) : file_(file) {}
  void add(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= kPiece) write();
  }
  /// Reads all of it back. Throws RunError where it differs from what was written.
  void finish() {
    write();
    file_.cut(at_);
    RowHash there;
    for (std::uint64_t at = 0; at < at_; at += buffer_.size()) {
      buffer_.resize(std::min<std::uint64_t>(kPiece, at_ - at));
      file_.get(buffer_.data(), buffer_.size(), at);
      there.add(buffer_.data(), buffer_.size());
    }
    if (there.value() != hash_.value()) fail_read_back(file_.part_path());
  }

 private:
  static constexpr std::size_t kPiece = 1 << 20;
  void write() {
    file_.put(buffer_.data(), buffer_.size(), at_);
    hash_.add(buffer_.data(), buffer_.size());
    at_ += buffer_.size();
    buffer_.clear();
  }
  const PartFile& file_;
  std::string buffer_;
  std::uint64_t at_ = 0;
  RowHash hash_;
};

}  // namespace melflow
