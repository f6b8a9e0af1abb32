// What a file was before it was extended in place: `<target>.undo`, complete or not there at all.
#pragma once

#include <cstdint>
#include <string>

namespace melflow {

class UndoFile {
 public:
  /// Keeps of the file `fd` what is before `head` and from `tail` to its end at `size` [bytes];
  /// with `sync` that is on disk when it returns. Throws RunError.
  static void write(const std::string& target, int fd, std::uint64_t head, std::uint64_t tail,
                    std::uint64_t size, bool sync);
  [[nodiscard]] static bool exists(const std::string& target);
  /// Throws RunError where the file of that name is not melflow's.
  static void check(const std::string& target);
  /// Makes `fd` what it was. Throws RunError.
  static void apply(const std::string& target, int fd);
  static void remove(const std::string& target);
};

}  // namespace melflow
