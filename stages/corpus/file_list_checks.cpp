// Checks the options of file_list before any file is read.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/secrets.h"
#include "pipeline/base/sentences.h"
#include "stages/corpus/archive_names.h"
#include "stages/corpus/file_list_options.h"
#include "stages/corpus/folder_scan.h"
#include "stages/corpus/name_rule.h"
#include "stages/corpus/split_name.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"
#include "stages/path_advice.h"

namespace melflow {
namespace {

// Returns why a rule names nothing without a table: "'speaker' is not parent_dir, ...".
std::string no_column(const std::string& rule, const std::string& table,
                      const std::string& other = "") {
  if (rule.find_first_of("[]\\*+?^$|{}") != rule.npos)
    return fmt::format("'{0}' has no ( ) to mark the name; write '({0})'", excerpt(rule));
  return fmt::format(
      "'{}' is not {}parent_dir, top_dir or a regular expression with ( ); to read it from a "
      "column of that name, set {} (.csv, .tsv or .jsonl)",
      excerpt(rule), other, table);
}

// Whether a list of the manifest may be a table. One that is not there may be a folder of Kaldi's,
// and one whose name shows that it is no list has an error already, and needs no second one.
bool may_be_table(const FileListOptions& o) {
  if (!o.call.empty()) return true;
  return std::any_of(o.manifest.list.begin(), o.manifest.list.end(), [&](const auto& one) {
    return o.is_table_list(one.path) || !why_no_list(one.path).empty() ||
           (std::filesystem::path(one.path).extension().empty() && !is_list_there(one.path));
  });
}

void check_utterances(const FileListOptions& o, PlanCheck& check) {
  if (!o.utterances) return;
  if (!o.utterances->rule && !FileListOptions::rule_of(o.manifest))
    check.error("utterances",
                "the lists are of several kinds, by whose rules times become other samples; write "
                "rule: nearest, lhotse or kaldi for all of them");
  if (!may_be_table(o))
    check.error(
        "utterances",
        fmt::format("needs a manifest with the columns path, start and end (.csv, .tsv, "
                    ".jsonl) or Kaldi's segments{}; set manifest: FILE, or remove utterances",
                    o.manifest.empty() ? ", and there is none" : ""));
}

void check_labels(const FileListOptions& o, PlanCheck& check) {
  const std::string& rule = o.labels.rule;
  if (o.labels == Labels::rule)
    if (const std::string problem = NameRule::problem(rule); !problem.empty())
      check.error("labels", problem);
  if (o.labels != Labels::column) return;
  const std::vector<std::string> columns = o.columns.names();
  if (std::find(columns.begin(), columns.end(), rule) != columns.end()) return;
  std::vector<std::string> names = columns;
  for (const auto& [name, value] : EnumNames<Labels>::values) names.emplace_back(name);
  const std::string near = did_you_mean(rule, names);
  check.error(
      "labels",
      !near.empty() ? fmt::format("'{}' is not known{}", excerpt(rule), near)
      : rule == "folder" || rule == "dir" || rule == "true"
          ? fmt::format("'{}' is not known{} It is the folder that a file is in", excerpt(rule),
                        did_you_mean(NameRule::kParentDir))
      : o.manifest.empty() && o.label_file.empty()
          ? fmt::format(
                "'{0}' is not known; write parent_dir (the folder that a file is in), top_dir (the "
                "first folder below root), the name of an entry of columns, or a regular "
                "expression "
                "whose ( ) finds the label in the path; for a column {0} of a table, give it by "
                "manifest or label_file",
                excerpt(rule))
          : fmt::format("'{0}' is not an entry of columns; for labels in the column {0} of the "
                        "{1}, write labels: {2} and columns_are: {{label: {0}}}",
                        excerpt(rule), o.label_file.empty() ? "manifest" : "label_file",
                        o.label_file.empty() ? "manifest" : "file"));
}

// Returns the problem with top_dir where splits are folders: all files of a split have the same.
std::string split_folder_problem(const FileListOptions& o, const std::string& rule) {
  if (o.splits != Splits::top_dir || rule != NameRule::kTopDir) return {};
  return "top_dir is the folder of the split here (splits: top_dir), such as train of "
         "train/ann/1.wav; for the folder below it, ann, write '^[^/]+/([^/]+)/'";
}

void check_split_group(const FileListOptions& o, PlanCheck& check) {
  const std::string& rule = o.group_rule();
  std::string problem = NameRule::problem(rule);
  if (NameRule::is_column(rule) && !may_be_table(o))
    problem = no_column(rule, "manifest", "an entry of columns, ");
  else if (problem.empty() && !rule.empty() && o.splits == Splits::automatic &&
           !o.fields()->has_splits)
    problem = "groups files for splits, but there are no splits; add splits: ratio";
  else if (problem.empty() && rule == o.split_group)
    problem = split_folder_problem(o, rule);
  if (!problem.empty()) check.error("split_group", problem);
}

void check_columns(const FileListOptions& o, PlanCheck& check) {
  for (const auto& [name, rule] : o.columns.list) {
    if (const std::string problem = column_name_problem(name); !problem.empty())
      check.error("columns", problem);
    if (const std::string problem = NameRule::problem(rule); !problem.empty())
      check.error("columns", fmt::format("{}: {}", excerpt(name), problem));
    if (const std::string problem = split_folder_problem(o, rule); !problem.empty())
      check.error("columns", fmt::format("{}: {}", excerpt(name), problem));
    if (NameRule::is_column(rule) && o.label_file.empty() && !may_be_table(o))
      check.error("columns", no_column(rule, "label_file or manifest"));
  }
  std::vector<std::string> names = o.text_names();
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    check.error("columns", fmt::format("'{}' is listed twice", excerpt(*twice)));
}

// Reports names of columns_are that nothing reads.
void check_columns_are(const FileListOptions& o, PlanCheck& check) {
  std::vector<std::string> read(std::begin(ColumnsAre::kRoles), std::end(ColumnsAre::kRoles));
  read.insert(read.end(), o.targets.begin(), o.targets.end());
  for (const auto& [name, rule] : o.columns.list) read.push_back(rule);
  if (!o.split_group.empty()) read.push_back(o.split_group);
  const ColumnsAre& are = o.table.columns_are;
  for (const ColumnsAre::Column& column : are.list)
    if (std::find(read.begin(), read.end(), column.name) == read.end())
      check.error("columns_are",
                  fmt::format("nothing reads a column '{}'{}; allowed: {}, and names that columns, "
                              "targets or split_group read",
                              excerpt(column.name), did_you_mean(column.name, read),
                              fmt::join(ColumnsAre::kRoles, ", ")));
  const auto warn_unused = [&](const char* name, const char* needed) {
    if (are.has(name))
      check.warning("columns_are", fmt::format("{}: has no effect without {}; add that, or remove "
                                               "this",
                                               name, needed));
  };
  if (!o.labels.is_in_table()) warn_unused("label", "labels: file or manifest");
  if (!o.utterances)
    for (const char* name : {"start", "end", "duration"}) warn_unused(name, "utterances");
  if (are.has("end") && are.has("duration"))
    check.error("columns_are", "end and duration are both given; remove one");
  if (are.has("channel") && are.has("channel_from_0"))
    check.error("columns_are", "channel and channel_from_0 are both given; remove one");
  if (!are.list.empty() && o.label_file.empty() && !may_be_table(o))
    check.error("columns_are",
                "these are columns of a table, and there is none; set manifest or label_file");
}

void check_constants(const FileListOptions& o, PlanCheck& check) {
  const std::string label = o.constants.value("label"), split = o.constants.value("split");
  if (!label.empty() && !(o.labels == Labels::none))
    check.error("constants", "label: the files have labels already (labels); remove one");
  if (!split.empty() && (o.splits != Splits::automatic || o.manifest.has_splits()))
    check.error("constants", fmt::format("split: the files have splits already ({}); remove one",
                                         o.manifest.has_splits() ? "manifest" : "splits"));
  std::vector<std::string> splits{split};
  for (const CorpusLists::List& one : o.manifest.list) splits.push_back(one.split);
  splits.push_back(o.manifest.rest);
  for (std::size_t i = 0; i < splits.size(); ++i)
    if (const std::string problem = split_name_problem(splits[i]);
        !splits[i].empty() && !problem.empty())
      check.error(i == 0 ? "constants" : "manifest", problem);
  for (const std::string& name : o.constants.columns())
    if (const std::string problem = column_name_problem(name); !problem.empty())
      check.error("constants", problem);
  if (o.manifest.has_splits() && o.splits != Splits::automatic && o.splits != Splits::manifest)
    check.error("manifest",
                "each list is for a split, which splits would set otherwise; remove splits");
}

void check_joins(const FileListOptions& o, PlanCheck& check) {
  bool has_label = !(o.labels == Labels::none) || !o.constants.value("label").empty();
  bool has_split = o.splits != Splits::automatic || o.manifest.has_splits() ||
                   !o.constants.value("split").empty();
  const auto error = [&](const TableJoin& j, const std::string& why) {
    check.error("join", fmt::format("{}: {}", excerpt(j.table, 4096), why));
  };
  for (const TableJoin& j : o.join) {
    const std::vector<std::string> names = o.columns.names();
    if (j.renames_labels()) {
      if (o.labels == Labels::none)
        error(j,
              "on: label looks up labels, and the files have none; set labels, or name an entry "
              "of columns by on");
      continue;
    }
    if (std::find(names.begin(), names.end(), j.on) == names.end())
      error(j,
            fmt::format("on: '{0}' is not an entry of columns{1}; say there where it comes from, "
                        "as columns: {{{0}: top_dir}}",
                        excerpt(j.on), did_you_mean(j.on, names)));
    if (!j.label.empty() && std::exchange(has_label, true))
      error(j, "label: the files have labels already; remove one, or write on: label");
    if (!j.split.empty() && std::exchange(has_split, true))
      error(j, "split: the files have splits already; remove one");
    for (const std::string& name : j.columns.names())
      if (const std::string problem = column_name_problem(name); !problem.empty())
        error(j, problem);
  }
}

void check_tables(const FileListOptions& o, PlanCheck& check) {
  const std::string packed = why_packed(o.label_file);
  for (const CorpusLists::List& one : o.manifest.list)
    if (const std::string other = why_no_list(one.path);
        !other.empty() && !o.is_table_list(one.path))
      check.error("manifest", other);
  const bool is_labelled = may_be_table(o);
  if (o.labels == Labels::file && o.label_file.empty())
    check.error("labels", "file needs a label_file");
  if (!o.label_file.empty() && o.labels != Labels::file && o.targets.empty() &&
      !o.columns.read_table())
    check.error("label_file", "is read with labels: file, targets or columns only");
  if (!o.label_file.empty() && !is_table(o.label_file) && !o.table.is_given())
    check.error("label_file", !packed.empty() ? packed
                                              : o.label_file +
                                                    " is not a .csv, .tsv or .jsonl; "
                                                    "save the table as one of these");
  if (o.labels == Labels::manifest && o.manifest.empty() && o.call.empty())
    check.error("labels",
                "manifest needs a manifest: FILE; write labels: parent_dir for labels from names "
                "of folders");
  else if (o.labels == Labels::manifest && !is_labelled)
    check.error("labels",
                "a manifest with labels is a .csv, .tsv or .jsonl with the column label, "
                "not " +
                    o.manifest.text());
  if (!o.targets.empty() && o.label_file.empty() && !is_labelled)
    check.error(
        "targets",
        "these are columns of a table, and there is none; set label_file or manifest (.csv, "
        ".tsv or .jsonl)");
  if (!o.label_separator.empty() && !o.labels.is_in_table())
    check.error("label_separator", "is for labels of a table (labels: file or manifest)");
}

// A warning only: a pipeline may be checked on a machine without the files. The run itself needs
// them.
void check_exists(const std::string& option, const std::string& path, PlanCheck& check) {
  if (const std::string url = url_problem(path); !url.empty()) return check.error(option, url);
  std::error_code error;
  if (path.empty() || path.find("${") != path.npos) return;
  if (option == "root" && names_archives(path)) {
    try {
      for (const std::string& name : archives_of(path))
        if (const std::string archive = name.empty() ? path : archive_base(path) + '/' + name;
            !std::filesystem::is_regular_file(archive, error))
          return check.warning(option,
                               fmt::format("{}: there is no such archive", excerpt(archive, 4096)));
    } catch (const RunError& e) {
      check.error(option, e.what());
    }
    return;
  }
  if (option == "root" && std::filesystem::is_regular_file(path, error))
    return check.warning(option, root_is_file(excerpt(path, 4096)));
  if (option == "manifest" && std::filesystem::is_directory(path, error) && !is_table(path))
    return check.error(option, fmt::format("{}: this folder has no wav.scp, so it is no data "
                                           "folder of Kaldi; to search it write root: {}",
                                           excerpt(path, 4096), path));
  if (std::filesystem::exists(path, error) || error) return;
  std::string why = path_advice(path);
  if (why.empty()) why = near_path(path);
  if (why.empty() && std::filesystem::path(path).is_relative())
    if (const auto current = std::filesystem::current_path(error); !error)
      why = fmt::format("; a relative path starts in the current folder, {}",
                        excerpt(current.string(), 4096));
  check.warning(option, fmt::format("{}: there is no such {}{}", excerpt(path, 4096),
                                    option == "root" ? "folder" : "file", why));
}

// Reports patterns such as "wav" and ".wav", which are names of files.
void check_patterns(const FileListOptions& o, PlanCheck& check) {
  for (const std::string& pattern : o.include) {
    const std::string ending = pattern.substr(pattern.starts_with('.') ? 1 : 0);
    constexpr std::size_t kLongest = 5;  // longest ending [bytes]
    const bool is_ending = !ending.empty() && ending.size() <= kLongest &&
                           std::all_of(ending.begin(), ending.end(),
                                       [](unsigned char c) { return std::isalnum(c) != 0; });
    if (is_ending)
      check.warning("include", fmt::format("'{}' matches only files of exactly that name{}",
                                           pattern, did_you_mean("*." + ending)));
  }
}

}  // namespace

void FileListOptions::check(PlanCheck& check) const {
  check_exists("root", root, check);
  for (const CorpusLists::List& one : manifest.list)
    if (!is_list_pattern(one.path)) check_exists("manifest", one.path, check);
  check_exists("label_file", label_file, check);
  for (const TableJoin& j : join) check_exists("join", j.table, check);
  for (const std::string& name : split_names)
    if (const std::string problem = split_name_problem(name); !problem.empty())
      check.error("split_names", problem);
  if (splits == Splits::ratio)
    for (const auto& [name, share] : split_ratios.list)
      if (const std::string problem = split_name_problem(name); !problem.empty())
        check.error("split_ratios", problem);
  if (root.empty() && manifest.empty() && call.empty())
    check.error(
        "", "'root' is missing; write root: FOLDER, with the recordings in it, or manifest: FILE");
  if (!call.empty() && (!root.empty() || !manifest.empty()))
    check.error("call", fmt::format("the function gives the recordings; remove {}",
                                    root.empty() ? "manifest" : "root"));
  if (commands == Commands::allow && !manifest.rest.empty())
    check.error("commands", "allow: cannot be together with rest in manifest; remove one");
  if (!call.empty() && call.find(':') == call.npos)
    check.error("call", fmt::format("'{}' names no function; write MODULE:NAME or FILE.py:NAME",
                                    excerpt(call)));
  if (!manifest.rest.empty() && root.empty())
    check.error("manifest", fmt::format("{}: the rest are the other files of root, and there is no "
                                        "root; set it",
                                        excerpt(manifest.rest)));
  if (!manifest.empty() && manifest.rest.empty() && !exclude.empty())
    check.error("exclude", "a manifest is taken as it stands; leave the files out there");
  check_patterns(*this, check);
  check_tables(*this, check);
  check_utterances(*this, check);
  check_columns_are(*this, check);
  check_constants(*this, check);
  check_joins(*this, check);
  if (splits == Splits::manifest && !manifest.has_splits() && !may_be_table(*this))
    check.error("splits", "manifest needs a manifest (.csv, .tsv or .jsonl) with the column split");
  if (splits == Splits::automatic && manifest.empty() && call.empty()) {
    if (split_ratios.list != FileListOptions().split_ratios.list)
      check.error("split_ratios", "has no effect without splits: ratio; add that");
  }
  if (splits == Splits::ratio && !split_names.empty())
    check.error("split_names", "with splits: ratio the names are those of split_ratios");
  check_split_group(*this, check);
  check_labels(*this, check);
  check_columns(*this, check);
}

}  // namespace melflow
