#include "stages/output/checkpoints.h"

#include <algorithm>
#include <utility>

#include "stages/manifest.h"

namespace melflow {
namespace {

constexpr std::size_t kMostFiles = 16384;  // in a commit

}  // namespace

Checkpoints::Checkpoints(std::unique_ptr<RunJournal> journal, std::size_t committed,
                         const Uses& uses)
    : uses_(uses), journal_(std::move(journal)), committed_(committed) {
  for (const auto& file : uses.files) rows_.push_back(file->first_row());
  std::vector<RowWriter::Written> before;
  uses_.writer.written(0, committed, before);
  for (const RowWriter::Written& w : before) rows_[w.section] += w.rows;
  journal_->append(RunJournal::Begin{RunJournal::boot_now()});
  if (!uses_.sync && !uses_.syncs_begin) return;
  // The next run recognizes the files as melflow's by their first bytes, so these go to disk, too.
  for (const auto& file : uses_.files)
    for (const PartFile* part : file->parts()) part->complete_writes(true);
  journal_->log().sync();
  journal_->log().sync_name();
}

void Checkpoints::closed() {
  if (uses_.writer.bytes_written() - bytes_.load(std::memory_order_relaxed) < uses_.bytes &&
      Clock::now() - last_.load(std::memory_order_relaxed) < kTime)
    return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) commit_all();
}

void Checkpoints::commit() {
  const std::lock_guard lock(mutex_);
  commit_all();
}

void Checkpoints::ending() {
  const std::lock_guard lock(mutex_);
  journal_->append(RunJournal::Ending{});
}

void Checkpoints::complete(std::vector<std::string> hashes) {
  const std::lock_guard lock(mutex_);
  journal_->append(RunJournal::Complete{std::move(hashes)});
  journal_->log().sync();
}

LogFile::Mapped Checkpoints::note_under_way(std::size_t entries) {
  const std::lock_guard lock(mutex_);
  return journal_->append_under_way(entries);
}

std::int64_t Checkpoints::rows() const {
  std::int64_t out = 0;
  for (std::size_t s = 0; s < rows_.size(); ++s) out += rows_[s] - uses_.files[s]->first_row();
  return out;
}

void Checkpoints::commit_all() {
  last_ = Clock::now();
  bytes_ = uses_.writer.bytes_written();
  for (std::vector<RunJournal::File> files; take(files); files.clear()) {
    if (uses_.sync) {
      for (const auto& file : uses_.files) file->complete_writes(true);
    }
    const std::size_t first = std::exchange(committed_, committed_ + files.size());
    journal_->append(RunJournal::Commit{first, std::move(files)});
    if (uses_.sync) journal_->log().sync();
  }
}

// Takes the next files that are done; false where there are none.
bool Checkpoints::take(std::vector<RunJournal::File>& out) {
  if (!uses_.commits) return false;
  // The ledger is asked first: the hash of a file's rows is complete when its record is closed.
  const std::size_t closed = std::max(committed_, uses_.run.ledger.oldest_open());
  written_.clear();
  uses_.writer.written(committed_, std::min(kMostFiles, closed - committed_), written_);
  std::vector<std::int64_t> safe;
  for (const auto& file : uses_.files) safe.push_back(file->safe_rows());
  const ManifestSource* listed = manifest_source(uses_.run);
  std::size_t i = committed_;
  for (const RowWriter::Written& w : written_) {
    if (uses_.run.ledger.outcome(i) == Outcome::not_run ||
        rows_[w.section] + w.rows > safe[w.section])
      break;
    rows_[w.section] += w.rows;
    RunJournal::File file{.name_hash = RunJournal::name_hash(uses_.run.source.name(i), w.section),
                          .in_run = uses_.run.ledger.entry(i),
                          .in_sink = uses_.ledger.own_entry(i),
                          .is_kept = w.is_kept,
                          .rows = w.rows,
                          .rows_hash = w.hash,
                          .about = w.about};
    if (listed != nullptr) file.stamp = listed->stamp(i);
    if (listed != nullptr && listed->contents() != nullptr)
      file.content = listed->contents()->of[i];
    out.push_back(std::move(file));
    ++i;
  }
  return !out.empty();
}

}  // namespace melflow
