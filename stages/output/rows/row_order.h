// Numbers rows in manifest order. Blocks of the first unfinished file, and of its first unfinished
// sub-item where it has several, may be written at once; later ones wait here, within the memory
// budget, until every file before theirs is complete or known to leave no rows. So the output never
// has a gap.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage/item.h"
#include "pipeline/stage/run_context.h"
#include "stages/items.h"

namespace melflow {

/// The facts that an output stores of a file beside its rows.
struct AboutFile : FileAudio {
  /// Where a stage makes several items of the file (SubItem): a JSON list with an entry for each
  /// that has rows, in the order of their rows: {"rows": 98, "number": {"repeat": 1}, "seconds":
  /// [0, 1]}.
  std::string results;
};

/// A part of a file's rows, with the row of the output at which the file begins. While it is held,
/// its file stays open in the ledger and its memory stays charged.
struct PlacedPart {
  std::size_t file = 0;
  std::size_t section = 0;
  std::int64_t file_row = 0;            ///< first row of the file, in the section
  std::int64_t file_rows = -1;          ///< rows of the file, in its completing part; else -1
  std::shared_ptr<const MelPart> part;  ///< null: the file's rows are copied from an earlier output
  Origin origin;
  std::size_t input = 0;  ///< the input that the part came by, where a file's rows come by several
  /// For the sub-item (or the file) whose rows `part` counts: its first row in the file; in its
  /// completing part its number of rows, before the steps that remain (MelPart::pending), else -1.
  std::int64_t begin = 0, rows = -1;

  /// The part's first row, in the section.
  [[nodiscard]] std::int64_t row() const { return file_row + begin + part->first_row; }
  /// Whether the part contains the whole file.
  [[nodiscard]] bool is_whole() const { return part->is_whole() && begin == 0 && file_rows >= 0; }
};

/// Charges only the rows of the batch's parts from now on, since they may wait for those of earlier
/// files. To be called without a lock, before RowOrder::take().
void keep_only_rows(const MelBatch& batch, const ItemContext& context);

/// Not thread-safe: the writer guards it.
class RowOrder {
 public:
  /// `is_void(file)`: whether the file is closed and leaves no rows. `sections`: the first file of
  /// each section, ascending from 0; every section counts its rows from 0. `inputs`: the number of
  /// inputs by each of which all rows of a file come; a file is complete when it is complete by
  /// all, and only the rows of the first input are counted.
  RowOrder(std::size_t files, std::function<bool(std::size_t)> is_void,
           std::vector<std::size_t> sections = {0}, std::size_t inputs = 1);

  // To be called before the first part, for files whose rows are in an earlier output.
  /// Notes that rows [row, row + rows) of the section are the file's, and stay in place.
  void stays(std::size_t file, std::int64_t row, std::int64_t rows, const AboutFile& about);
  /// Notes that the file's rows are to be copied: at its turn it is an entry without a part.
  void taken_over(std::size_t file, std::int64_t rows, const AboutFile& about);
  /// Lets new rows of the section begin at `row`.
  void begin_at(std::size_t section, std::int64_t row);

  /// Notes that an interrupted run wrote the next file's rows, and all before them; to be called
  /// before the first part. `rows` does not count for a file whose rows stay.
  void resume(std::int64_t rows, const AboutFile& about);

  /// Takes a part; appends to `ready` the parts that may be written now, in order.
  void take(std::size_t file, std::shared_ptr<const MelPart> part, Origin origin,
            std::vector<PlacedPart>& ready, std::size_t input = 0);
  /// Notes that a file was closed without rows; parts of it that came before are void.
  void closed(std::size_t file, std::vector<PlacedPart>& ready);

  /// Appends to `ready` entries that became ready without a new part, such as files to be copied.
  void advance(std::vector<PlacedPart>& ready);

  /// The oldest file that is not complete; the number of files when all are.
  [[nodiscard]] std::size_t current() const { return current_; }
  [[nodiscard]] std::int64_t rows(std::size_t file) const { return rows_[file]; }
  /// The first row of each file, in its section.
  [[nodiscard]] std::vector<std::int64_t> offsets() const;
  [[nodiscard]] std::int64_t begin_of(std::size_t section) const { return begins_[section]; }
  [[nodiscard]] bool stays(std::size_t file) const {
    return !kept_.empty() && kept_[file] == Kept::stays;
  }
  /// Whether the file's rows are those of an earlier output.
  [[nodiscard]] bool is_kept(std::size_t file) const {
    return !kept_.empty() && kept_[file] != Kept::no;
  }
  /// Notes that files have sub-items by the plan, so that an output lists them for every file.
  void expect_sub_items() { has_sub_items_ = true; }
  [[nodiscard]] bool has_sub_items() const { return has_sub_items_; }
  [[nodiscard]] const FileAudio& audio(std::size_t file) const { return audio_[file]; }
  [[nodiscard]] const std::string& results(std::size_t file) const {
    static const std::string none;
    const auto it = results_.find(file);
    return it == results_.end() ? none : it->second;
  }
  [[nodiscard]] AboutFile about(std::size_t file) const { return {audio(file), results(file)}; }
  /// The number of rows of all complete files of a section so far.
  [[nodiscard]] std::int64_t total(std::size_t section = 0) const { return totals_[section]; }
  struct Row {
    std::size_t section = 0;
    std::int64_t row = 0;
    friend bool operator==(const Row&, const Row&) = default;
  };
  /// For files that have failed since the last call although rows of theirs were placed: their
  /// first rows. All rows of the section from there on are void.
  [[nodiscard]] std::vector<Row> take_rolled_back() { return std::exchange(rolled_back_, {}); }
  /// Takes out the waiting parts of the current file if another part of it was lost in an earlier
  /// node, so that nothing will complete the file. The caller drops them as those of
  /// take_waiting(). `stage`: the sink's number.
  [[nodiscard]] std::vector<PlacedPart> take_lost(int stage);
  /// Takes out all waiting parts. The caller drops them without holding the writer's mutex, as the
  /// last part of a file closes its record in the ledger, which calls closed().
  [[nodiscard]] std::vector<PlacedPart> take_waiting();
  /// Forgets the rows of a complete file; the caller moves the rows behind it.
  void forget(std::size_t file);

 private:
  void place(PlacedPart in, std::vector<PlacedPart>& ready);
  void next();

  std::function<bool(std::size_t)> is_void_;
  std::size_t current_ = 0;  // oldest file that is not complete
  struct Count {
    std::int64_t rows = 0;       // so far
    std::int64_t expected = -1;  // known once the last block came; blocks may overtake
    std::int64_t finished = 0;   // once all came: after the steps that remain
    // Known then, too: which sub-item it is, and whether it is the file's last one.
    std::shared_ptr<const SubItem> sub_item = nullptr;
    bool is_last = false;
  };
  [[nodiscard]] static std::size_t place_of(const Origin& origin) {
    return origin.sub_item ? origin.sub_item->place : 0;
  }
  std::size_t sub_item_ = 0;    // the current file's oldest one that is not complete
  std::int64_t sub_begin_ = 0;  // the first row of that sub-item in the file
  std::vector<Count> counts_;   // of that sub-item, by input
  enum class Kept : std::uint8_t { no, stays, taken_over };
  void keep(std::size_t file, Kept how, std::int64_t rows, const AboutFile& about);
  void set_about(std::size_t file, const AboutFile& about);
  std::vector<Kept> kept_;                          // by file; empty where none is kept
  std::map<std::size_t, std::int64_t> rows_begin_;  // first rows of the files that stay
  std::vector<std::int64_t> begins_;                // first new rows, by section
  std::vector<std::size_t> sections_;
  std::size_t section_ = 0;  // of the current file
  std::vector<std::int64_t> totals_;
  std::vector<Row> rolled_back_;
  bool has_sub_items_ = false;
  std::vector<std::int64_t> rows_;
  std::vector<FileAudio> audio_;
  std::map<std::size_t, std::string> results_;              // of files that have sub-items
  std::map<std::size_t, std::vector<PlacedPart>> waiting_;  // by file; they have no position yet
};

}  // namespace melflow
