// `<target>.undo`: the bytes of a file that may be overwritten while it is extended in place. It
// exists either complete or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace melflow {

class UndoFile {
 public:
  static constexpr std::string_view kEnding = ".undo";
  /// Saves the bytes of `fd` before `head` and from `tail` to its end at `size`; they are on disk
  /// when it returns. Throws RunError.
  static void write(const std::string& target, int fd, std::uint64_t head, std::uint64_t tail,
                    std::uint64_t size);
  [[nodiscard]] static bool exists(const std::string& target);
  /// Throws RunError, as check_side_file() does, where a file is in the way of write(), or the undo
  /// file is not melflow's.
  static void check(const std::string& target);
  /// Restores `fd` to its state before it was extended. Throws RunError.
  static void apply(const std::string& target, int fd);
  static void remove(const std::string& target);
};

}  // namespace melflow
