// Unpacks gzip, piece by piece.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct z_stream_s;  // of zlib

namespace melflow {

class Gunzip {
 public:
  Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;
  ~Gunzip();

  /// Whether a file begins as one packed by gzip does.
  static bool is_packed(std::string_view head) { return head.starts_with("\x1F\x8B"); }
  /// Replaces `out` by the next bytes of the file, unpacked; false where they are damaged.
  bool take(std::string_view packed, std::string& out);
  /// Whether the file may end here, and nothing is missing.
  [[nodiscard]] bool is_whole() const { return is_whole_; }

 private:
  std::unique_ptr<z_stream_s> stream_;
  bool is_whole_ = false;
};

}  // namespace melflow
