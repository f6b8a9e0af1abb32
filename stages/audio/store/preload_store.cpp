#include "stages/audio/store/preload_store.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/base/problem.h"

namespace melflow {
namespace {

constexpr std::size_t kAlignment = 64;    // same as that of buffers
constexpr std::size_t kEntryBytes = 192;  // memory per file besides its samples
constexpr std::size_t kLargestSlab = std::size_t{16} << 20;

struct LoadedPiece {
  std::int64_t start = 0;  // of its first sample in the file
  std::int64_t count = 0;
  const std::byte* data = nullptr;
};

}  // namespace

// Samples in slabs, which live as long as the store, which lives as long as the run.
class LoadedAudio final : public StoredAudio {
 public:
  LoadedAudio(const Info& info, const FileStamp& stamp, std::vector<LoadedPiece> pieces)
      : StoredAudio(info), stamp_(stamp), pieces_(std::move(pieces)) {}

  [[nodiscard]] const FileStamp& stamp() const { return stamp_; }

  [[nodiscard]] bool verify() const override { return true; }
  [[nodiscard]] Samples at(std::int64_t start, std::int64_t most) const override {
    const auto after = std::upper_bound(
        pieces_.begin(), pieces_.end(), start,
        [](std::int64_t place, const LoadedPiece& piece) { return place < piece.start; });
    const LoadedPiece& p = *(after - 1);
    const std::int64_t skip = start - p.start;
    return {nullptr, p.data + static_cast<std::size_t>(skip) * size_of(info().type),
            std::min(most, p.count - skip), info().type};
  }

 private:
  FileStamp stamp_;
  std::vector<LoadedPiece> pieces_;
};

namespace {

std::size_t slab_size(std::size_t limit) {
  return std::clamp(std::bit_floor(limit / 32 + 1), std::size_t{64} << 10, kLargestSlab);
}

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

class PreloadStore::Loading final : public AudioStore::Entry {
 public:
  Loading(PreloadStore& store, std::size_t index) : store_(store), index_(index) {}

  bool add(const Waveform& block) override {
    const Samples& s = block.samples;
    info_ = {s.type, block.sample_rate, info_.count + s.count, block.file};
    if (s.count == 0) return true;
    const std::size_t own = pieces_.empty() ? kEntryBytes : sizeof(LoadedPiece);
    std::byte* to = store_.take(s.bytes() + own);
    if (to == nullptr) return false;
    std::memcpy(to, s.data, s.bytes());
    pieces_.push_back({info_.count - s.count, s.count, to});
    return true;
  }
  void close() override {
    if (pieces_.empty()) return;
    store_.audio_[index_] = std::make_shared<LoadedAudio>(info_, store_.files_listed_.stamp(index_),
                                                          std::move(pieces_));
    if (store_.split_times_ != nullptr) store_.split_times_->loaded(index_);
    const std::lock_guard lock(store_.mutex_);
    ++store_.files_;
    store_.bytes_ += static_cast<std::size_t>(info_.count) * size_of(info_.type);
  }

 private:
  PreloadStore& store_;
  std::size_t index_;
  StoredAudio::Info info_;
  std::vector<LoadedPiece> pieces_;
};

PreloadStore::PreloadStore(RunContext& run, const ManifestSource& files, PreloadOverflow overflow,
                           ExpectedAudio expected)
    : files_listed_(files),
      overflow_(overflow),
      expected_(expected),
      budget_(*run.budget),
      pool_(run.pool),
      audio_(run.source.count()) {}

bool PreloadStore::begin_filling(Filling& filling) {
  filling_ = &filling;
  if (!files_listed_.manifest().split_names().empty()) {
    split_times_ = std::make_unique<SplitTimes>(files_listed_.manifest());
    split_times_->begin();
  }
  limit_ = filling.memory;
  slab_size_ = slab_size(limit_);
  if (overflow_ == PreloadOverflow::refuse) check_expected();
  return true;
}

// Estimates from the headers of some files may be off by half; the headers of all files suffice.
void PreloadStore::check_expected() const {
  if (expected_.bytes / (expected_.is_exact ? 1 : 2) <= limit_) return;
  throw RunError(fmt::format(
      "feed: preload: the decoded audio does not fit into memory: by the headers of {} of {} files "
      "all of them take {}{:.0f} MiB, and memory.host leaves {:.1f} MiB for it{}",
      expected_.files, audio_.size(), expected_.is_exact ? "" : "about ",
      mebibytes(expected_.bytes), mebibytes(limit_), advice(mebibytes(expected_.bytes))));
}

// `all`: the memory of all recordings [MiB]; 0: not known. The advice keeps what the pipeline
// itself needs of memory.host.
std::string PreloadStore::advice(double all) const {
  constexpr double kInSlabs = 1.2;  // the ends of slabs stay empty
  const double host = mebibytes(budget_.capacity()) - mebibytes(limit_) + kInSlabs * all;
  return fmt::format(
      "; raise memory.host{}, load what fits (preload_overflow: stream), or take feed: stream or "
      "cache",
      all > 0 ? fmt::format(" to {:.0f}MiB", std::ceil(host)) : "");
}

std::shared_ptr<const StoredAudio> PreloadStore::find(std::size_t index, const FileStamp& stamp) {
  if (!is_filled_ || !audio_[index] || !(audio_[index]->stamp() == stamp)) return nullptr;
  return audio_[index];
}

std::unique_ptr<AudioStore::Entry> PreloadStore::begin(std::size_t index, RunContext& /*run*/) {
  if (is_full_ || is_filled_) return nullptr;
  return std::make_unique<Loading>(*this, index);
}

std::byte* PreloadStore::take(std::size_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  {
    const std::lock_guard lock(mutex_);
    const auto left = static_cast<std::size_t>(free_end_ - free_begin_);
    if (bytes > left && bytes > slab_size_ / 4) {  // would waste too much of a slab
      if (add_slab(bytes)) return slabs_.back().data();
    } else if (bytes <= left || add_slab(slab_size_)) {
      if (bytes > left) {
        free_begin_ = slabs_.back().data();
        free_end_ = free_begin_ + slabs_.back().size();
      }
      return std::exchange(free_begin_, free_begin_ + bytes);
    }
    if (overflow_ == PreloadOverflow::refuse) throw RunError(refusal());
  }
  if (!is_full_.exchange(true)) filling_->end();
  return nullptr;
}

bool PreloadStore::add_slab(std::size_t bytes) {
  const std::size_t need = BufferPool::rounded(bytes);
  if (need > limit_ - taken_) return false;
  auto reservation = Reservation::try_make(budget_, need, Claim::later);
  if (!reservation) return false;
  slabs_.push_back(pool_.lease(bytes));
  // Page faults are the main cost of loading besides decoding (measured).
  madvise(slabs_.back().data(), slabs_.back().size(), MADV_HUGEPAGE);
  reservations_.push_back(std::move(reservation));
  taken_ += need;
  return true;
}

std::string PreloadStore::refusal() const {
  const std::size_t all = audio_.size();
  std::string text = fmt::format(
      "feed: preload: the decoded audio does not fit into memory: {} of {} files fill "
      "the {:.1f} MiB that memory.host leaves for it",
      files_, all, mebibytes(limit_));
  const double of_all =
      files_ > 0 ? mebibytes(taken_) * static_cast<double>(all) / static_cast<double>(files_) : 0;
  if (files_ > 0) text += fmt::format(", all of them may take {:.0f} MiB", of_all);
  return text + advice(of_all);
}

void PreloadStore::filled() {
  is_filled_ = true;
  filling_ = nullptr;
}

std::vector<std::pair<std::string, Value>> PreloadStore::summary() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, Value>> out{
      {"preloaded_files", Value::scalar(std::to_string(files_))},
      {"preloaded_bytes", Value::scalar(std::to_string(bytes_))}};
  if (expected_.bytes > 0)
    out.emplace_back("expected_bytes", Value::scalar(std::to_string(expected_.bytes)));
  out.emplace_back("overflow", Value::scalar(is_full_ ? "true" : "false"));
  if (split_times_ == nullptr) return out;
  const Manifest& manifest = files_listed_.manifest();
  const std::vector<Manifest::SplitRange> ranges = manifest.split_ranges();
  const std::vector<SplitTimes::Times> times = split_times_->all(ranges);
  std::vector<Value> splits;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (times[i].files == 0) continue;
    Value split = Value::map({});
    const bool has_name = ranges[i].split >= 0;
    split.set("name",
              has_name ? Value::scalar(manifest.split_name(ranges[i].split), {}, true) : Value());
    split.set("preloaded_files", Value::scalar(std::to_string(times[i].files)));
    split.set("loading_seconds", Value::scalar(fmt::format("{:.6f}", times[i].seconds)));
    splits.push_back(std::move(split));
  }
  out.emplace_back("splits", Value::list(std::move(splits)));
  return out;
}

}  // namespace melflow
