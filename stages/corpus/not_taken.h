// Counts the files below a root that a search ignores, by the ends of their names.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace melflow {

/// By ending, ".txt"; under kOther those without an ending, and what would be too many endings; under
/// kHidden files and folders whose names begin with '.'; under kLinkedFolder symbolic links to
/// folders. Such folders are not searched, and count once.
class NotTaken {
 public:
  static constexpr const char* kOther = "other";
  static constexpr const char* kHidden = "hidden";
  static constexpr const char* kLinkedFolder = "linked folder";

  void add(std::string_view name);
  void add(const std::string& ending, std::size_t count) { counts_[ending] += count; }
  [[nodiscard]] const std::map<std::string, std::size_t>& counts() const { return counts_; }
  /// "10 .sph, 1 .txt", the most frequent first; "" for none.
  [[nodiscard]] std::string text() const;

 private:
  std::map<std::string, std::size_t> counts_;
};

}  // namespace melflow
