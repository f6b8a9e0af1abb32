// The contents of a folder or an archive: sound files, other files of the same names, and tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace melflow {

class CorpusContents {
 public:
  /// Files that one rule (files_beside.h) finds for sound files: ".txt", or
  /// "txt/{parent_dir}/{name}.txt", relative to the folder.
  struct Beside {
    std::string rule, example;  ///< `example`: the path of one
    std::size_t count = 0;
    [[nodiscard]] bool is_ending() const { return rule.starts_with('.'); }
    /// Whether file_list reads the text as this rule: a ( or : from a name has a meaning in rules.
    [[nodiscard]] bool is_rule() const;
    [[nodiscard]] bool ends_in(std::string_view ending) const { return rule.ends_with(ending); }
  };

  /// Takes a file's path, relative to the folder.
  void add(std::string path);
  /// Takes all files of a folder; hidden ones are left out. Throws RunError where it cannot be
  /// listed.
  void add_folder(const std::string& folder);

  [[nodiscard]] const std::vector<std::string>& sounds() const { return sounds_; }
  /// The files with the names of sound files, ascending by rule.
  [[nodiscard]] std::vector<Beside> beside() const { return sorted().first; }
  /// The tables among the other files, at most two folders deep.
  [[nodiscard]] std::vector<std::string> tables() const { return sorted().second; }

 private:
  [[nodiscard]] std::pair<std::vector<Beside>, std::vector<std::string>> sorted() const;

  std::vector<std::string> sounds_, others_;
};

}  // namespace melflow
