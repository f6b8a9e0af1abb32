// Rows of a corpus, addressed by number and computed from the audio on demand. The entries of its
// list are recordings or utterances; the utterances of one recording are computed together while it
// is decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/calls/stage_chain.h"
#include "apps/python/recording_store.h"
#include "apps/python/row_reader.h"
#include "stages/manifest.h"

namespace melflow {

class AudioRows final : public RowReader {
 public:
  /// Lists the corpus. `text`, `name`: of the pipeline, as in StageChain. `store`: the memory limit
  /// for rows [bytes]; `workers`: computing threads. Throws ConfigError, RunError.
  AudioRows(const std::string& name, const std::string& text, const LoadOptions& options,
            std::uint64_t store, int workers);

  [[nodiscard]] const Manifest& manifest() const { return files_->manifest(); }
  [[nodiscard]] const StageChain& chain() const { return *chain_; }
  [[nodiscard]] const RecordingStore& store() const { return store_; }
  /// Warnings about the list of files.
  [[nodiscard]] const std::vector<std::string>& remarks() const { return remarks_; }

  struct Measured {
    Ledger::Entry entry;
    std::int64_t rows = 0;
  };
  /// For each entry, the first entry that is computed together with it.
  [[nodiscard]] const std::vector<std::size_t>& firsts() const { return firsts_; }
  /// Computes and stores the rows of all entries that are computed together with `first`, and
  /// counts them.
  [[nodiscard]] std::vector<Measured> measure(std::size_t first) const;
  /// Returns the row count of recording `first` by its header; nothing: it has to be measured.
  [[nodiscard]] std::optional<std::int64_t> count_by_header(std::size_t first) const;
  /// Assigns row numbers to all entries, given their row counts. An entry whose file has another
  /// stamp, or that turns out to have another count, is lost. `by_header`: entries whose count
  /// comes from the header, not from measuring. To be called before rows are read.
  void place(std::vector<std::int64_t> counts, std::vector<FileStamp> stamps,
             std::vector<bool> by_header);
  /// Entries that could no longer be read, with the reason.
  [[nodiscard]] std::map<std::size_t, std::string> losses() const;

  [[nodiscard]] std::unique_ptr<Scratch> scratch() const override;
  /// For an urgent request, rows after the last wanted one are not computed and rows before the
  /// first are not kept, unless the number of rows comes from the header.
  [[nodiscard]] std::vector<std::size_t> fetch(std::span<const Range> ranges, Scratch& scratch,
                                               bool is_urgent) const override;
  void drop(Scratch& scratch) const override;
  void prefetch(std::span<const Range> ranges) const override;
  [[nodiscard]] std::string last_loss() const override;
  void read(const Range& rows, std::byte* to, Scratch& scratch) const override;
  [[nodiscard]] bool is_ordered() const override { return false; }

 private:
  struct Fetched;
  AudioRows(std::unique_ptr<StageChain> chain, const std::string& name, std::uint64_t store,
            int workers);
  struct Wanted {
    std::size_t first = 0;
    std::int64_t begin = 0, end = 0;  ///< of the recording's rows
    RecordingStore::Rows* to = nullptr;
  };
  [[nodiscard]] std::size_t count_from(std::size_t first) const {
    return manifest().entries_of_recording(first);
  }
  [[nodiscard]] SourceItem item(std::size_t first) const;
  // Rows outside [begin, end) may be missing, except where the recording is cut into utterances.
  [[nodiscard]] RecordingStore::Rows make(std::size_t first, std::int64_t begin = 0,
                                          std::int64_t end = StageChain::kAll) const;
  [[nodiscard]] RecordingStore::Coming some_rows_of(const Wanted& wanted) const;
  void check(std::size_t first, const std::string& path, StageChain::Recording& made) const;
  [[nodiscard]] std::size_t entry_of(std::uint64_t row) const;
  [[nodiscard]] std::uint64_t begin_of(std::size_t entry) const {
    return entry == 0 ? 0 : ends_[entry - 1];
  }
  // Returns -1 where the count is not known yet.
  [[nodiscard]] std::int64_t count_of(std::size_t entry) const {
    return ends_.empty() ? -1 : static_cast<std::int64_t>(ends_[entry] - begin_of(entry));
  }

  std::unique_ptr<StageChain> chain_;
  ManifestSource* files_ = nullptr;
  SourceStage* source_ = nullptr;
  std::vector<std::string> remarks_;
  std::vector<std::size_t> firsts_;
  std::vector<std::uint64_t> ends_;  // the number after each entry's last row
  std::vector<FileStamp> stamps_;
  std::vector<bool> by_header_;

  mutable std::mutex source_mutex_;  // for a source that emits one item at a time
  mutable std::mutex mutex_;         // guards the next two
  mutable std::map<std::size_t, std::string> losses_;
  mutable std::string last_loss_;
  mutable RecordingStore store_;  // the last one, since its threads use the others
};

}  // namespace melflow
