#include "stages/audio/store/feed_choice.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "pipeline/base/available_memory.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/options/schema.h"
#include "stages/audio/decoders/sample_reader.h"
#include "stages/audio/decoders/sound_file.h"
#include "stages/audio/decoders/sound_header.h"
#include "stages/containers/container.h"
#include "stages/files/mapped_range.h"
#include "stages/files/unique_fd.h"
#include "stages/length.h"

namespace melflow {
namespace {

constexpr std::size_t kSampled = 64;       // files
constexpr double kMostWarm = 0.9;          // share from which files count as cached
constexpr double kDiskShare = 0.9;         // of the free disk that a cache may take
constexpr std::size_t kWindow = 64 << 10;  // for reading a header [bytes]
constexpr int kProbes = 4;                 // positions in a file

std::string gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

// Returns the final sample rate [Hz]; 0: each file's own.
double final_rate(const Value& settings) {
  double rate = 0;
  for (const Value& stage : settings.items()) {
    const Value *name = stage.find("stage"), *to = stage.find("rate");
    if (name != nullptr && to != nullptr && name->text() == "resample")
      (void)detail::parse_number(*to, rate);
  }
  return rate;
}

// How the stages before the store change a recording's length.
struct FinalLength {
  double rate = 0;            // [Hz]; 0: each file's own
  std::optional<Length> fit;  // of decode
  bool is_told = true;        // false: it depends on the samples, too
};

FinalLength final_length(const Value& settings) {
  FinalLength out{final_rate(settings), {}};
  for (const Value& stage : settings.items()) {
    const std::string name = stage.find("stage") != nullptr ? stage.find("stage")->text() : "";
    out.is_told = out.is_told && (name == "decode" || name == "resample");
    const Value* fit = name == "decode" ? stage.find("fit") : nullptr;
    Length length;
    if (fit != nullptr && fit->is_scalar() && OptionType<Length>::parse(*fit, length).empty())
      out.fit = length;
  }
  return out;
}

class Look {
 public:
  explicit Look(FinalLength length) : rate_(length.rate), fit_(length.fit) {}

  void at(const std::string& path) {
    const FileRef file = located(path);
    if (file.container || (file.part && file.part->is_deflated)) return;
    InputFile opened(file.part ? file.part->file : path);
    struct stat st {};
    if (opened.error() != 0) return;
    const UniqueFd fd(opened.release());
    if (fstat(fd.get(), &st) != 0 || st.st_size == 0) return;
    const std::uint64_t begin = file.part ? file.part->begin : 0,
                        size = file.part ? file.size : static_cast<std::uint64_t>(st.st_size);
    for (int i = 0; i < kProbes; ++i) {  // before anything is read
      const PageCache answer =
          is_in_page_cache(fd.get(), begin + (size - 1) * static_cast<unsigned>(i) / (kProbes - 1));
      if (answer == PageCache::does_not_say) continue;
      ++probed_;
      warm_ += answer == PageCache::holds ? 1 : 0;
    }
    const SoundFile sound(SoundInput(fd.get(), begin, size, kWindow));
    if (!sound.ok() || sound.info().samplerate <= 0) return;
    ++files_;
    file_bytes_ += static_cast<double>(size);
    is_counted_ = is_counted_ && sound.is_count_known();
    measure(sound.info(), path, static_cast<double>(size));
  }

  [[nodiscard]] std::size_t files() const { return files_; }
  [[nodiscard]] double decoded_bytes() const { return decoded_bytes_; }
  // Whether all of them say how long they are.
  [[nodiscard]] bool is_counted() const { return is_counted_; }

  void fill(FeedFacts& facts, std::size_t all) const {
    facts.sampled = files_;
    if (probed_ > 0) facts.warm = static_cast<double>(warm_) / probed_;
    if (files_ == 0) return;
    const double scale = static_cast<double>(all) / static_cast<double>(files_);
    facts.file_bytes = static_cast<std::uint64_t>(file_bytes_ * scale);
    facts.decoded_bytes = static_cast<std::uint64_t>(decoded_bytes_ * scale);
    facts.is_plain = is_plain_;
  }

 private:
  void measure(const SF_INFO& info, const std::string& path, double size) {
    const bool resampled = rate_ > 0 && rate_ != info.samplerate;
    const bool narrow = (info.format & SF_FORMAT_SUBMASK) == SF_FORMAT_PCM_16 && info.channels == 1;
    is_plain_ = is_plain_ && has_plain_samples(path) && narrow && !resampled;
    // Limited to a plausible length for a compressed file: a header may claim anything.
    const double frames = fit_ ? static_cast<double>(fit_->at(info.samplerate))
                               : std::min(static_cast<double>(info.frames), 64 * size);
    decoded_bytes_ += frames * (resampled ? rate_ / info.samplerate : 1) *
                      static_cast<double>(resampled ? sizeof(float) : size_of(sample_type(info)));
  }

  double rate_;
  std::optional<Length> fit_;
  bool is_counted_ = true;
  std::size_t files_ = 0;
  int probed_ = 0, warm_ = 0;
  double file_bytes_ = 0, decoded_bytes_ = 0;
  bool is_plain_ = true;
};

// Returns the share of the sampled files that the cache holds in their current version.
double share_cached(const Manifest& manifest, const CachePlace& place, std::size_t step) {
  if (!std::filesystem::exists(place.path)) return 0;
  try {
    const AudioCacheFile file(place.path, place.key, AudioCacheFile::Access::read_only);
    const FileKeys keys(manifest);
    std::size_t found = 0, seen = 0;
    for (std::size_t i = 0; i < manifest.size(); i += step, ++seen) {
      if (file.find(keys(i), stamp_of(manifest.path(i)))) ++found;
    }
    return seen == 0 ? 0 : static_cast<double>(found) / static_cast<double>(seen);
  } catch (const RunError&) {
    return 0;
  }
}

// Returns the free disk space where the folder is, or will be.
std::uint64_t free_disk(std::filesystem::path folder) {
  std::error_code ignored;
  folder = std::filesystem::absolute(folder, ignored);
  while (!folder.empty() && !std::filesystem::exists(folder, ignored) &&
         folder != folder.root_path())
    folder = folder.parent_path();
  struct statvfs fs {};
  if (::access(folder.c_str(), W_OK) != 0 || statvfs(folder.c_str(), &fs) != 0) return 0;
  return std::uint64_t{fs.f_bavail} * fs.f_frsize;
}

}  // namespace

FeedChoice choose_feed(const FeedFacts& f) {
  if (f.cached > 0)
    return {true, fmt::format("a valid cache holds {:.0f} % of {} sampled files", 100 * f.cached,
                              f.sampled)};
  if (f.uses <= 1)
    return {false,
            "the audio is used once: decoding beside the work costs less than storing it as well"};
  if (f.sampled == 0) return {false, "none of the sampled files can be decoded"};
  const auto most = static_cast<std::uint64_t>(kDiskShare * static_cast<double>(f.disk_free));
  if (f.decoded_bytes > most)
    return {false, fmt::format("a cache would take about {}, of the {} free in cache_path",
                               gibibytes(f.decoded_bytes), gibibytes(f.disk_free))};
  if (f.is_plain && f.warm.value_or(0) >= kMostWarm && f.file_bytes <= f.memory_free / 2)
    return {false,
            "the files hold plain samples and lie in the page cache, where a cache would "
            "only be a second copy"};
  return {true, fmt::format("the audio is used {} times, and about {} of it fit into cache_path",
                            f.uses, gibibytes(f.decoded_bytes))};
}

ExpectedAudio expected_audio(const Manifest& manifest, const Value& settings) {
  const FinalLength length = final_length(settings);
  // Several utterances share a recording.
  if (manifest.size() == 0 || manifest.has_spans() || !length.is_told) return {};
  const std::size_t step = std::max<std::size_t>(1, manifest.size() / kSampled);
  Look look(length);
  for (std::size_t i = 0; i < manifest.size(); i += step) look.at(manifest.path(i));
  if (look.files() == 0 || !look.is_counted()) return {};
  const double scale = static_cast<double>(manifest.size()) / static_cast<double>(look.files());
  return {static_cast<std::uint64_t>(look.decoded_bytes() * scale), look.files(),
          look.files() == manifest.size()};
}

FeedFacts look_at_corpus(const Manifest& manifest, const Value& settings, const CachePlace& place,
                         int uses) {
  FeedFacts facts;
  facts.uses = uses;
  facts.memory_free = available_memory();
  facts.disk_free = free_disk(std::filesystem::path(place.path).parent_path());
  const std::size_t step = std::max<std::size_t>(1, manifest.size() / kSampled);
  facts.cached = share_cached(manifest, place, step);
  facts.sampled = (manifest.size() + step - 1) / step;
  if (facts.cached > 0 || uses <= 1) return facts;  // no more facts are needed
  Look look(final_length(settings));
  for (std::size_t i = 0; i < manifest.size(); i += step) look.at(manifest.path(i));
  look.fill(facts, manifest.size());
  return facts;
}

}  // namespace melflow
