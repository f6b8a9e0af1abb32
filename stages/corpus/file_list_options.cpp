#include "stages/corpus/file_list_options.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pipeline/base/problem.h"
#include "pipeline/base/secrets.h"
#include "pipeline/plan/plan.h"
#include "stages/corpus/archive_names.h"
#include "stages/corpus/kaldi_folder.h"
#include "stages/corpus/lhotse_manifest.h"
#include "stages/corpus/python_corpus.h"
#include "stages/corpus/table_reader.h"
#include "stages/other_names.h"

namespace melflow {
namespace {

constexpr const char* kScanned = "a folder that is searched (a manifest is taken as it stands)";

}  // namespace

void FileListOptions::describe(Schema& s) {
  s.other_names(other_names::of_file_list());
  s.other_values(other_names::values_of_file_list());
  const auto is_scanned = [this] {
    return (manifest.empty() || !manifest.rest.empty()) && (call.empty() || is_store);
  };
  const auto has_cells = [this] {
    const auto has = [this](const std::string& path) {
      return has_separators(path) || (table.is_given() && !path.empty() && !is_table(path));
    };
    return has(label_file) ||
           std::any_of(manifest.list.begin(), manifest.list.end(),
                       [&](const CorpusLists::List& one) { return has(one.path); });
  };
  PlaceOptions::describe(s, is_scanned);
  ListOptions::describe(
      s, [this] { return is_url(root); }, has_cells);
  PlaceOptions::describe_search(s, is_scanned);
  LabelOptions::describe(s);
  SplitOptions::describe(s, [this] { return fields()->has_splits; });
}

std::string OptionType<Share>::parse(const Value& v, Share& out) {
  CountOrShare read;
  if (!OptionType<CountOrShare>::parse(v, read).empty() || !(read.share.value_or(0) > 0))
    return detail::is_not(v, "a share of the files, above 0 and at most 1, such as 1% or 0.01");
  out.of = *read.share;
  return {};
}
Value OptionType<Share>::echo(const Share& v) {
  CountOrShare share;
  share.share = v.of;
  return OptionType<CountOrShare>::echo(share);
}

void PlaceOptions::describe(Schema& s, const std::function<bool()>& is_scanned) {
  s.field("root", root,
          "folder that is searched, with all folders below it; or archives (.tar, .zip; "
          "train-{000..128}.tar, *.tar); or a URL (s3://bucket/clips), which takes the Python "
          "package; or where relative paths of a manifest start, by default the current folder");
  s.field(
       "include", include,
       "patterns of files to take, compared with the path below root, or without '/' with the name "
       "in any folder: * any part of a name, ? one character, ** any folders. Case does not matter")
      .used_with(kScanned, is_scanned);
  s.field("exclude", exclude,
          "patterns of files and folders to exclude, written as those of include; a folder is "
          "excluded with all that is in it");
}

void PlaceOptions::describe_search(Schema& s, const std::function<bool()>& is_scanned) {
  s.field("follow_links", follow_links, "also searches folders that are symbolic links")
      .used_with(kScanned, is_scanned);
  s.field("closed_folders", closed_folders,
          "how to treat folders that cannot be listed (permissions, a failing disk); error: the "
          "run does not begin; failed: each counts as one failed file. Folders that exclude leaves "
          "out are not affected")
      .used_with(kScanned, is_scanned);
  s.field("limit", limit,
          "takes only the first files of the listing, this many, the same in every run: in the "
          "order of their paths, or of the manifest's lines. A warning says when others are left "
          "out; not set: all files")
      .at_least(1);
  s.field("sample", sample,
          "takes about this share of the files (1%), drawn by their paths below root: the same "
          "ones in every run, whatever files are added; not set: all files");
}

void ListOptions::describe(Schema& s, const std::function<bool()>& has_url,
                           const std::function<bool()>& has_cells) {
  s.field("manifest", manifest,
          "list of files in place of a search, in its order: paths, a table (.csv, .tsv, .jsonl), "
          "a data folder of Kaldi, or a manifest of NeMo or Lhotse; a pattern of lists; or {SPLIT: "
          "LIST} (docs/corpora.md)");
  s.field("commands", commands,
          "what happens to a command in wav.scp (sox a.wav -t wav - |) that stands for no file; "
          "refuse: its recording fails; allow: a shell runs it when the recording is read. Only "
          "for data folders that you trust")
      .used_with("a manifest", [this] { return !manifest.empty() || !call.empty(); });
  s.field("call", call,
          "function of Python, MODULE:NAME or FILE.py:NAME, that gives the recordings: dicts with "
          "`audio` (bytes, an array with `sample_rate`, a path, or a function that gives one), "
          "`path` (the name), `version`, and other columns");
  s.field("arguments", arguments, "arguments of the function, by their names")
      .used_with("call", [this] { return !call.empty(); });
  s.group("web", web, "limits of what is read from http, https and, in part, other URLs")
      .tuning()
      .used_with("call or a root that is a URL",
                 [this, has_url] { return !call.empty() || has_url(); });
  table.describe(s, has_cells);
  s.group("utterances", utterances,
          "makes each line of the manifest an utterance: the part of a recording between its "
          "columns start and end (or duration), with its own label and rows. A recording is read "
          "once for all; {}: in seconds");
}

void LabelOptions::describe(Schema& s) {
  s.field("labels", labels,
          "where labels come from; none; parent_dir: the file's folder; top_dir: the first below "
          "root (or the split's); manifest, file: its column label; an entry of columns; a regular "
          "expression whose ( ) finds it; .cls or .json:KEY");
  s.field("label_file", label_file,
          "table (.csv, .tsv, .jsonl) with a column path, for labels (labels: file), numbers "
          "(targets) and texts (columns)");
  s.field("label_separator", label_separator,
          "text that separates the labels of a file with several, such as '|'; lists in a .jsonl "
          "need none");
  s.field(
      "targets", targets,
      "names of columns whose numbers are stored for every file; columns of label_file, or of the "
      "manifest where there is no label_file");
  s.field("columns", columns,
          "texts that are stored for every file, such as speaker: columns of label_file or the "
          "manifest, [speaker, transcript], or {NAME: SOURCE}: a column, parent_dir, top_dir, a "
          "regular expression with ( ), or a file beside the recording (.txt) (docs/corpora.md)");
  s.field("constants", constants,
          "what all files of this node have: a label, a split or texts of columns, {label: speech, "
          "split: train, corpus: TIMIT}; {source} stands for the name of the node, where there are "
          "several");
  s.field("join", join,
          "second tables about speakers or classes, {table: FILE, on: speaker, columns: {gender: "
          "Gender}} or a list: on: the entry of columns (or label) looked up in the column key, by "
          "default the first; columns, label, split: what is taken (docs/corpora.md)");
}

void SplitOptions::describe(Schema& s, const std::function<bool()>& has_splits) {
  s.field("splits", splits,
          "how files are put into splits; top_dir: by the first folder below root; manifest: by "
          "its column split; ratio: at random, by split_ratios; auto: by that column or the list "
          "of each split, where there are such, else no splits");
  s.field("split_names", split_names,
          "names of the allowed splits, in the order of the output; a file in any other split is "
          "an error before the run begins; not set: any name, those for training first, then "
          "validation and test, then others (docs/pipelines.md)");
  const auto by_ratio = [this] { return splits == Splits::ratio; };
  s.field(
       "split_ratios", split_ratios,
       "names of the splits that splits: ratio makes, and the fraction of the files that each gets")
      .used_with("splits: ratio", by_ratio);
  s.field("split_seed", split_seed,
          "seed of the random assignment by splits: ratio; another seed gives another assignment")
      .at_least(0)
      .used_with("splits: ratio", by_ratio);
  s.field("split_stratify", split_stratify,
          "how splits: ratio assigns files; true: meets the fractions as exactly as whole files "
          "allow, overall and within every label; false: by the path of each alone, so that none "
          "moves when files are added")
      .used_with("splits: ratio", by_ratio);
  s.field("split_group", split_group,
          "groups of files, such as speakers, that splits: ratio keeps in one split (else a "
          "warning counts those in several): an entry of columns, parent_dir, top_dir, a column of "
          "the manifest, or a regular expression whose ( ) finds it")
      .used_with("splits", has_splits);
  s.field("split_unmatched", split_unmatched,
          "how splits: ratio treats files for which split_group finds no group; error: the run "
          "does not begin; own_group: each is a group; one_group: they form one; no_split: they "
          "are in no split")
      .used_with("splits: ratio and split_group",
                 [this] { return splits == Splits::ratio && !split_group.empty(); });
  s.field("split_update", split_update,
          "what an update does with splits: ratio; keep: files stay in their split, and new files "
          "of their groups join them; redraw: all are assigned as in a new run, and a warning "
          "counts those that move")
      .used_with("splits: ratio", by_ratio);
}

std::shared_ptr<const ManifestFields> FileListOptions::fields() const {
  const auto joins = [this](std::string TableJoin::*column) {
    return std::any_of(join.begin(), join.end(),
                       [&](const TableJoin& j) { return !(j.*column).empty(); });
  };
  ManifestFields out{.has_labels = !(labels == Labels::none) || !constants.value("label").empty() ||
                                   joins(&TableJoin::label),
                     .has_splits = (splits == Splits::automatic ? !manifest.empty() || !call.empty()
                                                                : splits != Splits::none) ||
                                   !constants.value("split").empty() || joins(&TableJoin::split),
                     .columns = text_names(),
                     .targets = targets};
  return std::make_shared<const ManifestFields>(std::move(out));
}

void UtteranceOptions::describe(Schema& s) {
  s.other_names(other_names::of_utterances());
  s.other_values(other_names::values_of_utterances());
  s.field(
      "unit", unit,
      "what start, end and duration count: seconds, or samples of the recording at its own rate");
  s.field("rule", rule,
          "how seconds become samples; nearest: start and end are rounded; lhotse: start and "
          "duration are rounded; kaldi: cut off, as by extract-segments, which skips 0.1 s or "
          "less; not set: the rule of the lists' library, else nearest")
      .was("nearest");
}

void FileListOptions::take_python() {
  if (!call.empty()) return;
  if (commands == Commands::allow && !manifest.empty() && manifest.rest.empty()) {
    call = "melflow.kaldi:recordings";
    Value lists = Value::map({});
    for (const CorpusLists::List& one : manifest.list)
      lists.set(one.split, Value::scalar(one.path));
    arguments.map.set("lists", std::move(lists));
    arguments.map.set("root", Value::scalar(std::exchange(root, "")));
    lists_of_call = std::exchange(manifest, {});
    return;
  }
  if (!is_url(root)) return;
  is_store = true;
  call = "melflow.stores:recordings";
  arguments.map.set("root", Value::scalar(std::exchange(root, "")));
}

std::optional<UtteranceRule> FileListOptions::rule_of(const CorpusLists& lists) {
  std::set<UtteranceRule> found;
  try {
    for (const CorpusLists::List& one : lists.files())
      found.insert(KaldiFolder::is_one(one.path) ? UtteranceRule::kaldi
                   : is_json_lines(one.path) && LhotseManifest::is_one(one.path)
                       ? UtteranceRule::lhotse
                       : UtteranceRule::nearest);
  } catch (const RunError&) {  // the listing says so
    return UtteranceRule::nearest;
  }
  if (found.size() > 1) return std::nullopt;
  return found.empty() ? UtteranceRule::nearest : *found.begin();
}

UtteranceRule FileListOptions::utterance_rule() const {
  if (!utterances || utterances->unit != Manifest::SpanUnit::seconds) return UtteranceRule::nearest;
  if (utterances->rule) return *utterances->rule;
  return rule_of(manifest.empty() ? lists_of_call : manifest).value_or(UtteranceRule::nearest);
}

std::string FileListOptions::base() const {
  return call.empty() ? archive_base(root) : PythonCorpus::path_of(call, arguments.map);
}

bool FileListOptions::is_table_list(const std::string& path) const {
  return is_table(path) || (table.is_given() && label_file.empty());
}

std::vector<std::string> LabelOptions::text_names() const {
  std::vector<std::string> out = columns.names();
  for (std::string& name : constants.columns()) out.push_back(std::move(name));
  for (const TableJoin& j : join)
    for (std::string& name : j.columns.names()) out.push_back(std::move(name));
  return out;
}

const std::string& FileListOptions::group_rule() const {
  for (const TextColumns::Column& column : columns.list)
    if (column.name == split_group) return column.rule;
  return split_group;
}

}  // namespace melflow
