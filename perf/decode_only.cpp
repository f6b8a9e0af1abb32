// The rival of the jobs on compressed or tiny recordings: libsndfile decodes every file, and the
// samples are dropped.
//
// In:  a folder of recordings in formats that libsndfile reads.
// Out: one line on stdout: files, sample frames, seconds of audio, and with --hop the frames of a
//      centred transform over all files, 1 + n / hop each.
// Each thread takes the next file and reads it in blocks that stay in the cache: 16-bit mono as it
// is, everything else as float, which is what melflow's decode stage asks for. With this library,
// nothing can compute features of these files in less time.

#include <sndfile.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace melflow {
namespace {

namespace fs = std::filesystem;

constexpr sf_count_t kBlock = 4096;  // frames read at a time

struct Options {
  std::string dir;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::int64_t hop = 0;  // [samples]
};

struct Sums {
  std::int64_t frames = 0;
  std::int64_t transforms = 0;
  double audio_seconds = 0;
};

struct Closer {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

std::vector<std::string> list(const std::string& dir) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    // Skips the generator's stamp.
    if (entry.is_regular_file() && !entry.path().filename().string().starts_with('.'))
      paths.push_back(entry.path().string());
  }
  if (paths.empty()) throw std::runtime_error(dir + ": holds no file");
  std::sort(paths.begin(), paths.end());
  return paths;
}

void decode(const std::string& path, std::int64_t hop, Sums& sums) {
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, Closer> file(sf_open(path.c_str(), SFM_READ, &info));
  if (!file) throw std::runtime_error(path + ": " + sf_strerror(nullptr));
  const bool as_short = info.channels == 1 && (info.format & SF_FORMAT_SUBMASK) == SF_FORMAT_PCM_16;
  std::vector<float> samples(static_cast<std::size_t>(kBlock * info.channels));
  std::vector<short> shorts(as_short ? kBlock : 0);
  std::int64_t frames = 0;
  for (;;) {
    const sf_count_t n = as_short ? sf_readf_short(file.get(), shorts.data(), kBlock)
                                  : sf_readf_float(file.get(), samples.data(), kBlock);
    if (n <= 0) break;
    frames += n;
  }
  if (sf_error(file.get()) != SF_ERR_NO_ERROR)
    throw std::runtime_error(path + ": " + sf_strerror(file.get()));
  sums.frames += frames;
  sums.audio_seconds += static_cast<double>(frames) / info.samplerate;
  if (hop > 0 && frames > 0) sums.transforms += 1 + frames / hop;
}

void run(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::string> paths = list(options.dir);
  const std::chrono::duration<double> start = std::chrono::steady_clock::now() - begin;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Sums total;
  std::string error;
  const auto work = [&] {
    Sums sums;
    try {
      for (std::size_t i = next++; i < paths.size(); i = next++)
        decode(paths[i], options.hop, sums);
    } catch (const std::exception& e) {
      next = paths.size();  // makes the other threads stop, too
      const std::scoped_lock lock(mutex);
      if (error.empty()) error = e.what();
    }
    const std::scoped_lock lock(mutex);
    total.frames += sums.frames;
    total.transforms += sums.transforms;
    total.audio_seconds += sums.audio_seconds;
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < options.threads; ++t) threads.emplace_back(work);
  }
  if (!error.empty()) throw std::runtime_error(error);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "files=%zu samples=%lld transforms=%lld audio_seconds=%.3f start=%.4f seconds=%.4f "
      "threads=%u\n",
      paths.size(), static_cast<long long>(total.frames), static_cast<long long>(total.transforms),
      total.audio_seconds, start.count(), took.count(), options.threads);
}

}  // namespace
}  // namespace melflow

int main(int argc, char** argv) try {
  melflow::Options options;
  CLI::App app{"Decodes every file of a folder by libsndfile and does nothing else."};
  app.add_option("dir", options.dir, "folder of recordings")->required();
  app.add_option("--threads", options.threads, "threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--hop", options.hop, "also count the frames of a transform every so many samples")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  melflow::run(options);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "melflow_decode_only: %s\n", e.what());
  return 1;
}
