// The index of a corpus: path, labels, targets, texts and split of every file, in the order of the
// output. Takes well under 128 bytes a file, plus 4 for each target, and 8 and its length for each
// text that differs from the previous file's.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stages/declared_audio.h"
#include "stages/files/file_state.h"
#include "stages/growing_text.h"

namespace melflow {

/// The facts that a list of files has for every file, known before the file is read.
struct ManifestFields {
  bool has_labels = false, has_splits = false;  ///< true also where it may have them
  std::vector<std::string> columns, targets;    ///< names
};

/// The prefix of the root of items that Python gives, and so of their paths.
inline constexpr std::string_view kPythonScheme = "python:";
/// Returns a root as an absolute path without links, ending in '/'.
std::string whole_root(const std::string& root);

/// One of several sources of a run: its node's name, and the folder to which its paths are
/// relative.
struct CorpusSource {
  std::string name, root;
  friend bool operator==(const CorpusSource&, const CorpusSource&) = default;
};

class Manifest {
 public:
  explicit Manifest(std::string root = "") : root_(std::move(root)) {}
  /// Makes a manifest of several sources.
  explicit Manifest(std::vector<CorpusSource> sources) : sources_(std::move(sources)) {}

  /// The folder to which relative paths are relative; "" for the working folder, and with several
  /// sources.
  [[nodiscard]] const std::string& root() const { return root_; }
  /// The sources where there are several, else empty.
  [[nodiscard]] const std::vector<CorpusSource>& sources() const { return sources_; }
  [[nodiscard]] std::size_t size() const { return names_.size(); }

  /// Adds a folder below the root, "" or ending in '/'; returns its number for add(). `source`: the
  /// index of its source, where there are several.
  std::uint32_t add_folder(std::string_view folder, std::size_t source = 0);
  void add(std::uint32_t folder, std::string_view name);
  /// Gives labels and splits the numbers that they have in these lists, the labels sorted as bytes;
  /// to be called before the first label or split. For a manifest that is a part of another.
  void set_names(const std::vector<std::string>& labels, const std::vector<std::string>& splits);
  /// Marks an entry that is not to be read, such as a folder that cannot be listed, with the
  /// reason.
  void set_problem(std::size_t i, std::string problem) { problems_[i] = std::move(problem); }
  /// Notes what the list says of the entry's recording.
  void set_declared(std::size_t i, const DeclaredAudio& audio);
  void set_label(std::size_t i, std::string_view label);
  /// Sets any number of labels of a file; from then on every file has a set of labels.
  void set_labels(std::size_t i, std::span<const std::string_view> labels);
  /// Names the numbers that every file has; before set_target(). A number that is not set is NaN.
  void set_target_names(std::vector<std::string> names);
  void set_target(std::size_t i, std::size_t target, float value);
  /// Names the texts that every file has; before add(). A text that is not set is "".
  void set_text_names(std::vector<std::string> names) { text_names_ = std::move(names); }
  /// Puts the texts of all files in the order of these names; those of other names come last.
  void order_texts(const std::vector<std::string>& names);
  /// The text must not contain a zero byte.
  void set_text(std::size_t i, std::size_t which, std::string_view text);
  /// The span of an utterance in its recording: from `start` to before `end`, in the unit of
  /// set_span_unit(); without an `end`, to the end of the recording.
  struct Span {
    double start = 0;
    double end = std::numeric_limits<double>::infinity();
    [[nodiscard]] bool has_end() const { return end < std::numeric_limits<double>::infinity(); }
    friend bool operator==(const Span&, const Span&) = default;
  };
  enum class SpanUnit : std::uint8_t { seconds, samples };
  /// Makes every entry an utterance with a span in a recording; before add(). A recording may have
  /// many entries.
  void set_span_unit(SpanUnit unit) { span_unit_ = unit; }
  void set_span(std::size_t i, const Span& span) { spans_[i] = span; }
  /// Reorders utterances once, after the last add() and before order_by_split(): those of a
  /// recording follow each other by start, at the position of its first one. An utterance that
  /// overlaps the one before it by more than most_overlap() is put behind those that do not, and
  /// the recording is read once more for it.
  void order_by_recording();
  /// The largest overlap, in the unit of the spans: 5 s, or the samples of 5 s at 16 kHz.
  [[nodiscard]] double most_overlap() const { return span_unit() == SpanUnit::seconds ? 5 : 80000; }
  static constexpr std::int32_t kMostSplits = 128;
  /// Returns false when there are already kMostSplits other splits.
  [[nodiscard]] bool set_split(std::size_t i, std::string_view split);
  /// Reorders the files once, after the last add(): by split, in their present order within each.
  /// The splits in `first` come first, then the others in the order of their appearance; files
  /// without a split come last.
  void order_by_split(const std::vector<std::string>& first);
  /// Shuffles the recordings; after all other reordering.
  void shuffle(std::uint64_t seed);
  /// The position that the entry had in the list before shuffle().
  [[nodiscard]] std::size_t listed(std::size_t i) const { return listed_.empty() ? i : listed_[i]; }
  /// Notes that all entries are files of a folder: none is in an archive, given by Python, or a
  /// channel.
  void set_all_files(bool are_all) { are_all_files_ = are_all; }
  [[nodiscard]] bool are_all_files() const { return are_all_files_; }
  /// Numbers labels in the order of their names, compared as bytes; to be called once, at the end.
  void close();

  /// Files [first, last) of one split; in order.
  struct SplitRange {
    int split = -1;
    std::size_t first = 0, last = 0;
  };
  [[nodiscard]] std::vector<SplitRange> split_ranges() const;

  /// The path as it was listed: relative to the root, or absolute.
  [[nodiscard]] std::string relative(std::size_t i) const;
  /// The file's folder, and its name in that folder.
  [[nodiscard]] std::string_view folder(std::size_t i) const { return folders_[folder_of_[i]]; }
  [[nodiscard]] std::string_view file_name(std::size_t i) const { return text_.at(names_[i]); }
  /// The index of the entry's source, where there are several.
  [[nodiscard]] std::size_t source_of(std::size_t i) const {
    return sources_.empty() ? 0 : source_of_folder_[folder_of_[i]];
  }
  /// The path for the system, including the root.
  [[nodiscard]] std::string path(std::size_t i) const;
  /// The path that identifies a recording: as it was listed, and with several sources preceded by
  /// the name of its source, `train/talk.wav`.
  [[nodiscard]] std::string recorded_path(std::size_t i) const;
  /// The name that identifies the entry: recorded_path(), and for an utterance its span, as in
  /// `talk.wav#t=12.5,15` (seconds) or `talk.wav#samples=200000,240000`.
  [[nodiscard]] std::string name(std::size_t i) const;
  /// name() without the name of the source.
  [[nodiscard]] std::string name_in_source(std::size_t i) const;
  [[nodiscard]] bool has_spans() const { return span_unit_.has_value(); }
  [[nodiscard]] SpanUnit span_unit() const { return *span_unit_; }
  [[nodiscard]] const Span& span(std::size_t i) const { return spans_[i]; }
  /// The number of entries from `i` on that are utterances of one recording and are cut out of it
  /// in one reading: they are in one split, in the order of their starts, and overlap by
  /// most_overlap() or less. 1 for a whole file, and for an entry that is not to be read.
  [[nodiscard]] std::size_t entries_of_recording(std::size_t i) const;
  /// Whether the entry is cut in the same reading of its recording as the entry before it.
  [[nodiscard]] bool follows_in_recording(std::size_t i) const;
  /// How many times recordings are read: once per entry, or per group of entries_of_recording().
  [[nodiscard]] std::size_t recordings() const;
  /// The reason why the entry is not to be read; "" for none.
  [[nodiscard]] std::string_view problem(std::size_t i) const {
    const auto it = problems_.find(i);
    return it == problems_.end() ? std::string_view() : it->second;
  }
  /// What the list says of the entry's recording.
  [[nodiscard]] DeclaredAudio declared(std::size_t i) const {
    return i < declared_.size() ? declared_[i] : DeclaredAudio{};
  }
  /// The number of the file's label; -1 for none, or where a set has more or fewer than one.
  [[nodiscard]] std::int32_t label(std::size_t i) const;
  [[nodiscard]] bool has_label_sets() const { return !label_sets_.empty(); }
  /// A number that is equal for files with the same labels; -1 for none.
  [[nodiscard]] std::int32_t stratum(std::size_t i) const {
    return has_label_sets() ? labels_[i] - 1 : labels_[i];
  }
  /// The numbers of the file's labels, ascending. Valid until the next set_labels().
  [[nodiscard]] std::span<const std::int32_t> labels(std::size_t i) const;
  [[nodiscard]] float target(std::size_t i, std::size_t target) const {
    return targets_[i * target_names_.size() + target];
  }
  [[nodiscard]] const std::vector<std::string>& target_names() const { return target_names_; }
  [[nodiscard]] std::string_view text(std::size_t i, std::size_t which) const {
    return text_.at(texts_[i * text_names_.size() + which]);
  }
  [[nodiscard]] const std::vector<std::string>& text_names() const { return text_names_; }
  [[nodiscard]] int split(std::size_t i) const { return splits_[i]; }
  [[nodiscard]] const std::vector<std::string>& label_names() const { return label_names_.list; }
  [[nodiscard]] const std::vector<std::string>& split_names() const { return split_names_.list; }
  /// The name of split number `split`; "" for -1.
  [[nodiscard]] std::string split_name(int split) const {
    return split < 0 ? "" : split_names()[static_cast<std::size_t>(split)];
  }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  void reorder(const std::vector<std::size_t>& order);
  [[nodiscard]] bool is_same_recording(std::size_t a, std::size_t b) const;
  [[nodiscard]] std::string with_span(std::string path, std::size_t i) const;

  std::string root_;
  std::vector<CorpusSource> sources_;
  std::vector<std::string> folders_;
  std::vector<std::uint16_t> source_of_folder_;  // only where there are several sources
  std::vector<std::uint64_t> names_;  // where the i-th name begins in text_; it ends in '\0'
  std::vector<std::uint32_t> folder_of_;
  std::vector<std::int32_t> labels_;  // labels, or with label sets the number of the file's set
  std::vector<std::int8_t> splits_;
  std::vector<std::uint32_t> listed_;  // empty: the order of the list
  bool are_all_files_ = false;
  std::optional<SpanUnit> span_unit_;
  std::vector<Span> spans_;              // empty where there is no unit
  std::vector<DeclaredAudio> declared_;  // up to the last entry with any
  std::vector<std::string> target_names_;
  std::vector<float> targets_;  // [files, targets]
  std::vector<std::string> text_names_;
  std::vector<std::uint64_t> texts_;  // [files, texts]: where each begins in text_
  GrowingText text_;                  // all names and texts
  std::map<std::size_t, std::string> problems_;
  struct Names {
    std::vector<std::string> list;
    // Only until close(); the numbers of equal hashes.
    std::unordered_multimap<std::size_t, std::int32_t> numbers;
    std::int32_t number(std::string_view name);
  };
  Names label_names_, split_names_;
  std::vector<std::vector<std::int32_t>> label_sets_;         // empty, or begins with the empty set
  std::map<std::vector<std::int32_t>, std::int32_t> set_of_;  // a set's number; until close()
};

/// The hashes of files' contents (files/content_hash); 0 for a file without one.
struct ContentHashes {
  std::vector<std::uint64_t> of;  ///< [files]
};
/// A source that lists files.
class ManifestSource {
 public:
  virtual ~ManifestSource() = default;
  [[nodiscard]] virtual const Manifest& manifest() const = 0;
  /// Returns the stamp that the file had before it was read.
  [[nodiscard]] virtual FileStamp stamp(std::size_t file) const = 0;
  /// Sets the stamp of a file that is not going to be read; to be called before the run.
  virtual void set_stamp(std::size_t file, const FileStamp& stamp) = 0;
  /// The hashes of contents where files are compared by them, else null.
  [[nodiscard]] virtual ContentHashes* contents() const = 0;
};

struct RunContext;
/// The source of a run as a ManifestSource; null where it lists no files.
ManifestSource* manifest_source(const RunContext& run);

}  // namespace melflow
