// The rival of a service's calls: decoding, resampling and mel of a file in memory, nothing else.
//
// In:  a sound file, a number of threads, seconds to run, and how many samples at 16 kHz to pad to.
// Out: a line of JSON: requests a second, and of a request the median, the 99th percentile and the
//      processor time [ms].
// Each thread makes Whisper's rows of the same file again and again: MP3 by libmpg123, the rest by
// libsndfile, the mean of the channels, libsoxr at quality high, melflow's kernel.

#include <mpg123.h>
#include <sndfile.h>
#include <soxr.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "stages/features/mel/mel_kernel.h"
#include "stages/features/mel/mel_presets.h"

namespace melflow {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string file;
  int threads = 1;
  double seconds = 2;
  std::size_t pad_to = 0;  // samples
};

struct Sound {
  int rate = 0, channels = 0;
  std::vector<float> samples;  // interleaved
};

struct Place {
  const std::string* file;
  std::size_t at = 0;

  std::size_t read(void* out, std::size_t bytes) {
    const std::size_t n = std::min(bytes, file->size() - at);
    std::memcpy(out, file->data() + at, n);
    at += n;
    return n;
  }
  std::int64_t seek(std::int64_t offset, int whence) {
    const auto size = static_cast<std::int64_t>(file->size());
    const std::int64_t from = whence == SEEK_SET   ? 0
                              : whence == SEEK_CUR ? static_cast<std::int64_t>(at)
                                                   : size;
    at = static_cast<std::size_t>(std::clamp<std::int64_t>(from + offset, 0, size));
    return static_cast<std::int64_t>(at);
  }
};

Sound decode_mp3(const std::string& file) {
  Place place{&file};
  const std::unique_ptr<mpg123_handle, decltype(&mpg123_delete)> handle(
      mpg123_new(nullptr, nullptr), mpg123_delete);
  mpg123_handle* const mh = handle.get();
  mpg123_param(mh, MPG123_ADD_FLAGS, MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_GAPLESS, 0);
  mpg123_replace_reader_handle(
      mh,
      [](void* p, void* out, std::size_t n) {
        return static_cast<ssize_t>(static_cast<Place*>(p)->read(out, n));
      },
      [](void* p, off_t offset, int whence) {
        return static_cast<off_t>(static_cast<Place*>(p)->seek(offset, whence));
      },
      nullptr);
  Sound out;
  long rate = 0;
  int encoding = 0;
  if (mpg123_open_handle(mh, &place) != MPG123_OK ||
      mpg123_getformat(mh, &rate, &out.channels, &encoding) != MPG123_OK)
    throw std::runtime_error("no MP3");
  out.rate = static_cast<int>(rate);
  const off_t frames = mpg123_length(mh);
  std::size_t have = 0, got = 0;
  out.samples.resize(static_cast<std::size_t>(std::max<off_t>(frames, 4096) * out.channels));
  while (mpg123_read(mh, reinterpret_cast<unsigned char*>(out.samples.data() + have),
                     (out.samples.size() - have) * sizeof(float), &got) == MPG123_OK) {
    have += got / sizeof(float);
    if (have == out.samples.size()) out.samples.resize(2 * have);
  }
  out.samples.resize(have + got / sizeof(float));
  return out;
}

Sound decode(const std::string& file) {
  Place place{&file};
  static SF_VIRTUAL_IO io = {
      [](void* p) { return static_cast<sf_count_t>(static_cast<Place*>(p)->file->size()); },
      [](sf_count_t offset, int whence, void* p) -> sf_count_t {
        return static_cast<Place*>(p)->seek(offset, whence);
      },
      [](void* out, sf_count_t n, void* p) {
        return static_cast<sf_count_t>(
            static_cast<Place*>(p)->read(out, static_cast<std::size_t>(n)));
      },
      nullptr,
      [](void* p) { return static_cast<sf_count_t>(static_cast<Place*>(p)->at); },
  };
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, decltype(&sf_close)> sound(
      sf_open_virtual(&io, SFM_READ, &info, &place), sf_close);
  if (!sound) return decode_mp3(file);
  if ((info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_MPEG) return decode_mp3(file);
  Sound out{info.samplerate, info.channels, {}};
  out.samples.resize(static_cast<std::size_t>(info.frames * info.channels));
  const sf_count_t n = sf_readf_float(sound.get(), out.samples.data(), info.frames);
  out.samples.resize(static_cast<std::size_t>(n * info.channels));
  return out;
}

std::vector<float> mono_16k(const Sound& sound) {
  const auto channels = static_cast<std::size_t>(sound.channels);
  std::vector<float> mono(sound.samples.size() / channels);
  const float share = 1.0F / static_cast<float>(channels);
  for (std::size_t i = 0; i < mono.size(); ++i) {
    float sum = 0;
    for (std::size_t c = 0; c < channels; ++c) sum += sound.samples[i * channels + c];
    mono[i] = sum * share;
  }
  if (sound.rate == 16000) return mono;
  std::vector<float> out(
      static_cast<std::size_t>(static_cast<double>(mono.size()) * 16000 / sound.rate) + 1);
  const auto quality = soxr_quality_spec(SOXR_HQ, 0);
  std::size_t made = 0;
  soxr_oneshot(sound.rate, 16000, 1, mono.data(), mono.size(), nullptr, out.data(), out.size(),
               &made, nullptr, &quality, nullptr);
  out.resize(made);
  return out;
}

std::vector<float> rows_of(const std::string& file, const MelKernel& kernel,
                           MelKernel::Scratch& scratch, std::size_t pad_to) {
  std::vector<float> samples = mono_16k(decode(file));
  samples.resize(std::max(samples.size(), pad_to));
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t frames = kernel.plan().frames(n);
  std::vector<float> rows(static_cast<std::size_t>(frames * kernel.plan().columns()));
  kernel.frames(SignalView<float>{samples.data(), 0, n, n}, 0, frames, rows.data(), scratch);
  const float floor = *std::max_element(rows.begin(), rows.end()) - 8;
  for (float& value : rows) value = (std::max(value, floor) + 4) / 4;
  return rows;
}

double at(const std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

void run(const Options& options) {
  std::ifstream in(options.file, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  if (file.empty()) throw std::runtime_error(options.file + ": cannot be read");
  const MelKernel kernel(std::make_shared<const MelPlan>(find_preset("whisper")->options));
  std::vector<std::vector<double>> times(static_cast<std::size_t>(options.threads));
  MelKernel::Scratch first = kernel.make_scratch();
  if (rows_of(file, kernel, first, options.pad_to).empty()) throw std::runtime_error("no rows");
  const std::clock_t used_before = std::clock();
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(options.seconds));
  {
    std::vector<std::jthread> threads;
    for (std::vector<double>& own : times)
      threads.emplace_back([&] {
        MelKernel::Scratch scratch = kernel.make_scratch();
        for (auto from = Clock::now(); from < end || own.empty();) {
          rows_of(file, kernel, scratch, options.pad_to);
          const auto now = Clock::now();
          own.push_back(1e3 * std::chrono::duration<double>(now - from).count());
          from = now;
        }
      });
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::vector<double> all;
  for (const std::vector<double>& own : times) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  const double used = 1e3 * static_cast<double>(std::clock() - used_before) / CLOCKS_PER_SEC;
  std::printf("{\"rate\": %.3f, \"p50\": %.3f, \"p99\": %.3f, \"cpu\": %.3f}\n",
              static_cast<double>(all.size()) / seconds, at(all, 0.5), at(all, 0.99),
              used / static_cast<double>(all.size()));
}

}  // namespace
}  // namespace melflow

int main(int argc, char** argv) {
  CLI::App app("Decodes, resamples and computes Whisper's rows of a file in memory.");
  melflow::Options options;
  app.add_option("file", options.file)->required();
  app.add_option("--threads", options.threads);
  app.add_option("--seconds", options.seconds);
  app.add_option("--pad-to", options.pad_to, "samples at 16 kHz");
  CLI11_PARSE(app, argc, argv);
  try {
    melflow::run(options);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
