// The files below a folder that match patterns, in the order of their paths, compared component by
// component as bytes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/corpus/glob.h"

namespace melflow {

class FolderScan {
 public:
  struct Settings {
    std::string root;
    std::vector<std::string> include, exclude;  ///< patterns (glob.h)
    bool follow_links = false;                  ///< also look into folders that are links
  };
  struct Found {
    std::string_view folder;  ///< below the root; "" or ends in '/'
    std::string_view name;  ///< ends in '/' for a folder that matches nothing and cannot be listed
    bool is_folder = false;
    int error = 0;  ///< why the folder cannot be listed, so that nobody knows what is in it
  };
  using Visit = std::function<void(const Found& found)>;

  explicit FolderScan(Settings settings);

  /// Everything that matches, also what turns out to be no file; and every folder that cannot be
  /// listed to its end, unless it is left out. Throws RunError when that is the root.
  void run(const Visit& visit) const;
  [[nodiscard]] bool wanted(const std::string& path) const;

 private:
  struct Entry {
    std::string name;
    bool is_folder = false;
    int error = 0;  // it may be a folder, or not
  };
  struct Way;
  [[nodiscard]] bool is_left_out(const std::string& path) const;
  [[nodiscard]] int list(const std::string& folder, std::vector<Entry>& out) const;
  [[nodiscard]] Entry entry_of(int dir, const std::string& folder, const char* name,
                               unsigned char type) const;
  void scan(const std::string& folder, const std::vector<Entry>& entries, Way& way,
            const Visit& visit) const;

  Settings settings_;
  std::vector<Glob> include_, exclude_;
};

}  // namespace melflow
