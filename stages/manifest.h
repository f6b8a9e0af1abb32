// The index of a corpus: path, labels, targets, texts and split of every file, in the order of the
// output, in well under 128 bytes a file (and 4 more for each target, 8 and its length for each
// text that is not the file's before).
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

namespace melflow {

/// Which facts a list of files has of every file, known before it is read.
struct ManifestFields {
  bool has_labels = false, has_splits = false;  ///< or may have them
  std::vector<std::string> columns, targets;    ///< names
};

/// A root as an absolute path without links, with a '/' at its end.
std::string whole_root(const std::string& root);

/// One of several sources of a run: the name of its node, and the folder to which its paths are
/// relative.
struct CorpusSource {
  std::string name, root;
  friend bool operator==(const CorpusSource&, const CorpusSource&) = default;
};

class Manifest {
 public:
  explicit Manifest(std::string root = "") : root_(std::move(root)) {}
  /// Of several sources.
  explicit Manifest(std::vector<CorpusSource> sources) : sources_(std::move(sources)) {}

  /// The folder to which relative paths are relative; "" for the working folder, and with several
  /// sources.
  [[nodiscard]] const std::string& root() const { return root_; }
  /// Several, or none.
  [[nodiscard]] const std::vector<CorpusSource>& sources() const { return sources_; }
  [[nodiscard]] std::size_t size() const { return names_.size(); }

  /// Adds a folder below the root, "" or ending in '/'; returns its number for add(). `source`:
  /// which of several it is of.
  std::uint32_t add_folder(std::string_view folder, std::size_t source = 0);
  void add(std::uint32_t folder, std::string_view name);
  /// Gives labels and splits the numbers that they have in these lists, the labels sorted as bytes;
  /// before the first of either. For a manifest that is a part of another.
  void set_names(const std::vector<std::string>& labels, const std::vector<std::string>& splits);
  /// Marks an entry that is not to be read, such as a folder that cannot be listed, with the
  /// reason.
  void set_problem(std::size_t i, std::string problem) { problems_[i] = std::move(problem); }
  void set_label(std::size_t i, std::string_view label);
  /// Sets any number of labels; from then on every file has a set of labels.
  void set_labels(std::size_t i, std::span<const std::string_view> labels);
  /// Names of the numbers that every file has; before set_target(). Without a value it is NaN.
  void set_target_names(std::vector<std::string> names);
  void set_target(std::size_t i, std::size_t target, float value);
  /// Names of the texts that every file has; before add(). Without one it is "".
  void set_text_names(std::vector<std::string> names) { text_names_ = std::move(names); }
  /// A text has no zero byte.
  void set_text(std::size_t i, std::size_t which, std::string_view text);
  /// The part of a recording that an utterance is: from `start` to before `end`, in the unit of
  /// set_span_unit(); without an `end`, to the end of the recording.
  struct Span {
    double start = 0;
    double end = std::numeric_limits<double>::infinity();
    [[nodiscard]] bool has_end() const { return end < std::numeric_limits<double>::infinity(); }
    friend bool operator==(const Span&, const Span&) = default;
  };
  enum class SpanUnit : std::uint8_t { seconds, samples };
  /// Makes every entry an utterance of a recording, with a span; before add(). Entries of one
  /// recording may be many.
  void set_span_unit(SpanUnit unit) { span_unit_ = unit; }
  void set_span(std::size_t i, const Span& span) { spans_[i] = span; }
  /// Reorders utterances once, after the last add() and before order_by_split(): those of a
  /// recording follow each other, in the order of their starts, where the first of them is now. One
  /// that overlaps with the one before it by more than most_overlap() comes behind those that do
  /// not, and the recording is read once more for it.
  void order_by_recording();
  /// In the unit of the spans: 5 s, or as many samples as these have at 16 kHz.
  [[nodiscard]] double most_overlap() const { return span_unit() == SpanUnit::seconds ? 5 : 80000; }
  static constexpr std::int32_t kMostSplits = 128;
  /// False when there are kMostSplits others already.
  [[nodiscard]] bool set_split(std::size_t i, std::string_view split);
  /// Reorders the files once, after the last add(): by split, in their present order within each.
  /// The splits in `first` come first, then the others in the order of their appearance; files
  /// without a split come last.
  void order_by_split(const std::vector<std::string>& first);
  /// Reorders recordings by chance; after all else.
  void shuffle(std::uint64_t seed);
  /// The place that the entry had in the list before shuffle().
  [[nodiscard]] std::size_t listed(std::size_t i) const { return listed_.empty() ? i : listed_[i]; }
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
  /// Its folder and its name in it.
  [[nodiscard]] std::string_view folder(std::size_t i) const { return folders_[folder_of_[i]]; }
  [[nodiscard]] std::string_view file_name(std::size_t i) const {
    return text_.c_str() + names_[i];
  }
  /// Which of several sources it is of.
  [[nodiscard]] std::size_t source_of(std::size_t i) const {
    return sources_.empty() ? 0 : source_of_folder_[folder_of_[i]];
  }
  /// The path for the system, with the root.
  [[nodiscard]] std::string path(std::size_t i) const;
  /// What tells the entry from all others: its path as it was listed; of several sources with the
  /// name of its source before it, `train/talk.wav`.
  [[nodiscard]] std::string recorded_path(std::size_t i) const;
  /// What the entry is called: recorded_path(), and for an utterance its span, as in
  /// `talk.wav#t=12.5,15` (seconds) or `talk.wav#samples=200000,240000`.
  [[nodiscard]] std::string name(std::size_t i) const;
  /// The same without the name of its source.
  [[nodiscard]] std::string name_in_source(std::size_t i) const;
  [[nodiscard]] bool has_spans() const { return span_unit_.has_value(); }
  [[nodiscard]] SpanUnit span_unit() const { return *span_unit_; }
  [[nodiscard]] const Span& span(std::size_t i) const { return spans_[i]; }
  /// How many entries from `i` on are utterances of one recording and are cut out of it as it is
  /// read once: they are in one split, in the order of their starts, and overlap by most_overlap()
  /// or less. 1 where entries are whole files, and of one that is not to be read.
  [[nodiscard]] std::size_t entries_of_recording(std::size_t i) const;
  /// Whether the entry is cut in one go with the one before it.
  [[nodiscard]] bool follows_in_recording(std::size_t i) const;
  /// How many times a recording is read: for each entry, or for those of entries_of_recording().
  [[nodiscard]] std::size_t recordings() const;
  /// The reason why the entry is not to be read; "" for none.
  [[nodiscard]] std::string_view problem(std::size_t i) const {
    const auto it = problems_.find(i);
    return it == problems_.end() ? std::string_view() : it->second;
  }
  /// The number of the file's label; -1 for none, and with sets of labels unless the file has one.
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
    return text_.c_str() + texts_[i * text_names_.size() + which];
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
  std::vector<std::uint16_t> source_of_folder_;  // where there are several sources
  std::vector<std::uint64_t> names_;  // where the i-th name begins in text_; it ends in '\0'
  std::vector<std::uint32_t> folder_of_;
  std::vector<std::int32_t> labels_;  // or which set of them
  std::vector<std::int8_t> splits_;
  std::vector<std::uint32_t> listed_;  // none: as it was listed
  std::optional<SpanUnit> span_unit_;
  std::vector<Span> spans_;  // where there is a unit
  std::vector<std::string> target_names_;
  std::vector<float> targets_;  // [files, targets]
  std::vector<std::string> text_names_;
  std::vector<std::uint64_t> texts_;         // [files, texts]: where each begins in text_, likewise
  std::string text_ = std::string(1, '\0');  // all of it; begins with the empty text
  std::map<std::size_t, std::string> problems_;
  struct Names {
    std::vector<std::string> list;
    std::unordered_map<std::string, std::int32_t> numbers;  // only until close()
    std::int32_t number(std::string_view name);
  };
  Names label_names_, split_names_;
  std::vector<std::vector<std::int32_t>> label_sets_;         // none, or the empty one first
  std::map<std::vector<std::int32_t>, std::int32_t> set_of_;  // its number; until close()
};

/// A service of a run whose recordings come in an order by chance.
struct ListOrder {
  std::uint64_t seed = 0;
};

/// The size and time of a file, by which it counts as the same as before.
struct FileStamp {
  std::int64_t size = -1;      ///< [bytes]; -1: not known
  std::int64_t modified = -1;  ///< [ns] since 1970
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
/// The stamp of the file that is there now, -1 in both members where there is no file; symbolic
/// links are followed. `error` gets the errno where the system cannot tell, else 0.
FileStamp stamp_of(const std::string& path, int* error = nullptr);
/// Whether this errno means that there is no such file, and not that it cannot be reached.
bool is_gone(int error);

/// The hashes of files' contents (files/content_hash); 0 where it was not computed.
struct ContentHashes {
  std::vector<std::uint64_t> of;  ///< [files]
};
/// A source that lists files.
class ManifestSource {
 public:
  virtual ~ManifestSource() = default;
  [[nodiscard]] virtual const Manifest& manifest() const = 0;
  /// The stamp that the file had before it was read.
  [[nodiscard]] virtual FileStamp stamp(std::size_t file) const = 0;
  /// Sets the stamp of a file that is not going to be read; to be called before the run.
  virtual void set_stamp(std::size_t file, const FileStamp& stamp) = 0;
  /// The hashes of contents, where files are compared by these, else null.
  [[nodiscard]] virtual ContentHashes* contents() const = 0;
};

struct RunContext;
/// The source of a run as a ManifestSource; null where it lists no files.
ManifestSource* manifest_source(const RunContext& run);

}  // namespace melflow
