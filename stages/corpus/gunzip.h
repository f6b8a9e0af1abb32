// Unpacks gzip, piece by piece.
#pragma once

#include <zlib.h>

#include <string>
#include <string_view>

namespace melflow {

class Gunzip {
 public:
  Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;
  ~Gunzip();

  /// Whether a file begins as one packed by gzip does.
  static bool is_packed(std::string_view head) { return head.starts_with("\x1F\x8B"); }
  /// Unpacks the next bytes of the file into `out`, which it replaces; false where they are damaged.
  bool take(std::string_view packed, std::string& out);
  /// Whether the file may end here, and nothing is missing.
  [[nodiscard]] bool is_whole() const { return is_whole_; }

 private:
  z_stream stream_{};
  bool is_whole_ = false;
};

}  // namespace melflow
