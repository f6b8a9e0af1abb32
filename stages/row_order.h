// Gives out row numbers in manifest order. Blocks of the oldest unfinished file may be written at
// once; blocks of later files wait here, within the memory budget, until every file before theirs
// is complete or known to leave no rows. So there is never a hole to fill.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "pipeline/item.h"
#include "stages/items.h"

namespace melflow {

/// A part with the row of the output that its file begins at. Holding it keeps its file open in the
/// ledger and its memory charged.
struct PlacedPart {
  std::size_t file = 0;
  std::size_t section = 0;
  std::int64_t file_row = 0;  ///< in the section
  std::int64_t file_rows = -1;  ///< of the whole file, with the part that makes it complete
  std::shared_ptr<const MelPart> part;
  Origin origin;
};

/// Not thread-safe: the writer guards it.
class RowOrder {
 public:
  /// `is_void(file)`: the file is closed and leaves no rows. `sections`: the first file of each
  /// section, ascending from 0; every section counts its rows from 0.
  RowOrder(std::size_t files, std::function<bool(std::size_t)> is_void,
           std::vector<std::size_t> sections = {0});

  /// Takes a part; appends to `ready` what may be written now, in order.
  void take(std::size_t file, std::shared_ptr<const MelPart> part, Origin origin,
            std::vector<PlacedPart>& ready);
  /// A file was closed without rows, whatever it gave before.
  void closed(std::size_t file, std::vector<PlacedPart>& ready);

  [[nodiscard]] std::int64_t rows(std::size_t file) const { return rows_[file]; }
  [[nodiscard]] const FileAudio& audio(std::size_t file) const { return audio_[file]; }
  /// Rows of all complete files of a section so far.
  [[nodiscard]] std::int64_t total(std::size_t section = 0) const { return totals_[section]; }
  struct Row {
    std::size_t section = 0;
    std::int64_t row = 0;
    friend bool operator==(const Row&, const Row&) = default;
  };
  /// The first rows of files that were given rows and then closed without them, since the last call:
  /// the rows of the section from there on are void.
  [[nodiscard]] std::vector<Row> take_rolled_back() { return std::exchange(rolled_back_, {}); }
  /// Parts that wait, taken out for the caller to drop: the last piece of a file closes its line in
  /// the ledger, which comes back here through closed().
  [[nodiscard]] std::vector<PlacedPart> take_waiting();
  /// Forgets the rows of a complete file; the caller moves the rows behind it.
  void forget(std::size_t file);

 private:
  void place(std::shared_ptr<const MelPart> part, Origin origin, std::vector<PlacedPart>& ready);
  void next();
  void advance(std::vector<PlacedPart>& ready);

  struct Waiting {
    std::shared_ptr<const MelPart> part;
    Origin origin;
  };
  std::function<bool(std::size_t)> is_void_;
  std::size_t current_ = 0;             // oldest file that is not complete
  std::int64_t current_rows_ = 0;       // of it, so far
  std::int64_t current_expected_ = -1;  // of it, once its last block came; blocks may overtake
  std::vector<std::size_t> sections_;
  std::size_t section_ = 0;  // of the current file
  std::vector<std::int64_t> totals_;
  std::vector<Row> rolled_back_;
  std::vector<std::int64_t> rows_;
  std::vector<FileAudio> audio_;
  std::map<std::size_t, std::vector<Waiting>> waiting_;
};

}  // namespace melflow
