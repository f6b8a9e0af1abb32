// The options of file_list that describe a corpus: where its files are, and where their labels and
// splits come from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/options/schema.h"
#include "pipeline/stage/stage.h"
#include "stages/containers/web_limits.h"
#include "stages/corpus/corpus_lists.h"
#include "stages/corpus/joined_table.h"
#include "stages/corpus/split_by_ratio.h"
#include "stages/corpus/table_format.h"
#include "stages/corpus/value_sources.h"
#include "stages/manifest.h"
#include "stages/python/python_options.h"
#include "stages/utterance_rule.h"

namespace melflow {

enum class Splits { automatic, none, top_dir, manifest, ratio };
template <>
struct EnumNames<Splits> {
  static constexpr std::pair<const char*, Splits> values[] = {{"auto", Splits::automatic},
                                                              {"none", Splits::none},
                                                              {"top_dir", Splits::top_dir},
                                                              {"manifest", Splits::manifest},
                                                              {"ratio", Splits::ratio}};
};

/// Whether commands of a wav.scp that do more than read a file are run.
enum class Commands { refuse, allow };
template <>
struct EnumNames<Commands> {
  static constexpr std::pair<const char*, Commands> values[] = {{"refuse", Commands::refuse},
                                                                {"allow", Commands::allow}};
};

/// How to treat folders that cannot be listed: end the run, or count each as one failed file.
enum class ClosedFolders { error, failed };
template <>
struct EnumNames<ClosedFolders> {
  static constexpr std::pair<const char*, ClosedFolders> values[] = {
      {"error", ClosedFolders::error}, {"failed", ClosedFolders::failed}};
};

/// How to treat files for which split_group finds no group.
enum class SplitUnmatched { error, own_group, one_group, no_split };
template <>
struct EnumNames<SplitUnmatched> {
  static constexpr std::pair<const char*, SplitUnmatched> values[] = {
      {"error", SplitUnmatched::error},
      {"own_group", SplitUnmatched::own_group},
      {"one_group", SplitUnmatched::one_group},
      {"no_split", SplitUnmatched::no_split}};
};

/// Whether an update keeps the splits of the earlier output or draws them again.
enum class SplitUpdate { keep, redraw };
template <>
struct EnumNames<SplitUpdate> {
  static constexpr std::pair<const char*, SplitUpdate> values[] = {{"keep", SplitUpdate::keep},
                                                                   {"redraw", SplitUpdate::redraw}};
};

/// How a manifest describes utterances of recordings.
struct UtteranceOptions {
  Manifest::SpanUnit unit = Manifest::SpanUnit::seconds;
  std::optional<UtteranceRule> rule;  ///< without a value: that of the lists

  void describe(Schema& s);
};
template <>
struct EnumNames<Manifest::SpanUnit> {
  static constexpr std::pair<const char*, Manifest::SpanUnit> values[] = {
      {"seconds", Manifest::SpanUnit::seconds}, {"samples", Manifest::SpanUnit::samples}};
};

/// A part of all, above 0 and at most 1: 1%, 0.01.
struct Share {
  double of = 1;
};
template <>
struct OptionType<Share> {
  static std::string name() { return "share (1%)"; }
  static std::string parse(const Value& v, Share& out);
  static Value echo(const Share& v);
};

/// Where the files are.
struct PlaceOptions {
  std::string root;
  std::vector<std::string> include{
      "**/*.wav",  "**/*.flac", "**/*.ogg", "**/*.oga", "**/*.opus", "**/*.mp3",  "**/*.aif",
      "**/*.aiff", "**/*.aifc", "**/*.au",  "**/*.caf", "**/*.w64",  "**/*.rf64", "**/*.sph",
      "**/*.nist", "**/*.snd",  "**/*.voc", "**/*.paf", "**/*.pvf",  "**/*.avr",  "**/*.sf",
      "**/*.8svx", "**/*.svx",  "**/*.mp2", "**/*.m4a", "**/*.aac",  "**/*.wma",  "**/*.webm",
      "**/*.mka",  "**/*.amr",  "**/*.wv",  "**/*.mp4", "**/*.m4b",  "**/*.m4v",  "**/*.mov",
      "**/*.3gp",  "**/*.mkv",  "**/*.wmv", "**/*.ogv", "**/*.spx",  "**/*.ape",  "**/*.tta"};
  std::vector<std::string> exclude;
  bool follow_links = false;
  ClosedFolders closed_folders = ClosedFolders::error;
  std::optional<std::uint64_t> limit;
  std::optional<Share> sample;

  /// `is_scanned`: whether folders are searched.
  void describe(Schema& s, const std::function<bool()>& is_scanned);
  /// The rest, which stored configurations have behind the lists.
  void describe_search(Schema& s, const std::function<bool()>& is_scanned);
};

/// What lists the files in place of a search: lists and tables, or a function of Python.
struct ListOptions {
  CorpusLists manifest;
  Commands commands = Commands::refuse;
  std::string call;
  ValueMap arguments;
  std::optional<WebLimits> web;
  TableFormat table;
  std::optional<UtteranceOptions> utterances;
  bool is_store = false;      ///< the root was a URL, which take_python() has made a call of
  CorpusLists lists_of_call;  ///< data folders of Kaldi that it has made a call of

  /// `has_url`: whether the root is one; `has_cells`: whether there is a table with delimiters.
  void describe(Schema& s, const std::function<bool()>& has_url,
                const std::function<bool()>& has_cells);
};

/// What is known of each file: label, numbers and texts.
struct LabelOptions {
  LabelSource labels;
  std::string label_file;
  std::string label_separator;
  std::vector<std::string> targets;
  TextColumns columns;
  Constants constants;
  std::vector<TableJoin> join;

  void describe(Schema& s);
  /// The names of the texts of every file: of columns, constants and join, in this order.
  [[nodiscard]] std::vector<std::string> text_names() const;
};

/// The splits, and how files are put into them.
struct SplitOptions {
  Splits splits = Splits::automatic;
  std::vector<std::string> split_names;
  SplitShares split_ratios{{{"train", 0.8}, {"val", 0.1}, {"test", 0.1}}};
  std::uint64_t split_seed = 0;
  bool split_stratify = true;
  std::string split_group;
  SplitUnmatched split_unmatched = SplitUnmatched::error;
  SplitUpdate split_update = SplitUpdate::keep;

  void describe(Schema& s, const std::function<bool()>& has_splits);
};

struct FileListOptions : PlaceOptions, ListOptions, LabelOptions, SplitOptions {
  FileListOptions() = default;  // as an aggregate GCC 12 warns of parts that nobody reads
  void describe(Schema& s);
  /// Makes a root that is a URL, or lists whose commands are run, the call of a function of the
  /// Python package that lists it.
  void take_python();
  /// The utterance rule of the library that defines such lists; nothing for lists of several kinds.
  static std::optional<UtteranceRule> rule_of(const CorpusLists& lists);
  [[nodiscard]] UtteranceRule utterance_rule() const;
  /// The folder to which paths are relative; of Python's items "python:NAME", the path of their
  /// container.
  [[nodiscard]] std::string base() const;
  /// The rule of split_group: that of the entry of `columns` with this name, else the option
  /// itself.
  [[nodiscard]] const std::string& group_rule() const;
  /// Whether that list of `manifest` is a table.
  [[nodiscard]] bool is_table_list(const std::string& path) const;
  [[nodiscard]] std::shared_ptr<const ManifestFields> fields() const;
  /// Reports every problem that can be found before any file is read.
  void check(PlanCheck& check) const;
};

}  // namespace melflow
