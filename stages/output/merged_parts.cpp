#include "stages/output/merged_parts.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"
#include "stages/files/unique_fd.h"
#include "stages/files/whole_io.h"
#include "stages/manifest.h"
#include "stages/output/formats/feature_file.h"
#include "stages/output/formats/hdf5.h"
#include "stages/output/rows/row_hash.h"

namespace melflow {
namespace {

// Rows that follow each other in a part and in the output.
struct Piece {
  std::size_t section = 0;
  std::int64_t from = 0, to = 0, count = 0;  // rows
};

Outcome outcome_of(FeatureFile::Status status) {
  switch (status) {
    case FeatureFile::Status::ok:
      return Outcome::ok;
    case FeatureFile::Status::skipped:
      return Outcome::skipped;
    case FeatureFile::Status::failed:
      return Outcome::failed;
    default:
      return Outcome::not_run;
  }
}

class Merge {
 public:
  Merge(const MergedParts& from, const MergeInto& into) : from_(from), into_(into) {}
  void run() {
    on_threads(into_.run.workers, [this] {
      for (std::size_t i = 0; (i = next_.fetch_add(1)) < from_.parts.size();) {
        if (into_.run.is_stopping()) return give_up();
        try {
          take(i);
        } catch (...) {
          give_up();
          throw;
        }
      }
    });
  }

 private:
  void take(std::size_t i);
  void account(const FinishedPart& part, const FeatureFile& file, std::vector<Piece>& pieces);
  void give_up() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    turn_changed_.notify_all();
  }
  [[nodiscard]] UniqueFd open_whole(const FinishedPart& part) const;

  const MergedParts& from_;
  const MergeInto& into_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;  // guards the members below, and all accounts
  std::condition_variable turn_changed_;
  std::size_t turn_ = 0;  // the part whose files are accounted for next
  bool is_over_ = false;
};

// An open part; HDF5 must be used by one thread at a time.
class OpenPart {
 public:
  explicit OpenPart(const std::string& path) {
    const std::lock_guard lock(hdf5_mutex());
    file_ = std::make_unique<const FeatureFile>(path);
  }
  ~OpenPart() {
    const std::lock_guard lock(hdf5_mutex());
    file_.reset();
  }
  OpenPart(const OpenPart&) = delete;
  OpenPart& operator=(const OpenPart&) = delete;
  const FeatureFile* operator->() const { return file_.get(); }
  const FeatureFile& operator*() const { return *file_; }

 private:
  std::unique_ptr<const FeatureFile> file_;
};

[[noreturn]] void refuse(const FinishedPart& part, const std::string& what) {
  const auto job = std::filesystem::path(part.path).parent_path().parent_path();
  throw RunError(fmt::format("{}: {}; {}`melflow work {}` makes it again", part.path, what,
                             ::access(part.path.c_str(), F_OK) == 0 ? "remove it, then " : "",
                             job.string()));
}

UniqueFd Merge::open_whole(const FinishedPart& part) const {
  InputFile file(part.path);
  if (!file.problem().empty()) refuse(part, file.problem());
  UniqueFd fd(file.release());
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0)
    refuse(part, fmt::format("cannot be read: {}", std::strerror(errno)));
  if (static_cast<std::uint64_t>(st.st_size) != part.bytes)
    refuse(part, fmt::format("this file is damaged: it has {} bytes, and its worker wrote {}",
                             st.st_size, part.bytes));
  if (hash_of_file(fd.get(), part.path) != part.hash)
    refuse(part, "this file is damaged: its bytes are not those that its worker wrote");
  return fd;
}

void Merge::take(std::size_t i) {
  const FinishedPart& part = from_.parts[i];
  const UniqueFd fd = open_whole(part);
  std::vector<Piece> pieces;
  std::uint64_t rows_at = 0;
  {
    const OpenPart file(part.path);
    if (file->rows() > 0 && !file->rows_at()) refuse(part, "has rows that are not in one piece");
    rows_at = file->rows_at().value_or(0);
    std::unique_lock lock(mutex_);
    turn_changed_.wait(lock, [&] { return turn_ == i || is_over_; });
    if (is_over_) return;
    account(part, *file, pieces);
    ++turn_;
    turn_changed_.notify_all();
  }
  for (const Piece& piece : pieces) {
    RowPartFile& to = *into_.files[piece.section];
    to.write(
        piece.to, piece.count,
        {fd.get(), rows_at + static_cast<std::uint64_t>(piece.from) * to.row_bytes(), part.path});
  }
}

// Accounts for every file as the run that made the part reported it.
void Merge::account(const FinishedPart& part, const FeatureFile& file, std::vector<Piece>& pieces) {
  ManifestSource& listed = *manifest_source(into_.run);
  Ledger& ledger = into_.run.ledger;
  if (file.files().size() != part.end - part.first)
    refuse(part,
           fmt::format("has {} files in place of {}", file.files().size(), part.end - part.first));
  std::map<std::int64_t, const FeatureFile::Remark*> remarks;
  for (const FeatureFile::Remark& remark : file.remarks()) remarks.emplace(remark.file, &remark);
  for (std::size_t k = 0; k < file.files().size(); ++k) {
    const FeatureFile::Entry& entry = file.files()[k];
    const std::size_t i = part.first + k;
    if (entry.path != listed.manifest().name(i))
      refuse(part, fmt::format("has {} in place of {}", entry.path, listed.manifest().name(i)));
    const std::size_t section = into_.sections.of(i);
    const std::int64_t to = into_.writer.order().total(section);
    const AboutFile about{{entry.sample_rate, std::llround(entry.duration * entry.sample_rate)},
                          entry.results};
    into_.writer.resume(entry.count, entry.rows_hash, about);
    listed.set_stamp(i, entry.stamp);
    if (listed.contents() != nullptr) listed.contents()->of[i] = entry.content;
    const auto remark = remarks.find(static_cast<std::int64_t>(k));
    const bool has_one = remark != remarks.end();
    ledger.close(i, outcome_of(entry.status),
                 has_one ? ledger.stage_number(remark->second->stage) : -1,
                 has_one ? remark->second->reason : "");
    if (entry.count == 0) continue;
    if (!pieces.empty() && pieces.back().section == section &&
        pieces.back().from + pieces.back().count == entry.offset)
      pieces.back().count += entry.count;
    else
      pieces.push_back({section, entry.offset, to, entry.count});
  }
  if (part.sums)
    into_.statistics.add(*part.sums);
  else
    for (std::size_t i = part.first; i < part.end; ++i) into_.statistics.mistake(i);
}

}  // namespace

void merge_parts(const MergedParts& from, const MergeInto& into) { Merge(from, into).run(); }

std::uint64_t hash_of_file(int fd, const std::string& path) {
  struct stat st {};
  if (::fstat(fd, &st) != 0)
    throw RunError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  RowHash hash;
  std::vector<char> piece(1 << 20);
  const auto bytes = static_cast<std::uint64_t>(st.st_size);
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t n = std::min<std::uint64_t>(piece.size(), bytes - at);
    if (const int error = read_whole(fd, piece.data(), n, at))
      throw RunError(fmt::format("{}: cannot be read: {}", path, std::strerror(error)));
    hash.add(piece.data(), n);
    at += n;
  }
  return hash.value();
}

}  // namespace melflow
