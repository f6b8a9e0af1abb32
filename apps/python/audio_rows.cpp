#include "apps/python/audio_rows.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "stages/containers/container.h"

namespace melflow {
namespace {

constexpr const char* kIsOther = "has changed since it was indexed";
// The default size of decoded blocks: small, so that decoding can stop soon after the last wanted
// row, and a block stays in the caches from stage to stage.
constexpr const char* kBlock = "128KiB";

Plan plan_of(const std::string& name, const std::string& text, const LoadOptions& options) {
  return text.empty() ? load_plan(name, options) : load_plan_text(text, name, options);
}

std::unique_ptr<StageChain> chain_of(const std::string& name, const std::string& text,
                                     LoadOptions options) {
  check_process();
  Plan plan = plan_of(name, text, options);
  const std::size_t given = options.sets.size();
  for (const PlanNode& n : plan.nodes)
    if (n.info->name == "decode" && n.name == n.written && n.options.find("block") == nullptr)
      options.sets.push_back({n.name + ".block", kBlock});
  if (options.sets.size() > given) plan = plan_of(name, text, options);
  return std::make_unique<StageChain>(std::move(plan), name, StageChain::Input::listed);
}

}  // namespace

// The recordings that supply the rows of a batch.
struct AudioRows::Fetched final : Scratch {
  std::unordered_map<std::size_t, RecordingStore::Rows> recordings;
};

AudioRows::AudioRows(const std::string& name, const std::string& text, const LoadOptions& options,
                     std::uint64_t store, int workers)
    : AudioRows(chain_of(name, text, options), name, store, workers) {}

AudioRows::AudioRows(std::unique_ptr<StageChain> chain, const std::string& name,
                     std::uint64_t store, int workers)
    : RowReader(chain->type(), chain->row_shape()),
      chain_(std::move(chain)),
      store_(store, workers, [this](std::size_t first) { return make(first); }) {
  StageRunner& source = chain_->source();
  files_ = dynamic_cast<ManifestSource*>(&source.stage());
  if (files_ == nullptr)
    throw RunError(name + ": training needs a pipeline with a list of files (file_list)");
  chain_->start_source();
  source_ = &source.source();
  remarks_ = chain_->warnings();
  for (const std::string& warning : source.run_warnings()) remarks_.push_back(warning);
  for (std::size_t first = 0; first < manifest().size(); first = firsts_.size())
    firsts_.insert(firsts_.end(), count_from(first), first);
}

void AudioRows::place(std::vector<std::int64_t> counts, std::vector<FileStamp> stamps,
                      std::vector<bool> by_header) {
  if (counts.size() != manifest().size() || stamps.size() != counts.size() ||
      by_header.size() != counts.size())
    throw std::invalid_argument("an index of another list");
  std::uint64_t end = 0;
  ends_.clear();
  for (const std::int64_t n : counts) ends_.push_back(end += static_cast<std::uint64_t>(n));
  stamps_ = std::move(stamps);
  by_header_ = std::move(by_header);
}

std::size_t AudioRows::entry_of(std::uint64_t row) const {
  return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) -
                                  ends_.begin());
}

SourceItem AudioRows::item(std::size_t first) const {
  std::unique_lock lock(source_mutex_, std::defer_lock);
  if (manifest().has_spans()) lock.lock();
  return source_->item(first);
}

RecordingStore::Rows AudioRows::make(std::size_t first, std::int64_t begin,
                                     std::int64_t end) const {
  check_process();
  auto file = std::static_pointer_cast<const FileRef>(item(first).payload);
  const std::string path = file->path;
  auto made = std::make_shared<StageChain::Recording>();
  if (chain_->cuts())
    *made = chain_->recording(std::move(file), manifest(), first, count_from(first));
  else
    made->push_back(chain_->rows(std::move(file), count_of(first), begin, end));
  check(first, path, *made);
  StageChain::Rows& rows = made->front();
  if (rows.entry.outcome == Outcome::ok && !rows.is_whole && !rows.has(begin, end - begin))
    rows.entry = {Outcome::failed, "", kIsOther};
  return made;
}

RecordingStore::Coming AudioRows::some_rows_of(const Wanted& wanted) const {
  if (chain_->cuts() || wanted.end * 10 > count_of(wanted.first) * 9 || by_header_[wanted.first] ||
      store_.has(wanted.first))
    return store_.get(wanted.first);
  return store_.compute([this, wanted] { return make(wanted.first, wanted.begin, wanted.end); });
}

// Fails rows that do not match the index: another file stamp, or another number of rows.
void AudioRows::check(std::size_t first, const std::string& path,
                      StageChain::Recording& made) const {
  if (stamps_.empty()) return;
  const bool is_same = stamp_of(path) == stamps_[first];
  for (std::size_t i = 0; i < made.size(); ++i) {
    StageChain::Rows& rows = made[i];
    if (rows.entry.outcome != Outcome::ok) continue;
    if (!is_same)
      rows.entry = {Outcome::failed, "", kIsOther};
    else if (rows.is_whole && rows.count != count_of(first + i))
      rows.entry = {
          Outcome::failed, "",
          fmt::format("has {} rows, but its header said {}; scan=True counts what recordings have",
                      rows.count, count_of(first + i))};
  }
}

std::vector<AudioRows::Measured> AudioRows::measure(std::size_t first) const {
  std::vector<Measured> out;
  const RecordingStore::Rows all = store_.get(first).get();
  for (const StageChain::Rows& rows : *all) {
    const bool is_ok = rows.entry.outcome == Outcome::ok;
    out.push_back({rows.entry, is_ok ? rows.count : 0});
  }
  return out;
}

std::optional<std::int64_t> AudioRows::count_by_header(std::size_t first) const {
  check_process();
  return chain_->count_by_header(*std::static_pointer_cast<const FileRef>(item(first).payload));
}

std::unique_ptr<RowReader::Scratch> AudioRows::scratch() const {
  return std::make_unique<Fetched>();
}

std::vector<std::size_t> AudioRows::fetch(std::span<const Range> ranges, Scratch& scratch,
                                          bool is_urgent) const {
  auto& recordings = static_cast<Fetched&>(scratch).recordings;
  std::vector<Wanted> wanted;
  std::unordered_map<std::size_t, std::size_t> places;  // first entry -> index in `wanted`
  for (const Range& r : ranges) {
    const std::size_t first = firsts_[entry_of(r.first)];
    const auto begin = static_cast<std::int64_t>(r.first - begin_of(first));
    const std::int64_t end = begin + static_cast<std::int64_t>(r.count);
    const auto [it, is_new] = recordings.try_emplace(first);
    if (is_new) {
      places[first] = wanted.size();
      wanted.push_back({first, begin, end, &it->second});
    } else if (const auto at = places.find(first); at != places.end()) {
      Wanted& w = wanted[at->second];
      w.begin = std::min(w.begin, begin);
      w.end = std::max(w.end, end);
    }
  }
  std::vector<RecordingStore::Coming> coming;
  for (const Wanted& w : wanted)
    coming.push_back(is_urgent ? some_rows_of(w) : store_.get(w.first));
  for (std::size_t i = 0; i < wanted.size(); ++i) *wanted[i].to = coming[i].get();
  std::vector<std::size_t> lost;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::size_t at = entry_of(ranges[i].first);
    const Ledger::Entry& entry = (*recordings[firsts_[at]])[at - firsts_[at]].entry;
    if (entry.outcome == Outcome::ok) continue;
    lost.push_back(i);
    const std::lock_guard lock(mutex_);
    losses_.emplace(
        at, entry.stage.empty() ? entry.reason : fmt::format("{}: {}", entry.stage, entry.reason));
    last_loss_ = fmt::format("{}: {}", manifest().name(at), losses_[at]);
  }
  return lost;
}

void AudioRows::prefetch(std::span<const Range> ranges) const {
  for (const Range& r : ranges) store_.prefetch(firsts_[entry_of(r.first)]);
}

void AudioRows::drop(Scratch& scratch) const { static_cast<Fetched&>(scratch).recordings.clear(); }

std::string AudioRows::last_loss() const {
  const std::lock_guard lock(mutex_);
  return last_loss_;
}

std::map<std::size_t, std::string> AudioRows::losses() const {
  const std::lock_guard lock(mutex_);
  return losses_;
}

void AudioRows::read(const Range& rows, std::byte* to, Scratch& scratch) const {
  auto& recordings = static_cast<Fetched&>(scratch).recordings;
  std::uint64_t at = rows.first;
  const std::uint64_t end = rows.first + rows.count;
  if (ends_.empty() || end > ends_.back())
    throw RunError(fmt::format("rows {} to {} are asked for, there are {}", at, end,
                               ends_.empty() ? 0 : ends_.back()));
  for (std::size_t entry = entry_of(at); at < end; ++entry) {
    if (ends_[entry] <= at) continue;
    RecordingStore::Rows& all = recordings[firsts_[entry]];
    const std::size_t part = entry - firsts_[entry];
    const std::uint64_t n = std::min(end, ends_[entry]) - at;
    const auto begin = static_cast<std::int64_t>(at - begin_of(entry));
    if (!all || ((*all)[part].entry.outcome == Outcome::ok &&
                 !(*all)[part].has(begin, static_cast<std::int64_t>(n))))
      all = store_.get(firsts_[entry]).get();
    const StageChain::Rows& has = (*all)[part];
    if (has.entry.outcome != Outcome::ok)
      throw RunError(fmt::format("{}: {}", manifest().name(entry), has.entry.reason));
    const auto place = static_cast<std::uint64_t>(begin - has.first);
    copy(to, has.values.data() + place * row_bytes(), n * row_bytes(), scratch);
    to += n * row_bytes();
    at += n;
  }
}

}  // namespace melflow
