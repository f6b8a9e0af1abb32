// Feeds any bytes as a cache of decoded audio, for libFuzzer (long/fuzz.sh). Even first byte: the
// rest is the file; if the second byte says so, its checksums are corrected first. Odd: recordings
// are written in several commits, and bytes are damaged: all that is found with a valid checksum is
// what was written. Then the file takes another recording.
#include <xxhash.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "pipeline/base/problem.h"
#include "stages/audio/store/audio_cache_file.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace melflow;
using namespace melflow::fuzz;

constexpr std::size_t kNames = 6;

CacheKey settings() { return cache_key("settings"); }
CacheKey key_of(std::size_t i) { return cache_key("file " + std::to_string(i)); }

AudioCacheFile::Entry entry_of(std::size_t i, std::string_view samples) {
  AudioCacheFile::Entry out;
  out.key = key_of(i);
  out.count = static_cast<std::int64_t>(samples.size() / 2);
  out.file_frames = out.count;
  out.sample_rate = out.file_rate = 8000;
  out.checksum = XXH3_64bits(samples.data(), samples.size());
  out.type = static_cast<std::uint16_t>(SampleType::int16);
  return out;
}

void add(AudioCacheFile& cache, std::size_t i, std::string_view samples, std::size_t pieces) {
  std::vector<AudioCacheFile::Extent> extents;
  for (std::size_t at = 0, each = std::max<std::size_t>(samples.size() / pieces / 2 * 2, 2);
       at < samples.size(); at += each) {
    const auto extent = cache.append(std::as_bytes(std::span(samples.substr(at, each))));
    if (!extent)
      std::fprintf(stderr, "append: %s; %s\n", cache.note().c_str(), cache.error().c_str());
    require(extent.has_value());
    extents.push_back(*extent);
  }
  require(cache.add(entry_of(i, samples), extents) && cache.commit());
}

std::string bytes_of(const AudioCacheFile& cache, const AudioCacheFile::Entry& entry) {
  std::string out;
  for (const auto piece : cache.samples(entry))
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return out;
}

// Corrects the checksums of the commit records and of the tables that these name.
void make_right(std::string& bytes) {
  if (bytes.size() < kCachePage) return;
  const CachePage header = cache_header(settings());
  std::memcpy(bytes.data(), header.data(), kCacheCommitPlace[0]);
  for (const std::size_t at : kCacheCommitPlace) {
    CacheCommit commit;
    std::memcpy(&commit, bytes.data() + at, sizeof commit);
    const std::uint64_t size = commit.capacity * sizeof(CacheEntry);
    if (commit.capacity < bytes.size() && size <= bytes.size() &&
        commit.index_offset <= bytes.size() - size)
      commit.index_checksum = XXH3_64bits(bytes.data() + commit.index_offset, size);
    commit.sign();
    std::memcpy(bytes.data() + at, &commit, sizeof commit);
  }
}

// Looks up everything; `written`: the expected contents of each name, where known.
void look(const AudioCacheFile& cache, const std::vector<std::string>& written) {
  for (std::size_t i = 0; i < kNames; ++i) {
    const auto entry = cache.find(key_of(i), FileStamp{});
    if (!entry) continue;
    cache.prefetch(*entry);
    const bool is_good = cache.verify(*entry);
    const std::string samples = bytes_of(cache, *entry);
    if (!is_good) continue;
    require(samples.size() == entry->bytes());
    if (!written.empty()) require(samples == written[i]);
  }
}

void go_on(const std::string& path, const std::vector<std::string>& written) {
  try {
    {
      AudioCacheFile cache(path, settings());
      look(cache, written);
      require(cache.is_writer());
      add(cache, kNames, "another one.", 2);
    }
    const AudioCacheFile cache(path, settings(), AudioCacheFile::Access::read_only);
    look(cache, written);
    const auto entry = cache.find(key_of(kNames), FileStamp{});
    require(entry.has_value() && cache.verify(*entry) && bytes_of(cache, *entry) == "another one.");
  } catch (const RunError&) {
    std::abort();  // a file that is no cache is replaced
  }
}

std::vector<std::string> write_some(const std::string& path, Input& in) {
  std::vector<std::string> written(kNames);
  for (std::size_t n = in.below(kNames); n > 0; --n) {
    AudioCacheFile cache(path, settings());
    const std::size_t i = in.below(kNames);
    if (!written[i].empty()) continue;
    written[i] = in.bytes(2 + in.below(300));
    written[i].resize(std::max<std::size_t>(written[i].size() / 2 * 2, 2));
    add(cache, i, written[i], 1 + in.below(3));
  }
  return written;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const bool is_written = in.flag();
  const std::string path = folder() / "cache";
  if (is_written) {
    const std::vector<std::string> written = write_some(path, in);
    std::string bytes = read_file(path);
    for (std::size_t n = in.below(4); n > 0; --n) {
      const std::size_t at = in.take<std::uint32_t>() % std::max<std::size_t>(bytes.size(), 1);
      damage(bytes, at, in.take<std::uint8_t>());
    }
    write_file(path, bytes);
    go_on(path, written);
  } else {
    const bool is_right = in.flag();
    std::string bytes(in.rest());
    if (is_right) make_right(bytes);
    write_file(path, bytes);
    go_on(path, {});
  }
  folder().clear();
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return write_seeds([](const auto& seed) {
    const std::string path = folder() / "seed";
    const std::string numbers =
        std::string("\x05\0\1\0\x10\0", 6) + " sixteen bytes or so, and then some more";
    Input in(reinterpret_cast<const std::uint8_t*>(numbers.data()), numbers.size());
    write_some(path, in);
    seed("file", std::string(2, '\0') + read_file(path));
    seed("right", std::string("\0\1", 2) + read_file(path));
    seed("written", "\x01" + numbers + numbers);
    folder().clear();
  });
}
