#include "stages/corpus/file_facts.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/corpus/label_file.h"
#include "stages/corpus/manifest_remarks.h"
#include "stages/corpus/path_parts.h"
#include "stages/corpus/split_name.h"
#include "stages/corpus/table_reader.h"

namespace melflow {

FileFacts::FileFacts(const FileListOptions& options, Manifest& manifest, const Warn& warn,
                     const std::string& source)
    : options_(options),
      manifest_(manifest),
      warn_(warn),
      constants_(options.constants.of_source(source)),
      groups_(options),
      beside_(options.base()) {
  for (const auto& [name, rule] : options.columns.list)
    columns_.push_back({"columns: " + excerpt(name), NameRule(rule)});
  if (options.labels == Labels::rule)
    label_rule_ = PathColumn{"labels", NameRule(options.labels.rule)};
}

void FileFacts::open_joined() {
  for (const TableJoin& join : options_.join) joined_.emplace_back(join, warn_);
}

void FileFacts::begin_list(const std::string& list, const std::string& split) {
  list_ = list;
  split_ = split;
}

void FileFacts::take(std::string_view path, std::string_view cell, bool is_folder) {
  const std::size_t file = manifest_.size() - 1;
  set_constants(file);
  std::string_view label;
  if (options_.labels == Labels::parent_dir) label = parent_folder(path);
  if (options_.labels == Labels::top_dir) {
    const bool is_below_split = options_.splits == Splits::top_dir && !first_folder(path).empty();
    label = first_folder(is_below_split ? path.substr(path.find('/') + 1) : path);
  }
  std::string of_label;  // in the file beside it
  if (label_rule_ && !is_folder) {
    of_label = beside(label_rule_->rule.text(), path, file);
    if (!is_wrong(label_rule_->rule, file)) label = label_rule_->take(path, of_label, file);
  }
  if (!label.empty()) manifest_.set_label(file, renamed(label));
  if (options_.splits == Splits::top_dir && !first_folder(path).empty())
    set_split(file, first_folder(path), "splits: top_dir");
  note_folder_of_split("labels", label, path, file);
  if (groups_.are_wanted()) take_group(path, cell, is_folder);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (is_folder || NameRule::is_column(columns_[c].rule.text())) continue;
    const std::string of_column = beside(columns_[c].rule.text(), path, file);
    if (is_wrong(columns_[c].rule, file)) continue;
    const std::string_view text = columns_[c].take(path, of_column, file);
    manifest_.set_text(file, c, text);
    note_folder_of_split(columns_[c].name, text, path, file);
  }
}

void FileFacts::take_group(std::string_view path, std::string_view cell, bool is_folder) {
  if (is_folder) return groups_.add_other();
  const std::size_t file = manifest_.size() - 1;
  const std::string& rule = options_.group_rule();
  const std::string of_group = beside(rule, path, file);
  groups_.add(path, of_group.empty() ? cell : of_group);
  if (rule == options_.split_group)
    note_folder_of_split("split_group", groups_.name_of(path, cell), path, file);
}

// Returns the text of a rule that names a file beside the recording; a wrong one fails that.
std::string FileFacts::beside(const std::string& rule, std::string_view path, std::size_t file) {
  if (!NameRule::is_beside(rule) || !manifest_.problem(file).empty()) return {};
  try {
    return beside_.text(manifest_.path(file), path, rule);
  } catch (const BadLine& e) {
    manifest_.set_problem(file, e.what());
    return {};
  }
}

// Whether the file beside the recording exists but is no text: it does not count as missing then.
bool FileFacts::is_wrong(const NameRule& rule, std::size_t file) const {
  return NameRule::is_beside(rule.text()) && !manifest_.problem(file).empty();
}

void FileFacts::set_constants(std::size_t file) {
  if (constants_.list.empty() && split_.empty()) return;
  if (const std::string label = constants_.value("label"); !label.empty())
    manifest_.set_label(file, label);
  const std::string split = split_.empty() ? constants_.value("split") : split_;
  if (!split.empty()) {
    check_split(split, split_.empty() ? "constants.split" : "manifest");
    set_split(file, split, list_);
  }
  std::size_t column = options_.columns.list.size();
  for (const std::string& name : constants_.columns())
    manifest_.set_text(file, column++, constants_.value(name));
}

// Notes a name from a path that should tell files apart, but is the folder of their split.
void FileFacts::note_folder_of_split(std::string_view option, std::string_view name,
                                     std::string_view path, std::size_t file) {
  if (options_.splits == Splits::top_dir && !name.empty() && name == first_folder(path))
    ++folders_of_splits_.try_emplace(std::string(option), file, 0).first->second.second;
}

void FileFacts::take_labels_of_column() {
  const std::vector<std::string> names = options_.columns.names();
  const auto column = static_cast<std::size_t>(
      std::find(names.begin(), names.end(), options_.labels.rule) - names.begin());
  for (std::size_t i = 0; i < manifest_.size(); ++i)
    if (const std::string label(manifest_.text(i, column)); !label.empty())
      manifest_.set_label(i, renamed(label));
}

std::string_view FileFacts::renamed(std::string_view label) {
  for (std::size_t j = 0; j < joined_.size(); ++j) {
    if (!options_.join[j].renames_labels()) continue;
    if (const JoinedTable::Row* const row = joined_[j].find(label);
        row != nullptr && !row->label.empty())
      return row->label;
  }
  return label;
}

// Adds what second tables have for the files.
void FileFacts::take_joined() {
  std::size_t column = options_.columns.list.size() + constants_.columns().size();
  const std::vector<std::string> names = options_.columns.names();
  for (std::size_t j = 0; j < joined_.size(); ++j) {
    const TableJoin& join = options_.join[j];
    const auto on =
        static_cast<std::size_t>(std::find(names.begin(), names.end(), join.on) - names.begin());
    for (std::size_t i = 0; i < manifest_.size() && !join.renames_labels(); ++i) {
      const JoinedTable::Row* const row = joined_[j].find(manifest_.text(i, on));
      if (row == nullptr) continue;
      for (std::size_t t = 0; t < row->texts.size(); ++t)
        manifest_.set_text(i, column + t, row->texts[t]);
      if (!row->label.empty()) manifest_.set_label(i, row->label);
      if (row->split.empty()) continue;
      check_split(row->split, join.table);
      set_split(i, row->split, join.table);
    }
    column += join.columns.list.size();
    tell(joined_[j].remark());
  }
}

void FileFacts::set_split(std::size_t file, std::string_view name, const std::string& where) {
  if (const std::string problem = split_name_problem(name); !problem.empty())
    throw RunError(where + ": " + problem);
  if (!manifest_.set_split(file, name))
    throw RunError(fmt::format("{}: more than {} splits", where, Manifest::kMostSplits));
}

void FileFacts::check_split(const std::string& split, const std::string& where,
                            const std::string& remedy) const {
  const std::vector<std::string>& names = options_.split_names;
  if (!names.empty() && std::find(names.begin(), names.end(), split) == names.end())
    throw RunError(fmt::format("{}: '{}' is not among split_names ({}){}", where, split,
                               fmt::join(names, ", "), remedy));
}
void FileFacts::tell_missing() const {
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const std::string remark = columns_[c].remark(manifest_);
    // The message about groups covers the column that they come from.
    const bool is_group = options_.columns.list[c].name == options_.split_group;
    if (!is_group || groups_.unmatched() == 0) tell(remark);
  }
  if (label_rule_) tell(label_rule_->remark(manifest_));
  const bool is_folder =
      options_.labels == Labels::parent_dir || options_.labels == Labels::top_dir;
  if (is_folder && manifest_.size() > 0 && manifest_.label_names().empty())
    tell(fmt::format(
        "labels: no file is in a folder below {}, so that none has a label; remove labels, or take "
        "the root above",
        options_.root.empty() ? list_ : options_.root));
}

void FileFacts::look_up() {
  if (!options_.label_file.empty())
    read_label_file(options_, manifest_, warn_,
                    [this](std::string_view label) { return renamed(label); });
  if (options_.labels == Labels::column) take_labels_of_column();
  take_joined();
}

void FileFacts::tell_names_of_splits() const {
  for (const auto& [option, files] : folders_of_splits_)
    tell(names_of_splits(option, manifest_, files.first, files.second));
}

}  // namespace melflow
