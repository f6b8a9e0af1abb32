#include "stages/sink/row_reuse.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "stages/files/content_hash.h"
#include "stages/files/part_file.h"
#include "stages/raii/hdf5.h"

namespace melflow {

std::unique_ptr<RowReuse> RowReuse::open(const std::string& path, const std::string& feature_hash) {
  PartFile::recover(path);
  if (::access(path.c_str(), F_OK) != 0) return nullptr;
  std::unique_ptr<RowReuse> out(new RowReuse(path));
  const FeatureFile& file = *out->file_;
  if (!file.complete())
    throw RunError(path + ": is not complete, so it cannot be updated; remove it");
  if (file.text("feature_hash") != feature_hash)
    throw RunError(
        fmt::format("{}: holds other features than this pipeline makes, so it cannot be "
                    "updated; `melflow compare {} PIPELINE` says what differs. Write "
                    "elsewhere, or build it anew with overwrite: true",
                    path, path));
  return out;
}

RowReuse::RowReuse(const std::string& path) : file_(std::make_unique<FeatureFile>(path)) {}

// Which entry of the earlier output each file has, -1 for none. Both lists are mostly the same and
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
    const std::string path = source.manifest().relative(i);
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

std::vector<RowReuse::Now> RowReuse::look(const ManifestSource& source, std::size_t first,
                                          const std::vector<std::int64_t>& entries,
                                          const RunContext& run) const {
  std::vector<Now> out(entries.size());
  const auto look_at = [&](std::size_t i) {
    if (entries[i] < 0 || run.is_stopping()) return;
    const FeatureFile::Entry& entry = file_->files()[static_cast<std::size_t>(entries[i])];
    if (entry.status != FeatureFile::Status::ok) return;
    const std::string path = source.manifest().path(first + i);
    out[i].stamp = stamp_of(path);
    if (source.contents() != nullptr && entry.content != 0 && out[i].stamp.size == entry.stamp.size)
      out[i].content = content_hash_of(path);
  };
  constexpr std::size_t kStamps = 256;  // hashes take longer, and not all as long
  const std::size_t at_once = source.contents() != nullptr ? 1 : kStamps;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = 0; (i = next.fetch_add(at_once)) < entries.size();)
      for (std::size_t k = i; k < std::min(i + at_once, entries.size()); ++k) look_at(k);
  };
  std::vector<std::future<void>> others;
  for (int w = 1; w < run.workers; ++w) others.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& other : others) other.get();
  return out;
}

void RowReuse::match(ManifestSource& source, std::size_t first, std::size_t last,
                     const RunContext& run) {
  const std::vector<FeatureFile::Entry>& old = file_->files();
  std::unordered_map<std::int64_t, const FeatureFile::Remark*> remarks;
  for (const FeatureFile::Remark& r : file_->remarks()) remarks.emplace(r.file, &r);
  const std::vector<std::int64_t> entries = entries_of(source, first, last);
  const std::vector<Now> now = look(source, first, entries, run);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (now[i].stamp.size < 0) continue;
    const FeatureFile::Entry& entry = old[static_cast<std::size_t>(entries[i])];
    const bool is_same = source.contents() != nullptr
                             ? now[i].content != 0 && now[i].content == entry.content
                             : now[i].stamp == entry.stamp;
    if (!is_same) continue;
    source.set_stamp(first + i, now[i].stamp);
    if (source.contents() != nullptr) source.contents()->of[first + i] = entry.content;
    const auto remark = remarks.find(entries[i]);
    kept_.push_back({first + i,
                     entry.offset,
                     entry.count,
                     {entry.sample_rate, std::llround(entry.duration * entry.sample_rate)},
                     remark == remarks.end() ? nullptr : remark->second});
  }
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
