#include "stages/corpus/file_list_options.h"

#include <algorithm>

#include <fmt/format.h>

#include "stages/corpus/name_rule.h"
#include "stages/corpus/split_name.h"
#include "stages/corpus/table_reader.h"
#include "stages/other_names.h"

namespace melflow {

void FileListOptions::describe(Schema& s) {
  s.other_names(other_names::of_file_list());
  s.field("root", root, "folder to look in, with all folders below it; paths are stored below it");
  const auto is_scanned = [this] { return manifest.empty(); };
  const std::string scanned = "a folder to look in (a manifest is taken as it stands)";
  s.field("include", include,
          "patterns of files to take: * within a name, ** for any folders; case does not matter")
      .used_with(scanned, is_scanned);
  s.field("exclude", exclude, "patterns of files to leave out again");
  s.field(
      "manifest", manifest,
      "instead of looking: a text file with a path a line, or a table (.csv, .tsv, .jsonl) with "
      "the column path; order is kept");
  s.field("follow_links", follow_links, "also look into folders that are symbolic links")
      .used_with(scanned, is_scanned);
  s.field("closed_folders", closed_folders,
          "folders that cannot be listed (permissions, a failing disk), so that nobody knows what "
          "is missing: error, the run does not begin; failed, each counts as one failed file. What "
          "exclude leaves out is not missing")
      .used_with(scanned, is_scanned);

  s.field(
      "labels", labels,
      "where labels come from: the name of the file's folder (parent_dir), of its first folder "
      "below root (top_dir; with splits: top_dir below the split's), the manifest's label_column, "
      "or that of label_file (file)");
  s.field("label_file", label_file,
          "table (.csv, .tsv, .jsonl) with the column path, from which labels: file, targets and "
          "columns come");
  s.field("label_column", label_column, "the column of a table that has the labels")
      .used_with("labels: file or manifest",
                 [this] { return labels == Labels::file || labels == Labels::manifest; });
  s.field("label_separator", label_separator,
          "what is between the labels of a file that has several, such as '|'; a list in .jsonl "
          "needs none");
  s.field(
      "targets", targets,
      "columns with numbers, of label_file or else of the manifest, to be stored for every file");
  s.field("columns", columns,
          "texts to be stored for every file, such as speaker or transcript: columns of label_file "
          "or else of the manifest, [speaker, transcript]; or names and what each is, {speaker: "
          "speaker_id, chapter: parent_dir, room: 'room([0-9]+)'}, a column, the file's folder "
          "(parent_dir), its first folder below root (top_dir) or a regular expression whose ( ) "
          "is the text in the path");

  s.field("splits", splits,
          "training, validation and test: by the first folder below root (top_dir), by the "
          "manifest's column split, or by shares (ratio); auto: the column, where there is one");
  s.field("split_names", split_names,
          "the splits that there may be, in the order of the output; without them train, val and "
          "test (and what else these are called) come first");
  const auto by_ratio = [this] { return splits == Splits::ratio; };
  s.field("split_ratios", split_ratios,
          "names of the splits with splits: ratio, and their shares of the files")
      .used_with("splits: ratio", by_ratio);
  s.field("split_seed", split_seed,
          "seed of the draw with splits: ratio; another number, another draw")
      .used_with("splits: ratio", by_ratio);
  s.field(
       "split_stratify", split_stratify,
       "meets the shares of splits: ratio exactly, also within every label. Without it every "
       "file is drawn by its own name, so that a run over more files moves none (an update never "
       "does)")
      .used_with("splits: ratio", by_ratio);
  const auto has_splits = [this] {
    return splits == Splits::automatic ? !manifest.empty() : splits != Splits::none;
  };
  s.field("split_group", split_group,
          "what must not cross splits, such as a speaker: parent_dir, top_dir, a column of the "
          "manifest, or a regular expression whose ( ) is the name in the path; with splits that "
          "are given, a remark tells of groups that cross")
      .used_with("splits", has_splits);
  s.field(
       "split_unmatched", split_unmatched,
       "what becomes with splits: ratio of files that split_group says nothing of (the expression "
       "finds no name, the cell is empty, there is no folder): error, the run does not begin; "
       "own_group, each is a group of its own; one_group, all are one; no_split, they are in no "
       "split")
      .used_with("splits: ratio and split_group",
                 [this] { return splits == Splits::ratio && !split_group.empty(); });
  s.field(
       "split_update", split_update,
       "what an update does with splits: ratio: keep, files of the earlier output stay in their "
       "split, and new ones of their groups go there, too; redraw, all are drawn as in a run from "
       "the beginning, and a remark counts those that move")
      .used_with("splits: ratio", by_ratio);
}

namespace {

void check_split_group(const FileListOptions& o, PlanCheck& check) {
  if (NameRule::is_column(o.split_group) && !is_table(o.manifest))
    check.error("split_group", "'" + o.split_group +
                                   "' would be a column of a manifest (.csv, .tsv or .jsonl), and "
                                   "there is none; else it is parent_dir, top_dir or a regular "
                                   "expression with ( )");
  if (const std::string problem = NameRule::problem(o.split_group); !problem.empty())
    check.error("split_group", problem);
}

void check_columns(const FileListOptions& o, PlanCheck& check) {
  for (const auto& [name, rule] : o.columns.list) {
    if (const std::string problem = column_name_problem(name); !problem.empty())
      check.error("columns", problem);
    if (const std::string problem = NameRule::problem(rule); !problem.empty())
      check.error("columns", fmt::format("{}: {}", excerpt(name), problem));
    if (NameRule::is_column(rule) && o.label_file.empty() && !is_table(o.manifest))
      check.error("columns", fmt::format("'{}' would be a column of label_file or of a manifest "
                                         "(.csv, .tsv or .jsonl), and there is none; else it is "
                                         "parent_dir, top_dir or a regular expression with ( )",
                                         excerpt(rule)));
  }
  std::vector<std::string> names = o.columns.names();
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    check.error("columns", fmt::format("'{}' stands there twice", excerpt(*twice)));
}

void check_tables(const FileListOptions& o, PlanCheck& check) {
  const bool is_labelled = is_table(o.manifest);
  if (o.labels == Labels::file && o.label_file.empty())
    check.error("labels", "file needs a label_file");
  if (!o.label_file.empty() && o.labels != Labels::file && o.targets.empty() &&
      !o.columns.read_table())
    check.error("label_file", "is read with labels: file, targets or columns only");
  if (!o.label_file.empty() && !is_table(o.label_file))
    check.error("label_file", o.label_file + " is no .csv, .tsv or .jsonl");
  if (o.labels == Labels::manifest && o.manifest.empty())
    check.error("labels", "manifest needs a manifest");
  else if (o.labels == Labels::manifest && !is_labelled)
    check.error("labels", "a manifest with labels is a .csv, .tsv or .jsonl with the column " +
                              o.label_column + ", not " + o.manifest);
  if (!o.targets.empty() && o.label_file.empty() && !is_labelled)
    check.error("targets", "are columns of label_file or of a manifest (.csv, .tsv or .jsonl)");
  if (!o.label_separator.empty() && o.labels != Labels::file && o.labels != Labels::manifest)
    check.error("label_separator", "is for labels of a table (labels: file or manifest)");
}

}  // namespace

void FileListOptions::check(PlanCheck& check) const {
  for (const std::string& name : split_names)
    if (const std::string problem = split_name_problem(name); !problem.empty())
      check.error("split_names", problem);
  if (splits == Splits::ratio)
    for (const auto& [name, share] : split_ratios.list)
      if (const std::string problem = split_name_problem(name); !problem.empty())
        check.error("split_ratios", problem);
  if (root.empty() && manifest.empty())
    check.error("", "'root' is missing: which folder holds the recordings?");
  if (!manifest.empty() && !exclude.empty())
    check.error("exclude", "a manifest is taken as it stands; leave the files out there");
  check_tables(*this, check);
  if (splits == Splits::manifest && !is_table(manifest))
    check.error("splits", "manifest needs a manifest (.csv, .tsv or .jsonl) with the column split");
  if (splits == Splits::ratio && !split_names.empty())
    check.error("split_names", "with splits: ratio the names are those of split_ratios");
  check_split_group(*this, check);
  check_columns(*this, check);
}

}  // namespace melflow
