// Unpacks data of gzip or deflate, piece by piece.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

struct z_stream_s;  // of zlib

namespace melflow {

class Inflater {
 public:
  enum class Format { gzip, deflate };
  explicit Inflater(Format format);
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater();

  /// Whether a file begins as one packed by gzip does.
  static bool is_gzip(std::string_view head) { return head.starts_with("\x1F\x8B"); }
  /// Gives the next bytes, unpacked, to `out` in pieces, which says whether it takes more; false
  /// where they are damaged, or were not taken.
  using Out = std::function<bool(std::span<const std::byte>)>;
  bool take(std::string_view packed, const Out& out);
  /// Whether the bytes may end here, and nothing is missing.
  [[nodiscard]] bool is_whole() const { return is_whole_; }

 private:
  Format format_;
  std::unique_ptr<z_stream_s> stream_;
  bool is_whole_ = false;
};

}  // namespace melflow
