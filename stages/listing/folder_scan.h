// The files below a folder that match patterns, in the order of their paths, compared component by
// component as bytes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/listing/glob.h"

namespace melflow {

class FolderScan {
 public:
  struct Settings {
    std::string root;
    std::vector<std::string> include, exclude;  ///< patterns (glob.h)
    bool follow_links = false;                  ///< also look into folders that are links
  };
  /// `folder` is below the root and "" or ends in '/'; so does `name`, for a folder that cannot be
  /// looked into.
  using Found = std::function<void(const std::string& folder, const std::string& name)>;

  explicit FolderScan(Settings settings);

  /// Everything that matches, also what turns out to be no file; and every folder that cannot be
  /// entered, unless it is left out. Throws RunError when the root cannot be looked into.
  void run(const Found& found) const;

 private:
  struct Entry {
    std::string name;
    bool is_folder = false;
  };
  struct Way;
  [[nodiscard]] bool wanted(const std::string& path) const;
  [[nodiscard]] bool list(const std::string& folder, std::vector<Entry>& out) const;
  void scan(const std::string& folder, Way& way, const Found& found) const;
  void add_closed(const std::string& folder, const Found& found) const;

  Settings settings_;
  std::vector<Glob> include_, exclude_;
};

}  // namespace melflow
