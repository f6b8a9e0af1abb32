#include "stages/output/row_reuse.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/base/threads.h"
#include "stages/corpus/update.h"
#include "stages/facts.h"
#include "stages/files/content_hash.h"
#include "stages/files/part_file.h"
#include "stages/output/formats/hdf5.h"

namespace melflow {

std::unique_ptr<RowReuse> RowReuse::open(const std::string& path,
                                         const std::string& feature_fingerprint, bool may_change) {
  PartFile::recover(path, may_change);
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) {
    if (is_gone(errno)) return nullptr;
    throw RunError(
        fmt::format("{}: cannot be read, so it cannot be updated: {}", path, std::strerror(errno)));
  }
  std::unique_ptr<RowReuse> out(new RowReuse(path));
  const FeatureFile& file = *out->file_;
  if (!file.complete())
    throw RunError(path + ": this file is not complete, so it cannot be updated; remove it");
  if (!file.is_index_as_written())
    throw RunError(
        fmt::format("{}: this file is damaged: its index is not what was written, so it "
                    "cannot be updated. Copy it again, or rebuild it with `melflow run` and "
                    "overwrite: true on its sink",
                    path));
  if (file.text("feature_fingerprint") != feature_fingerprint)
    throw RunError(
        fmt::format("{}: holds other features than this pipeline makes, so it cannot be "
                    "updated; `melflow compare {} PIPELINE` says what differs. Write "
                    "elsewhere, or rebuild it with overwrite: true",
                    path, path));
  return out;
}

RowReuse::RowReuse(const std::string& path) : file_(std::make_unique<FeatureFile>(path)) {}

// Returns the earlier output's entry for each file, -1 for none. Both lists are mostly the same and
// in the same order.
std::vector<std::int64_t> RowReuse::entries_of(const ManifestSource& source, std::size_t first,
                                               std::size_t last) const {
  const std::vector<FeatureFile::Entry>& old = file_->files();
  std::unordered_multimap<std::string_view, std::size_t> by_path;
  std::vector<bool> used(old.size(), false);
  std::vector<std::int64_t> out;
  out.reserve(last - first);
  std::size_t next = 0;
  for (std::size_t i = first; i < last; ++i) {
    const std::string path = source.manifest().name(i);
    std::int64_t found = -1;
    if (next < old.size() && !used[next] && old[next].path == path) {
      found = static_cast<std::int64_t>(next);
    } else {
      if (by_path.empty())
        for (std::size_t e = 0; e < old.size(); ++e) by_path.emplace(old[e].path, e);
      const auto [begin, end] = by_path.equal_range(path);
      for (auto it = begin; it != end && found < 0; ++it)
        if (!used[it->second]) found = static_cast<std::int64_t>(it->second);
    }
    if (found >= 0) {
      used[static_cast<std::size_t>(found)] = true;
      next = static_cast<std::size_t>(found) + 1;
    }
    out.push_back(found);
  }
  return out;
}

void RowReuse::look_at(const ManifestSource& source, std::size_t file,
                       const FeatureFile::Entry& entry, Now& now) {
  const std::string path = source.manifest().path(file);
  if (!now.is_seen) now.stamp = stamp_of(path, &now.error);
  now.is_seen = true;
  if (now.is_hashed || source.contents() == nullptr || entry.content == 0 ||
      now.stamp.size != entry.stamp.size || now.error != 0)
    return;
  now.content = content_hash_of(path, &now.error);
  now.is_hashed = true;
}

std::vector<RowReuse::Now> RowReuse::look(const ManifestSource& source, std::size_t first,
                                          const std::vector<std::int64_t>& entries,
                                          const RunContext& run) const {
  std::vector<Now> out(entries.size());
  const auto seen = run.settings.sinks > 1 ? run.services.find_or_make<Seen>() : nullptr;
  if (seen) seen->of.resize(source.manifest().size());
  constexpr std::size_t kStamps = 256;  // files at a time; hashes take longer, and vary
  const std::size_t at_once = source.contents() != nullptr ? 1 : kStamps;
  std::atomic<std::size_t> next{0};
  on_threads(run.workers, [&] {
    for (std::size_t i = 0; (i = next.fetch_add(at_once)) < entries.size();)
      for (std::size_t k = i; k < std::min(i + at_once, entries.size()); ++k) {
        if (entries[k] < 0 || run.is_stopping()) continue;
        const FeatureFile::Entry& entry = file_->files()[static_cast<std::size_t>(entries[k])];
        if (entry.status != FeatureFile::Status::ok && !elsewhere_.contains(entries[k])) continue;
        if (seen) out[k] = seen->of[first + k];
        look_at(source, first + k, entry, out[k]);
        if (seen) seen->of[first + k] = out[k];
      }
  });
  return out;
}

std::vector<RowReuse::Now> RowReuse::as_they_were(const std::vector<std::int64_t>& entries,
                                                  const std::vector<std::size_t>& but) const {
  std::vector<Now> out(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto entry = static_cast<std::size_t>(entries[i]);
    if (entries[i] < 0 || std::binary_search(but.begin(), but.end(), entry)) continue;
    const FeatureFile::Entry& e = file_->files()[entry];
    if (e.status == FeatureFile::Status::ok) out[i] = {.stamp = e.stamp, .content = e.content};
  }
  return out;
}

void RowReuse::match(ManifestSource& source, std::size_t first, std::size_t last,
                     const RunContext& run, bool are_routes_kept) {
  const std::vector<FeatureFile::Entry>& old = file_->files();
  std::unordered_map<std::int64_t, const FeatureFile::Remark*> remarks;
  for (const FeatureFile::Remark& r : file_->remarks()) {
    remarks.emplace(r.file, &r);
    if (are_routes_kept && r.status == FeatureFile::Status::skipped &&
        r.reason.starts_with(kSentElsewhere))
      elsewhere_.emplace(r.file, &r);
  }
  first_ = first;
  entries_ = entries_of(source, first, last);
  const std::vector<std::int64_t>& entries = entries_;
  const auto repair = run.services.find<Repair>();
  const std::vector<Now> now =
      repair ? as_they_were(entries, repair->damaged[path()]) : look(source, first, entries, run);
  found_.assign(old.size(), Found::no);
  std::size_t unreachable = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] < 0) continue;
    const FeatureFile::Entry& entry = old[static_cast<std::size_t>(entries[i])];
    const bool is_hidden = now[i].error != 0 && !is_gone(now[i].error);
    if (is_hidden && unreachable++ == 0)
      unreachable_ =
          fmt::format("{}: {}", source.manifest().path(first + i), std::strerror(now[i].error));
    found_[static_cast<std::size_t>(entries[i])] =
        now[i].stamp.size < 0 && !is_hidden && !repair ? Found::gone : Found::yes;
    if (now[i].stamp.size < 0 && !is_hidden) continue;
    ++looked_at_;
    if (now[i].stamp.size == entry.stamp.size && now[i].stamp != entry.stamp) ++touched_;
    const bool is_same = is_hidden || (source.contents() != nullptr
                                           ? now[i].content != 0 && now[i].content == entry.content
                                           : now[i].stamp == entry.stamp);
    if (!is_same) {
      found_[static_cast<std::size_t>(entries[i])] =
          now[i].stamp.size != entry.stamp.size ? Found::with_another_size
          : source.contents() == nullptr        ? Found::with_another_time
          : entry.content != 0                  ? Found::with_other_content
                                                : Found::without_hash;
      continue;
    }
    source.set_stamp(first + i, is_hidden ? entry.stamp : now[i].stamp);
    if (source.contents() != nullptr) source.contents()->of[first + i] = entry.content;
    if (const auto routed = elsewhere_.find(entries[i]); routed != elsewhere_.end()) {
      routed_.push_back({first + i, routed->second});
      continue;
    }
    const auto remark = remarks.find(entries[i]);
    kept_.push_back(
        {first + i,
         entry.offset,
         entry.count,
         entry.rows_hash,
         {{entry.sample_rate, std::llround(entry.duration * entry.sample_rate)}, entry.results},
         remark == remarks.end() ? nullptr : remark->second});
  }
  if (unreachable > 0)
    unreachable_ = fmt::format("{} of {} files cannot be reached, such as {}", unreachable,
                               entries.size(), unreachable_);
}

std::string RowReuse::why_computed(std::size_t file) const {
  const std::int64_t entry = entries_[file - first_];
  if (entry < 0) return "new";
  const FeatureFile::Status before = file_->files()[static_cast<std::size_t>(entry)].status;
  if (before != FeatureFile::Status::ok) return fmt::format("{} before", to_text(before));
  switch (found_[static_cast<std::size_t>(entry)]) {
    case Found::gone:
      return "not there any more";
    case Found::with_another_size:
      return "changed (size)";
    case Found::with_another_time:
      return "changed (modification time)";
    case Found::with_other_content:
      return "changed (content)";
    case Found::without_hash:
      return "without a hash before";
    default:
      return "changed";
  }
}

std::string RowReuse::renumbered_labels(const std::vector<std::string>& now) const {
  const std::vector<std::string>& before = file_->labels();
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (const std::string& name : now) numbers.emplace(name, numbers.size());
  std::size_t count = 0;
  std::string example;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto at = numbers.find(before[i]);
    if (at == numbers.end() || at->second == i) continue;
    if (count++ == 0)
      example = fmt::format("{}: {} before, {} now", excerpt(before[i]), i, at->second);
  }
  if (count == 0) return {};
  return fmt::format("{} of {} labels have other numbers than before ({})", count, before.size(),
                     example);
}

void RowReuse::add_dropped(const std::function<bool(const std::string& path)>& is_listed,
                           DroppedRows& out) const {
  for (std::size_t e = 0; e < found_.size(); ++e) {
    const FeatureFile::Entry& entry = file_->files()[e];
    if (entry.count == 0) continue;
    ++out.of_files;
    out.of_rows += entry.count;
    if (found_[e] == Found::no ? is_listed(entry.path) : found_[e] != Found::gone) continue;
    out.files.add(entry.path);
    out.rows += entry.count;
  }
}

void RowReuse::visit(const EarlierFiles::Visit& visit) const {
  const std::vector<std::string>& splits = file_->splits();
  for (const FeatureFile::Entry& e : file_->files())
    visit(e.path, e.split >= 0 && static_cast<std::size_t>(e.split) < splits.size()
                      ? std::string_view(splits[static_cast<std::size_t>(e.split)])
                      : std::string_view());
}

bool RowReuse::has_contents() const {
  return std::any_of(file_->files().begin(), file_->files().end(),
                     [](const FeatureFile::Entry& e) { return e.content != 0; });
}

bool RowReuse::has_dead_rows() const {
  std::int64_t living = 0;
  for (const Kept& k : kept_) living += k.rows;
  return living != rows();
}

std::string RowReuse::computed_by() const {
  return file_->text("backend") + " " + file_->text("instruction_set");
}

std::int64_t RowReuse::rows_at() const {
  return file_->rows_at() ? static_cast<std::int64_t>(*file_->rows_at()) : -1;
}

std::vector<float> RowReuse::read(std::int64_t row, std::int64_t count) const {
  const std::lock_guard lock(hdf5_mutex());
  return file_->read_rows(static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(count));
}

}  // namespace melflow
