// Finds the files below a folder that match patterns, in the order of their paths, which are
// compared component by component as bytes.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stages/corpus/path_parts.h"

namespace melflow {

/// Counts the files below a root that a search ignores: by ending, ".txt"; under kOther those
/// without an ending, and all others once there are too many endings; under kHidden files and
/// folders whose names begin with '.'; under kLinkedFolder symbolic links to folders. Hidden and
/// linked folders are not searched, and count once.
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

/// The message about a root that is a file, with what to do.
std::string root_is_file(const std::string& root);

class FolderScan {
 public:
  struct Settings {
    std::string root;
    std::vector<std::string> include, exclude;  ///< patterns (path_parts.h)
    bool follow_links = false;                  ///< also look into folders that are links
  };
  struct Found {
    std::string_view folder;  ///< relative to the root; "" or ends in '/'
    std::string_view name;  ///< ends in '/' for a folder that matches nothing and cannot be listed
    bool is_folder = false;
    int error = 0;  ///< errno of a folder that cannot be listed, else 0
  };
  using Visit = std::function<void(const Found& found)>;

  explicit FolderScan(Settings settings);

  /// Calls `visit` for every path that is wanted(), whether it is a file or not, and for every
  /// folder that cannot be listed completely and is not excluded. Patterns that take every name
  /// ("**", "speech/*") match files and no folders; a folder that `exclude` matches is excluded
  /// with all its contents. Returns the files that neither include nor exclude matches. Throws
  /// RunError when the root cannot be listed.
  NotTaken run(const Visit& visit) const;
  /// The patterns of `exclude` that matched nothing, after run().
  [[nodiscard]] std::vector<std::string> unused_excludes() const;
  /// Whether `path`, relative to the root, matches a pattern of `include` and none of `exclude`. A
  /// path with a name that begins with '.' is matched only by patterns with such a name.
  [[nodiscard]] bool wanted(const std::string& path) const;

 private:
  struct Entry {
    std::string name;
    bool is_folder = false;
    int error = 0;  // errno where its type cannot be determined, else 0
  };
  struct Way;
  [[nodiscard]] bool is_wanted_folder(const std::string& path) const;
  [[nodiscard]] bool searches_hidden() const;
  [[nodiscard]] bool is_left_out(const std::string& path, bool is_folder = false) const;
  [[nodiscard]] int list(const std::string& folder, std::vector<Entry>& out,
                         NotTaken& not_taken) const;
  [[nodiscard]] Entry entry_of(int dir, const std::string& folder, const char* name,
                               unsigned char type) const;
  void scan(const std::string& folder, const std::vector<Entry>& entries, Way& way,
            const Visit& visit) const;

  Settings settings_;
  std::vector<Glob> include_, exclude_;
  mutable std::vector<bool> is_used_;  // for each of exclude_, whether it matched anything
};

}  // namespace melflow
