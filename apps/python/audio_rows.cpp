#include "apps/python/audio_rows.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
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
  return std::make_unique<StageChain>(std::move(plan), name, StageChain::Input::files);
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
      store_(store),
      workers_(std::make_unique<Workers>(1 + std::max(1, workers))) {
  workers_->start_threads();
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

AudioRows::~AudioRows() {
  const WithoutLockIfHeld free;
  stop();
}

void AudioRows::stop() {
  if (is_forked_off()) {  // a forked process does not have the threads
    static_cast<void>(workers_.release());
    return;
  }
  {
    std::unique_lock lock(mutex_);
    is_stopping_ = true;
    computed_->wait(lock, [this] { return prefetched_.empty() && computing_ == 0; });
  }
  workers_.reset();
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

RecordingStore::Rows AudioRows::make(std::size_t first) const {
  check_process();
  auto file = std::static_pointer_cast<const FileRef>(item(first).payload);
  const std::string path = file->path;
  auto made = std::make_shared<StageChain::Recording>();
  if (chain_->cuts())
    *made = chain_->recording(std::move(file), manifest(), first, count_from(first));
  else
    made->push_back(chain_->rows(std::move(file), count_of(first)));
  check(first, path, *made);
  return made;
}

RecordingStore::Rows AudioRows::some_rows_of(const Wanted& wanted) const {
  check_process();
  if (RecordingStore::Rows there = store_.find(wanted.first)) return there;
  const std::int64_t count = count_of(wanted.first);
  if (chain_->cuts() || wanted.end * 10 > count * 9 || by_header_[wanted.first])
    return rows_of(wanted.first);
  auto file = std::static_pointer_cast<const FileRef>(item(wanted.first).payload);
  const std::string path = file->path;
  auto made = std::make_shared<StageChain::Recording>();
  made->push_back(chain_->rows(std::move(file), count, wanted.begin, wanted.end));
  check(wanted.first, path, *made);
  StageChain::Rows& rows = made->front();
  if (rows.entry.outcome == Outcome::ok && !rows.has(wanted.begin, wanted.end - wanted.begin))
    rows.entry = {Outcome::failed, "", kIsOther};
  return made;
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

RecordingStore::Rows AudioRows::rows_of(std::size_t first) const {
  return store_.get(first, [&] { return make(first); });
}

std::vector<AudioRows::Measured> AudioRows::measure(std::size_t first) const {
  std::vector<Measured> out;
  const RecordingStore::Rows all = rows_of(first);
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
  compute(wanted, is_urgent);
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

bool AudioRows::hold_workers() const {
  const std::lock_guard lock(mutex_);
  if (is_stopping_ || workers_->count() == 1) return false;
  ++computing_;
  return true;
}

void AudioRows::let_go_of_workers() const {
  const std::lock_guard lock(mutex_);
  --computing_;
  computed_->notify_all();
}

// Requests are served in the order of arrival, so later batches do not delay earlier ones.
void AudioRows::compute(const std::vector<Wanted>& wanted, bool is_urgent) const {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t left = wanted.size();
  std::exception_ptr error;
  const auto one = [&](std::size_t i) {
    std::exception_ptr own;
    try {
      *wanted[i].to = is_urgent ? some_rows_of(wanted[i]) : rows_of(wanted[i].first);
    } catch (...) {
      own = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    if (own) error = own;
    if (--left == 0) changed.notify_one();
  };
  const bool has_workers = hold_workers();
  std::vector<std::size_t> own;  // not for the workers: stored already, or being computed
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t first = wanted[i].first;
    if (!has_workers || store_.is_being_made(first) || store_.find(first) != nullptr)
      own.push_back(i);
    else
      workers_->enqueue([&one, i] { one(i); });
  }
  for (const std::size_t i : own) one(i);
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return left == 0; });
  }
  if (has_workers) let_go_of_workers();
  if (error) std::rethrow_exception(error);
}

void AudioRows::prefetch(std::span<const Range> ranges) const {
  for (const Range& r : ranges) {
    const std::size_t first = firsts_[entry_of(r.first)];
    if (store_.find(first) != nullptr || store_.is_being_made(first)) continue;
    const std::lock_guard lock(mutex_);
    if (is_stopping_ || workers_->count() == 1) return;
    if (!prefetched_.insert(first).second) continue;
    workers_->enqueue([this, first] {
      const auto is_over = [this] {
        const std::lock_guard stopping(mutex_);
        return is_stopping_;
      };
      try {
        if (!is_over()) static_cast<void>(rows_of(first));
      } catch (...) {  // the caller that fetches the recording gets the error, too
      }
      const std::lock_guard done(mutex_);
      prefetched_.erase(first);
      computed_->notify_all();
    });
  }
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
      all = rows_of(firsts_[entry]);
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
