// The facts about a file that are known before it is read, besides those in the table that lists
// it: label, split, group and columns, from its path, the files beside it, constants, and second
// tables.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stages/corpus/file_list_options.h"
#include "stages/corpus/files_beside.h"
#include "stages/corpus/joined_table.h"
#include "stages/corpus/split_draw.h"
#include "stages/corpus/table_columns.h"
#include "stages/manifest.h"

namespace melflow {

class FileFacts {
 public:
  using Warn = std::function<void(std::string)>;
  /// `source`: the name of the corpus's node where there are several, else "". Everything passed in
  /// must outlive this object.
  FileFacts(const FileListOptions& options, Manifest& manifest, const Warn& warn,
            const std::string& source);
  /// Reads the second tables (join). Throws RunError.
  void open_joined();

  /// The files added from now on are of this list or folder; `split`: their split, or "".
  void begin_list(const std::string& list, const std::string& split);
  /// Puts the facts of the file added last into the manifest. `path`: below the root; `cell`: the
  /// row's cell in the column that split_group names. If a file beside it is wrong, the recording
  /// fails. Throws RunError for a split that the option split_names lacks.
  void take(std::string_view path, std::string_view cell = "", bool is_folder = false);
  /// Notes that the file added last has no facts.
  void take_none() { groups_.add_other(); }
  void set_constants(std::size_t file);
  /// `where`: what gives the split, for messages. Both throw RunError.
  void set_split(std::size_t file, std::string_view name, const std::string& where);
  void check_split(const std::string& split, const std::string& where,
                   const std::string& remedy = "") const;
  /// The label's name in a second table that names the classes; else the label.
  [[nodiscard]] std::string_view renamed(std::string_view label);

  // When all files are added, in this order.
  /// Warns of files for which a rule finds nothing. Throws RunError where it finds nothing at all.
  void tell_missing() const;
  /// Takes what the label file and second tables have for the files. Throws RunError.
  void look_up();
  /// Warns of rules that find the folder of the split.
  void tell_names_of_splits() const;

  [[nodiscard]] const SplitGroups& groups() const { return groups_; }
  [[nodiscard]] const Constants& constants() const { return constants_; }

 private:
  void tell(const std::string& remark) const {
    if (!remark.empty()) warn_(remark);
  }
  void take_group(std::string_view path, std::string_view cell, bool is_folder);
  std::string beside(const std::string& rule, std::string_view path, std::size_t file);
  [[nodiscard]] bool is_wrong(const NameRule& rule, std::size_t file) const;
  void note_folder_of_split(std::string_view option, std::string_view name, std::string_view path,
                            std::size_t file);
  void take_labels_of_column();
  void take_joined();

  const FileListOptions& options_;
  Manifest& manifest_;
  const Warn warn_;
  const Constants constants_;
  std::string list_, split_;
  SplitGroups groups_;
  FilesBeside beside_;
  std::vector<PathColumn> columns_;  // for each of the options' columns
  std::optional<PathColumn> label_rule_;
  std::vector<JoinedTable> joined_;  // for each of the options' joins
  // By option: the first file for which it finds the folder of the split, and the number of these.
  std::map<std::string, std::pair<std::size_t, std::size_t>> folders_of_splits_;
};

}  // namespace melflow
