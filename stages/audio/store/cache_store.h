// Keeps decoded audio in a cache file, for later runs and other processes.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "stages/audio/store/audio_cache_file.h"
#include "stages/audio/store/stored_audio.h"
#include "stages/manifest.h"

namespace melflow {

/// The cache file in `folder` for samples made with `settings`. Its key includes the versions of
/// the libraries that decode and resample.
struct CachePlace {
  std::string path;
  CacheKey key;
};
CachePlace cache_place(const std::string& folder, const Value& settings);

/// Makes the keys of a manifest's files, hashes of their absolute paths.
class FileKeys {
 public:
  explicit FileKeys(const Manifest& manifest);
  [[nodiscard]] CacheKey operator()(std::size_t index) const;

 private:
  const Manifest& manifest_;
  std::vector<std::string> roots_;  // of the sources; absolute, end in '/'
};

class CacheStore final : public AudioStore {
 public:
  /// Opens the cache file. If `access` allows writing, creates the file and its folder if needed.
  /// Throws RunError if there is no cache and none can be created.
  CacheStore(RunContext& run, const ManifestSource& files, const CachePlace& place,
             AudioCacheFile::Access access);

  std::shared_ptr<const StoredAudio> find(std::size_t index, const FileStamp& stamp) override;
  std::unique_ptr<Entry> begin(std::size_t index, RunContext& run) override;
  void finish(RunContext& run) override;
  [[nodiscard]] std::vector<std::pair<std::string, Value>> summary() const override;

 private:
  class Adding;
  class Cached;

  void give_up(RunContext& run);

  std::shared_ptr<AudioCacheFile> file_;
  FileKeys keys_;
  const ManifestSource& files_;
  std::atomic<bool> takes_more_;
  // Counts of recordings read from the cache; outlives the store, as its samples may.
  struct Verified {
    std::atomic<std::size_t> good{0}, good_bytes{0}, damaged{0};
  };
  std::shared_ptr<Verified> verified_;
  std::atomic<std::size_t> added_{0}, added_bytes_{0};
};

}  // namespace melflow
