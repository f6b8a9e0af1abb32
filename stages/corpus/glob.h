// Patterns for paths: '*' and '?' within one component, '**' for any number of folders, at the end for all
// that is in them. Every other character, '[' and '\' too, is itself, since names have them: "track [1].wav".
// Takes time in proportion to the lengths of pattern and path multiplied, at most.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace melflow {

/// Case does not matter, so that "*.wav" also finds "A.WAV".
class Glob {
 public:
  explicit Glob(std::string_view pattern);
  /// Whether the pattern matches the whole `path`, a relative one with '/' between components. A
  /// pattern without '/' is compared with the last component only.
  [[nodiscard]] bool matches(std::string_view path) const;
  /// Whether the pattern takes every name, or every hidden one: its last component is '*', '**' or '.*'.
  [[nodiscard]] bool takes_every_name() const;
  /// Whether the pattern has a name that begins with '.', as hidden files and folders do.
  [[nodiscard]] bool names_hidden() const;

 private:
  std::vector<std::string> parts_;
  std::optional<std::string> ending_;  // in lower case, where the pattern asks for nothing else
};

}  // namespace melflow
