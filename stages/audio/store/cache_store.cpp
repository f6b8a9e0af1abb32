#include "stages/audio/store/cache_store.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/version.h"
#include "stages/audio/audio_libraries.h"
#include "stages/files/byte_hash.h"

namespace melflow {

CachePlace cache_place(const std::string& folder, const Value& settings) {
  const CacheKey key = cache_key(fmt::format("{} melflow {} {}, with channels", to_json(settings),
                                             kVersion, audio_libraries()));
  return {fmt::format("{}/audio-{:016x}{:016x}.melcache", folder, key.high, key.low), key};
}

FileKeys::FileKeys(const Manifest& manifest) : manifest_(manifest) {
  if (manifest.sources().empty()) roots_.push_back(whole_root(manifest.root()));
  for (const CorpusSource& source : manifest.sources()) roots_.push_back(whole_root(source.root));
}

CacheKey FileKeys::operator()(std::size_t index) const {
  const std::string path = manifest_.relative(index);
  return cache_key(path.starts_with('/') ? path : roots_[manifest_.source_of(index)] + path);
}

// A recording in the mapped file; its blocks point into the mapping.
class CacheStore::Cached final : public StoredAudio {
 public:
  Cached(const Info& info, std::shared_ptr<AudioCacheFile> file, const AudioCacheFile::Entry& entry,
         std::shared_ptr<Verified> verified)
      : StoredAudio(info),
        file_(std::move(file)),
        entry_(entry),
        pieces_(file_->samples(entry)),
        verified_(std::move(verified)) {}

  [[nodiscard]] bool verify() const override {
    const bool is_good = !pieces_.empty() && file_->verify(entry_) && has_whole_samples();
    ++(is_good ? verified_->good : verified_->damaged);
    if (is_good) verified_->good_bytes += entry_.count * size_of(info().type);
    return is_good;
  }

  [[nodiscard]] Samples at(std::int64_t start, std::int64_t most) const override {
    const std::size_t size = size_of(info().type);
    std::size_t skip = static_cast<std::size_t>(start) * size;
    auto piece = pieces_.begin();
    for (; skip >= piece->size(); ++piece) skip -= piece->size();
    const std::int64_t count =
        std::min(most, static_cast<std::int64_t>((piece->size() - skip) / size));
    const std::byte* data = piece->data() + skip;
    const auto release = [file = file_, bytes = static_cast<std::size_t>(count) *
                                                size](const std::byte*) { file->release(bytes); };
    return {std::shared_ptr<const std::byte>(data, release), data, count, info().type};
  }

 private:
  [[nodiscard]] bool has_whole_samples() const {
    return std::all_of(pieces_.begin(), pieces_.end(),
                       [this](const auto& p) { return p.size() % size_of(info().type) == 0; });
  }

  std::shared_ptr<AudioCacheFile> file_;
  AudioCacheFile::Entry entry_;
  std::vector<std::span<const std::byte>> pieces_;
  std::shared_ptr<Verified> verified_;
};

class CacheStore::Adding final : public AudioStore::Entry {
 public:
  Adding(CacheStore& store, RunContext& run, std::size_t index)
      : store_(store), run_(run), index_(index) {}

  bool add(const Waveform& block) override {
    const Samples& s = block.samples;
    entry_.count += s.count;
    entry_.type = static_cast<std::uint16_t>(s.type);
    entry_.sample_rate = block.sample_rate;
    entry_.file_rate = block.file.sample_rate;
    entry_.file_frames = block.file.frames;
    const int channels = block.file.channels;
    entry_.channels = channels <= UINT16_MAX ? static_cast<std::uint16_t>(channels) : 0;
    if (s.count == 0) return true;
    const std::span<const std::byte> bytes{s.data, s.bytes()};
    const auto extent = store_.file_->append(bytes);
    if (!extent) return store_.give_up(run_), false;
    extents_.push_back(*extent);
    sum_.add(bytes.data(), bytes.size());
    return true;
  }

  void close() override {
    if (entry_.count == 0) return;
    entry_.key = store_.keys_(index_);
    entry_.stamp = store_.files_.stamp(index_);
    entry_.checksum = sum_.value();
    if (!store_.file_->add(entry_, extents_)) return store_.give_up(run_);
    ++store_.added_;
    store_.added_bytes_ += entry_.count * size_of(static_cast<SampleType>(entry_.type));
  }

 private:
  CacheStore& store_;
  RunContext& run_;
  std::size_t index_;
  AudioCacheFile::Entry entry_;
  std::vector<AudioCacheFile::Extent> extents_;
  ByteHash sum_;
};

namespace {

std::shared_ptr<AudioCacheFile> open_cache(const CachePlace& place, AudioCacheFile::Access access) {
  std::error_code ignored;  // opening the file reports it
  if (access == AudioCacheFile::Access::read_write)
    std::filesystem::create_directories(std::filesystem::path(place.path).parent_path(), ignored);
  return std::make_shared<AudioCacheFile>(place.path, place.key, access);
}

}  // namespace

CacheStore::CacheStore(RunContext& run, const ManifestSource& files, const CachePlace& place,
                       AudioCacheFile::Access access)
    : file_(open_cache(place, access)),
      keys_(files.manifest()),
      files_(files),
      takes_more_(file_->is_writer()),
      verified_(std::make_shared<Verified>()) {
  if (!file_->note().empty())
    run.warn(fmt::format("{}: {}{}", file_->path(), file_->note(),
                         takes_more_ ? "" : "; what is not in it is decoded and not stored"));
}

std::shared_ptr<const StoredAudio> CacheStore::find(std::size_t index, const FileStamp& stamp) {
  const auto entry = file_->find(keys_(index), stamp);
  if (!entry) return nullptr;
  file_->prefetch(*entry);
  const StoredAudio::Info info{static_cast<SampleType>(entry->type),
                               entry->sample_rate,
                               entry->count,
                               {entry->file_rate, entry->file_frames, 0, entry->channels}};
  return std::make_shared<Cached>(info, file_, *entry, verified_);
}

std::unique_ptr<AudioStore::Entry> CacheStore::begin(std::size_t index, RunContext& run) {
  if (!takes_more_) return nullptr;
  return std::make_unique<Adding>(*this, run, index);
}

void CacheStore::give_up(RunContext& run) {
  if (takes_more_.exchange(false))
    run.warn(
        fmt::format("{}: cannot be written to: {}; the run continues, but stores no further audio",
                    file_->path(), file_->error()));
}

void CacheStore::finish(RunContext& run) {
  if (file_->is_writer() && !file_->commit()) give_up(run);
}

std::vector<std::pair<std::string, Value>> CacheStore::summary() const {
  const auto number = [](std::size_t n) { return Value::scalar(std::to_string(n)); };
  std::vector<std::pair<std::string, Value>> out{
      {"cache", Value::scalar(file_->path(), {}, true)},
      {"from_cache", number(verified_->good)},
      {"from_cache_bytes", number(verified_->good_bytes)},
      {"added", number(added_)},
      {"added_bytes", number(added_bytes_)}};
  if (verified_->damaged > 0) out.emplace_back("damaged", number(verified_->damaged));
  return out;
}

}  // namespace melflow
