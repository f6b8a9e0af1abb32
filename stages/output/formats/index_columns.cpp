#include "stages/output/formats/index_columns.h"

#include <cstring>
#include <type_traits>
#include <utility>

namespace melflow {
namespace {

using Entry = FeatureData::Entry;

// A column of numbers: `of(index, file)` is the value to write, `in(entry)` refers to the one read.
template <class Of, class In>
IndexColumn number(const char* name, Of of, In in, const char* what) {
  using T = std::remove_cvref_t<std::invoke_result_t<In, Entry&>>;
  return {name, column_type<T>(), what,
          [of](const OutputIndex& x, std::size_t file, char* to) {
            put_bytes(to, static_cast<T>(std::invoke(of, x, file)));
          },
          [in](std::string_view bytes, Entry& to) {
            std::memcpy(&std::invoke(in, to), bytes.data(), sizeof(T));
          }};
}

// Makes a column that outputs may lack.
IndexColumn optional(IndexColumn column, const char* only = "",
                     std::function<bool(const OutputIndex&)> is_wanted = {}) {
  column.is_in_all = false;
  column.only = only;
  column.is_wanted = std::move(is_wanted);
  return column;
}

void put_targets(const OutputIndex& x, std::size_t file, char* to) {
  for (std::size_t t = 0; t < x.manifest.target_names().size(); ++t, to += sizeof(float))
    put_bytes(to, x.target(file, t));
}

void set_targets(std::string_view bytes, Entry& to) {
  to.targets.resize(bytes.size() / sizeof(float));
  std::memcpy(to.targets.data(), bytes.data(), bytes.size());
}

void put_labels(const OutputIndex& x, std::size_t file, char* to) {
  for (const std::int32_t l : x.labels(file)) to[l] = 1;
}

void set_labels(std::string_view bytes, Entry& to) {
  for (std::size_t l = 0; l < bytes.size(); ++l)
    if (bytes[l] != 0) to.labels.push_back(static_cast<std::int32_t>(l));
}

void set_path(std::string_view bytes, Entry& to) { to.path = bytes.substr(0, bytes.find('\0')); }

void set_results(std::string_view bytes, Entry& to) {
  to.results = bytes.substr(0, bytes.find('\0'));
}

IndexColumn measure_column(const MeasureInfo& info) {
  const Measure which = measure_of(info);
  return optional({info.column, ColumnType::float32, info.what,
                   [which](const OutputIndex& x, std::size_t file, char* to) {
                     put_bytes(to, x.measured(file, which));
                   },
                   [which](std::string_view bytes, Entry& to) {
                     if (to.measured == nullptr) to.measured = std::make_shared<MeasureValues>();
                     std::memcpy(&(*to.measured)[which], bytes.data(), sizeof(float));
                   }},
                  "`quality`", [which](const OutputIndex& x) {
                    return x.measures[static_cast<std::size_t>(which)];
                  });
}

std::vector<IndexColumn> all_columns() {
  using X = OutputIndex;
  using Per = IndexColumn::Per;
  std::vector<IndexColumn> columns{
      number("offset", &X::offset, &Entry::offset, "first row of the file"),
      number("count", &X::rows, &Entry::count,
             "rows of the file; 0 for a file that was skipped or failed"),
      number("duration", &X::duration, &Entry::duration,
             "what could be decoded [s]; 0, as `sample_rate`, for a file that left no rows"),
      number(
          "label", &X::label, &Entry::label,
          "index into `/labels/name`, −1 for none, and where files may have several for any number "
          "but one"),
      number("sample_rate", &X::sample_rate, &Entry::sample_rate,
             "of the file itself [Hz], 0 when unknown"),
      number("split", &X::split, &Entry::split, "index into `/splits/name`, −1 for none"),
      number("status", &X::status, &Entry::status,
             "enumeration: ok 0, skipped 1, failed 2, not_run 3"),
      optional(number(
          "size", [](const X& x, std::size_t file) { return x.stamp(file).size; },
          [](Entry & e) -> auto& { return e.stamp.size; },
          "of the file before it was read: its length [bytes], −1 where nobody asked")),
      optional(number(
          "modified", [](const X& x, std::size_t file) { return x.stamp(file).modified; },
          [](Entry & e) -> auto& { return e.stamp.modified; },
          "likewise, its modification time [ns since 1970]")),
      optional(
          number("content", &X::content, &Entry::content,
                 "hash of the file's bytes (XXH3, 64 bits), 0 where it could not be read for it"),
          "`update_by: content`", [](const X& x) { return x.has_contents(); }),
      optional(number("rows_hash", &X::rows_hash, &Entry::rows_hash,
                      "XXH3 (64 bits) of the file's rows as they are stored, in order, before "
                      "compression; 0 where it is not known")),
      optional(
          number(
              "start", [](const X& x, std::size_t file) { return x.span(file).start; },
              &Entry::start,
              "of an utterance in its recording, as the manifest has it: in seconds, or in samples "
              "of the recording (`utterances.unit`)"),
          "`utterances`", [](const X& x) { return x.manifest.has_spans(); }),
      optional(number(
                   "end", [](const X& x, std::size_t file) { return x.span(file).end; },
                   &Entry::end, "likewise, +inf where it is the end of the recording"),
               "`utterances`", [](const X& x) { return x.manifest.has_spans(); }),
      optional(
          {"targets", ColumnType::float32, "`[files, targets]`, NaN where a file has no number",
           put_targets, set_targets, Per::target},
          "`targets`"),
      optional({"labels", ColumnType::uint8, "`[files, labels]`, 1 for each label that a file has",
                put_labels, set_labels, Per::label},
               "several labels a file (`label_separator`, lists in `.jsonl`)",
               [](const X& x) { return x.manifest.has_label_sets(); }),
  };
  for (const MeasureInfo& m : measures()) columns.push_back(measure_column(m));
  columns.insert(columns.end(),
                 {
                     {"path",
                      ColumnType::text,
                      "below the attribute `root` of `/files`, or absolute; with a slash at its "
                      "end a folder that "
                      "could not be listed (`closed_folders: failed`); of an utterance with its "
                      "span after it: "
                      "`talk.flac#t=12.5,15` (seconds), `talk.flac#samples=200000,240000`; without "
                      "an end, as in "
                      "`talk.flac#t=0`, to the end of the recording",
                      {},
                      set_path,
                      Per::file,
                      &X::path},
                     optional({"results",
                               ColumnType::text,
                               "which rows of the file are of which result: a JSON list in the "
                               "order of the rows, such "
                               "as `[{\"rows\": 98, \"number\": {\"repeat\": 0}}, …]`; empty for a "
                               "file that left no "
                               "rows",
                               {},
                               set_results,
                               Per::file,
                               &X::results},
                              "stages that make [several "
                              "results](pipelines.md#several-results-of-a-recording) of a "
                              "recording",
                              [](const X& x) { return x.order.has_sub_items(); }),
                 });
  return columns;
}

}  // namespace

const std::vector<IndexColumn>& index_columns() {
  static const std::vector<IndexColumn> columns = all_columns();
  return columns;
}

std::size_t IndexColumn::values(const OutputIndex& index) const {
  if (is_wanted && !is_wanted(index)) return 0;
  return per == Per::file     ? 1
         : per == Per::target ? index.manifest.target_names().size()
                              : index.manifest.label_names().size();
}

std::size_t IndexColumn::values(const FeatureData& data) const {
  return per == Per::file ? 1 : per == Per::target ? data.targets.size() : data.labels.size();
}

bool IndexColumn::is_needed(const FeatureData& data) const {
  return is_in_all || (per == Per::target && !data.targets.empty());
}

}  // namespace melflow
