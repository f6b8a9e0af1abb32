#include "stages/listing/corpus_listing.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <regex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/problem.h"
#include "stages/listing/folder_scan.h"
#include "stages/listing/json_lines.h"
#include "stages/listing/table_reader.h"

namespace melflow {
namespace {

// As it is listed: without what `find .` puts in front.
std::string_view plain(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path;
}

// The first component of a relative path that has several; "" otherwise.
std::string_view first_folder(std::string_view path) {
  const std::size_t slash = path.starts_with('/') ? path.npos : path.find('/');
  // A folder that could not be entered is listed with a slash at its end.
  return slash == path.npos || slash + 1 == path.size() ? "" : path.substr(0, slash);
}

// The name of the folder that a path is in.
std::string_view parent_folder(std::string_view path) {
  const std::size_t last = path.find_last_of('/', path.size() - (path.ends_with('/') ? 2 : 1));
  if (last == path.npos) return "";
  const std::string_view folder = path.substr(0, last);
  const std::size_t slash = folder.rfind('/');
  return slash == folder.npos ? folder : folder.substr(slash + 1);
}

// Where a split stands by its name: training, validation, test, others.
int rank_of(std::string name) {
  static constexpr std::array<std::array<const char*, 4>, 3> kKnown{
      {{"train", "training", "tr", "trn"},
       {"val", "valid", "validation", "dev"},
       {"test", "testing", "tst", "eval"}}};
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  int rank = 0;
  for (const auto& names : kKnown) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return rank;
    ++rank;
  }
  return rank;
}

// What the output has beside its splits.
constexpr std::array kTakenNames{"band_hz", "files",  "labels",     "mel",
                                 "remarks", "splits", "statistics", "targets"};

bool is_split_name(std::string_view name) {
  return !name.empty() && !name.starts_with('.') && name.find('/') == name.npos &&
         std::find(kTakenNames.begin(), kTakenNames.end(), name) == kTakenNames.end();
}

// Columns of a table with labels and numbers for files.
class LabelColumns {
 public:
  /// -1 for labels that are not wanted.
  LabelColumns(const FileListOptions& options, const TableReader& table, std::string path,
               bool with_labels)
      : options_(options), path_(std::move(path)) {
    if (with_labels) label_ = column(table, options.label_column, "label_column");
    for (const std::string& t : options.targets) targets_.push_back(column(table, t, "targets"));
  }

  void take(const TableReader& table, Manifest& manifest, std::size_t file) {
    if (label_ >= 0) take_labels(table.cell(label_), manifest, file);
    for (std::size_t t = 0; t < targets_.size(); ++t) {
      const std::string& text = table.cell(targets_[t]);
      if (text.empty()) continue;
      float value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size())
        throw RunError(fmt::format("{}:{}: {} is '{}', which is no number", path_, table.line(),
                                   options_.targets[t], text));
      manifest.set_target(file, t, value);
    }
  }
  [[nodiscard]] bool has_labels() const { return label_ >= 0; }

 private:
  int column(const TableReader& table, const std::string& name, const char* option) const {
    const int c = table.column(name);
    if (c < 0)
      throw RunError(
          fmt::format("{}: there is no column '{}', which {} asks for", path_, name, option));
    return c;
  }

  void take_labels(const std::string& text, Manifest& manifest, std::size_t file) {
    std::string_view rest = text;
    const bool is_list = text.find(JsonLinesReader::kListSeparator) != text.npos;
    if (!is_list && options_.label_separator.empty()) {
      if (!text.empty()) manifest.set_label(file, text);
      return;
    }
    static constexpr char kOfList[] = {JsonLinesReader::kListSeparator, '\0'};
    const std::string_view separator =
        is_list ? kOfList : std::string_view(options_.label_separator);
    names_.clear();
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(separator), rest.size());
      if (end > 0) names_.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + separator.size(), rest.size()));
    }
    manifest.set_labels(file, names_);
  }

  const FileListOptions& options_;
  std::string path_;
  int label_ = -1;
  std::vector<int> targets_;
  std::vector<std::string_view> names_;
};

class Listing {
 public:
  Listing(const FileListOptions& options, const std::function<void(std::string)>& warn)
      : options_(options), warn_(warn), manifest_(options.root) {
    if (options.groups_by_pattern()) pattern_.emplace(options.split_group);
  }

  Manifest make() {
    if (!options_.targets.empty()) manifest_.set_target_names(options_.targets);
    options_.manifest.empty() ? scan() : read_manifest();
    if (!options_.label_file.empty()) read_labels();
    if (options_.splits == Splits::ratio) deal_splits();
    if (options_.splits == Splits::top_dir) check_names();
    if (!manifest_.split_names().empty()) {
      if (options_.splits != Splits::ratio) check_groups();
      manifest_.order_by_split(split_order());
      check_labels();
    }
    manifest_.close();
    return std::move(manifest_);
  }

 private:
  void scan() {
    const FolderScan folders(
        {options_.root, options_.include, options_.exclude, options_.follow_links});
    folders.run([this](const std::string& folder, const std::string& name) {
      manifest_.add(manifest_.add_folder(folder), name);
      added(folder + name);
    });
    if (manifest_.size() == 0)
      throw RunError(fmt::format("{}: no file matches {}; check file_list.root and include",
                                 options_.root, fmt::join(options_.include, ", ")));
  }

  void read_manifest() {
    if (is_table(options_.manifest))
      read_table();
    else
      read_lines();
    if (manifest_.size() == 0) throw RunError(options_.manifest + ": the manifest names no file");
  }

  void add(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    const std::string_view folder = slash == path.npos ? "" : path.substr(0, slash + 1);
    manifest_.add(manifest_.add_folder(folder), path.substr(folder.size()));
  }

  void read_table() {
    const std::string& name = options_.manifest;
    const std::unique_ptr<TableReader> table = open_table(name, {"path"});
    const int split = split_column(*table);
    const int group = options_.groups_by_column() ? table->column(options_.split_group) : -1;
    if (options_.groups_by_column() && group < 0)
      throw RunError(fmt::format("{}: there is no column '{}', which split_group asks for", name,
                                 options_.split_group));
    std::optional<LabelColumns> columns;
    if (options_.labels == Labels::manifest ||
        (!options_.targets.empty() && options_.label_file.empty()))
      columns.emplace(options_, *table, name, options_.labels == Labels::manifest);
    while (table->next()) {
      const std::string_view path = plain(table->cell("path"));
      if (path.empty())
        throw RunError(fmt::format("{}:{}: the path is empty", name, table->line()));
      add(path);
      const std::size_t file = manifest_.size() - 1;
      added(path, group < 0 ? "" : table->cell(group));
      if (columns) columns->take(*table, manifest_, file);
      if (split < 0 || table->cell(split).empty()) continue;
      check_name(table->cell(split), fmt::format("{}:{}", name, table->line()));
      set_split(file, table->cell(split), fmt::format("{}:{}", name, table->line()));
    }
  }

  int split_column(const TableReader& table) const {
    if (options_.splits != Splits::automatic && options_.splits != Splits::manifest) return -1;
    const int column = table.column("split");
    if (column < 0 && options_.splits == Splits::manifest)
      throw RunError(options_.manifest +
                     ": there is no column 'split', which splits: manifest asks for");
    return column;
  }

  void read_lines() {
    const std::string& name = options_.manifest;
    std::ifstream in(name);
    if (!in)
      throw RunError(fmt::format("{}: cannot read the manifest: {}", name, std::strerror(errno)));
    bool is_first = true;
    for (std::string line; std::getline(in, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (is_first && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
      is_first = false;
      if (line.empty() || line.starts_with('#')) continue;
      add(plain(line));
      added(plain(line));
    }
    if (in.bad())
      throw RunError(fmt::format("{}: cannot read the manifest: {}", name, std::strerror(errno)));
  }

  // What the path of the file added last says about it.
  void added(std::string_view path, std::string_view group = "") {
    path = below_root(path);
    const std::size_t file = manifest_.size() - 1;
    std::string_view label;
    if (options_.labels == Labels::parent_dir) label = parent_folder(path);
    if (options_.labels == Labels::top_dir) {
      const bool is_below_split = options_.splits == Splits::top_dir && !first_folder(path).empty();
      label = first_folder(is_below_split ? path.substr(path.find('/') + 1) : path);
    }
    if (!label.empty()) manifest_.set_label(file, label);
    if (options_.splits == Splits::top_dir && !first_folder(path).empty())
      set_split(file, first_folder(path), "splits: top_dir");
    if (options_.splits != Splits::ratio && options_.split_group.empty()) return;
    keys_.push_back(key_of(path, group));
  }

  // Of an absolute path in the root, what is below it.
  [[nodiscard]] std::string_view below_root(std::string_view path) const {
    std::string_view root = options_.root;
    while (root.size() > 1 && root.ends_with('/')) root.remove_suffix(1);
    if (!root.empty() && path.starts_with(root) && path.substr(root.size()).starts_with('/'))
      path.remove_prefix(root.size() + 1);
    return path;
  }

  // Of the group that the file belongs to, or of the file.
  [[nodiscard]] std::uint64_t key_of(std::string_view path, std::string_view group) const {
    std::cmatch match;
    if (options_.split_group == "parent_dir")
      group = path.substr(0, std::min(path.rfind('/'), path.size()));
    else if (options_.split_group == "top_dir")
      group = first_folder(path);
    else if (pattern_ &&
             std::regex_search(path.data(), path.data() + path.size(), match, *pattern_))
      group = {match[1].first, static_cast<std::size_t>(match[1].length())};
    if (group.empty()) group = path;
    return XXH3_64bits_withSeed(group.data(), group.size(), options_.split_seed);
  }

  void read_labels() {
    std::unordered_map<std::string, std::vector<std::size_t>> files;
    for (std::size_t i = 0; i < manifest_.size(); ++i) files[manifest_.relative(i)].push_back(i);
    const bool with_labels = options_.labels == Labels::file;
    const std::unique_ptr<TableReader> table = open_table(options_.label_file, {"path"});
    LabelColumns columns(options_, *table, options_.label_file, with_labels);
    std::vector<bool> is_named(manifest_.size(), false);
    while (table->next()) {
      const auto it = files.find(std::string(plain(table->cell("path"))));
      if (it == files.end()) continue;
      for (const std::size_t i : it->second) {
        columns.take(*table, manifest_, i);
        is_named[i] = !with_labels || !manifest_.labels(i).empty();
      }
    }
    const auto without = std::count(is_named.begin(), is_named.end(), false);
    if (without > 0)
      warn_(fmt::format("{}: {} of {} files have no {} there", options_.label_file, without,
                        manifest_.size(), with_labels ? "label" : "line"));
  }

  void set_split(std::size_t file, std::string_view name, const std::string& where) {
    if (!is_split_name(name))
      throw RunError(
          fmt::format("{}: '{}' cannot be the name of a split: it becomes part of names in the "
                      "output, so it has "
                      "no '/', does not begin with '.', and is none of {}",
                      where, name, fmt::join(kTakenNames, ", ")));
    if (!manifest_.set_split(file, name))
      throw RunError(fmt::format("{}: more than {} splits", where, Manifest::kMostSplits));
  }

  void deal_splits() {
    std::vector<SplitUnit> units(manifest_.size());
    for (std::size_t i = 0; i < units.size(); ++i) units[i] = {keys_[i], manifest_.stratum(i)};
    const std::vector<std::int8_t> splits = options_.split_stratify
                                                ? split_by_stratum(units, options_.split_ratios)
                                                : split_by_key(units, options_.split_ratios);
    for (std::size_t i = 0; i < units.size(); ++i)
      set_split(i, options_.split_ratios.list[static_cast<std::size_t>(splits[i])].first, "");
  }

  void check_name(const std::string& split, const std::string& where) const {
    const std::vector<std::string>& names = options_.split_names;
    if (!names.empty() && std::find(names.begin(), names.end(), split) == names.end())
      throw RunError(fmt::format("{}: '{}' is not among split_names ({})", where, split,
                                 fmt::join(names, ", ")));
  }
  void check_names() const {
    for (const std::string& split : manifest_.split_names())
      check_name(split, options_.root + "/" + split + "; leave its files out with exclude");
  }

  [[nodiscard]] std::vector<std::string> split_order() const {
    if (!options_.split_names.empty()) return options_.split_names;
    std::vector<std::string> names;
    if (options_.splits == Splits::ratio)
      for (const auto& [name, share] : options_.split_ratios.list) names.push_back(name);
    if (!names.empty()) return names;
    names = manifest_.split_names();
    std::stable_sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      return rank_of(a) < rank_of(b);
    });
    return names;
  }

  // Splits that are given: does a group cross them?
  void check_groups() const {
    if (keys_.empty()) return;
    std::unordered_map<std::uint64_t, std::size_t> first;
    std::unordered_map<std::uint64_t, std::pair<std::size_t, std::size_t>> crossing;
    for (std::size_t i = 0; i < manifest_.size(); ++i) {
      const auto [it, is_new] = first.try_emplace(keys_[i], i);
      if (!is_new && manifest_.split(i) != manifest_.split(it->second))
        crossing.try_emplace(keys_[i], it->second, i);
    }
    if (crossing.empty()) return;
    auto least = crossing.begin()->second;
    for (const auto& [key, files] : crossing) least = std::min(least, files);
    const auto name = [this](std::size_t i) {
      const int s = manifest_.split(i);
      return s < 0 ? "no split" : manifest_.split_names()[static_cast<std::size_t>(s)];
    };
    warn_(fmt::format(
        "{} of {} groups (split_group) cross splits; {} is in {}, {} of the same group in "
        "{}",
        crossing.size(), first.size(), manifest_.relative(least.first), name(least.first),
        manifest_.relative(least.second), name(least.second)));
  }

  // A model cannot learn what training does not have. The first split is training.
  void check_labels() const {
    const std::vector<std::string>& names = manifest_.label_names();
    std::vector<std::size_t> in_first(names.size(), 0), elsewhere(names.size(), 0);
    for (std::size_t i = 0; i < manifest_.size(); ++i)
      for (const std::int32_t l : manifest_.labels(i))
        if (manifest_.split(i) >= 0)
          ++(manifest_.split(i) == 0 ? in_first : elsewhere)[static_cast<std::size_t>(l)];
    std::vector<std::string> unseen;
    for (std::size_t l = 0; l < names.size(); ++l)
      if (in_first[l] == 0 && elsewhere[l] > 0) unseen.push_back(names[l]);
    if (unseen.empty()) return;
    std::sort(unseen.begin(), unseen.end());
    constexpr std::size_t kMostNamed = 5;
    const std::size_t named = std::min(unseen.size(), kMostNamed);
    warn_(fmt::format(
        "{} of {} labels have no file in {}, but in other splits: {}{}", unseen.size(),
        names.size(), manifest_.split_names().front(),
        fmt::join(unseen.begin(), unseen.begin() + static_cast<std::ptrdiff_t>(named), ", "),
        named < unseen.size() ? ", ..." : ""));
  }

  const FileListOptions& options_;
  const std::function<void(std::string)>& warn_;
  Manifest manifest_;
  std::optional<std::regex> pattern_;
  std::vector<std::uint64_t> keys_;  // of every file, where splits need them
};

}  // namespace

Manifest list_corpus(const FileListOptions& options, const std::function<void(std::string)>& warn) {
  return Listing(options, warn).make();
}

}  // namespace melflow
