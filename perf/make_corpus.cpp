// Makes a folder of synthetic recordings for benchmarks and large tests, quickly and reproducibly.
//
// In:  the command line: number of files, sample rate, length (fixed or a range), channels, format,
//      seed.
// Out: DIR/clip_000000.wav ... (DIR/part_00/... with --split-dirs) and DIR/.corpus, a stamp with
//      the parameters. A folder whose stamp has the same parameters is reused unchanged.
//
// Every recording is different: noise from a few shared tables, at its own offset and gain, three
// tones, and short decaying bursts ("events"). Sample n of file i depends on (seed, i) alone, not
// on threads, and files are made in blocks, so that a recording of many hours needs no more memory
// than a short one. WAV 16 is written raw (44-byte header, then samples), all other formats through
// libsndfile. Ogg files carry a random stream number, so their samples are reproducible, their
// bytes are not.

#include <sndfile.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "synthetic_signal.h"

static_assert(std::endian::native == std::endian::little, "WAV is written from memory as it lies");

namespace melflow {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;               // part of the stamp: increase it when the signal changes
constexpr std::size_t kBlock = 1U << 15;  // frames made and written at a time

struct Options {
  std::string out;
  std::size_t files = 39563;
  int rate = 4096;      // [Hz]
  double seconds = 10;  // [s], if no range is given
  double seconds_min = 0, seconds_max = 0;
  int channels = 1;
  std::string format = "wav16";
  std::size_t split_dirs = 0;
  std::uint64_t seed = 1;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
};

struct Format {
  const char* extension;
  int sndfile;  // libsndfile's code of the format; 0: written raw
};

const std::map<std::string, Format>& formats() {
  static const std::map<std::string, Format> table = {
      {"wav16", {".wav", 0}},
      {"wav24", {".wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24}},
      {"wav-float", {".wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT}},
      {"flac", {".flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16}},
      {"mp3", {".mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III}},
      {"ogg", {".ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS}},
      {"aiff", {".aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16}},
  };
  return table;
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
  void operator()(SNDFILE* file) const { sf_close(file); }
};

[[noreturn]] void fail(const fs::path& path, const std::string& why) {
  throw std::runtime_error(path.string() + ": " + why);
}

/// Writes interleaved blocks, raw or through libsndfile.
class Sink {
 public:
  Sink(const fs::path& path, const Options& options, const Format& format, std::size_t frames)
      : path_(path) {
    if (format.sndfile == 0) {
      raw_.reset(std::fopen(path.c_str(), "wb"));
      if (!raw_) fail(path, std::strerror(errno));
      std::setvbuf(raw_.get(), nullptr, _IONBF, 0);
      write_header(options, frames);
      return;
    }
    SF_INFO info{};
    info.samplerate = options.rate;
    info.channels = options.channels;
    info.format = format.sndfile;
    coded_.reset(sf_open(path.c_str(), SFM_WRITE, &info));
    if (!coded_) fail(path, std::string("libsndfile cannot write this: ") + sf_strerror(nullptr));
    sf_command(coded_.get(), SFC_SET_CLIPPING, nullptr, SF_TRUE);
  }
  void write(const float* samples, std::size_t frames, std::size_t channels) {
    const std::size_t n = frames * channels;
    if (coded_) {
      if (sf_writef_float(coded_.get(), samples, static_cast<sf_count_t>(frames)) !=
          static_cast<sf_count_t>(frames)) {
        fail(path_, std::string("short write: ") + sf_strerror(coded_.get()));
      }
      return;
    }
    pcm_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const float x = std::clamp(samples[i] * 32767.0F, -32768.0F, 32767.0F);
      pcm_[i] = static_cast<std::int16_t>(x + std::copysign(0.5F, x));
    }
    put(pcm_.data(), n * 2);
  }

 private:
  void put(const void* data, std::size_t bytes) {
    if (std::fwrite(data, 1, bytes, raw_.get()) != bytes) fail(path_, std::strerror(errno));
  }
  /// The canonical 44-byte header: RIFF, WAVE, fmt of 16 bytes, data.
  void write_header(const Options& options, std::size_t frames) {
    struct {
      char riff[4] = {'R', 'I', 'F', 'F'};
      std::uint32_t riff_bytes = 0;
      char wave[8] = {'W', 'A', 'V', 'E', 'f', 'm', 't', ' '};
      std::uint32_t fmt_bytes = 16;
      std::uint16_t tag = 1, channels = 0;
      std::uint32_t rate = 0, bytes_per_second = 0;
      std::uint16_t frame_bytes = 0, bits = 16;
      char data[4] = {'d', 'a', 't', 'a'};
      std::uint32_t data_bytes = 0;
    } header;
    static_assert(sizeof header == 44);
    header.channels = static_cast<std::uint16_t>(options.channels);
    header.rate = static_cast<std::uint32_t>(options.rate);
    header.frame_bytes = static_cast<std::uint16_t>(2 * options.channels);
    header.bytes_per_second = header.rate * header.frame_bytes;
    header.data_bytes = static_cast<std::uint32_t>(frames * header.frame_bytes);
    header.riff_bytes = header.data_bytes + 36;
    put(&header, sizeof header);
  }

  fs::path path_;
  std::unique_ptr<std::FILE, FileCloser> raw_;
  std::unique_ptr<SNDFILE, FileCloser> coded_;
  std::vector<std::int16_t> pcm_;
};

/// Returns the length of file `index` [frames].
std::size_t frames_of(const Options& options, std::size_t index) {
  double seconds = options.seconds;
  if (options.seconds_max > 0) {
    Random random(mix(mix(options.seed, index), 0x1E46));
    seconds = options.seconds_min + (options.seconds_max - options.seconds_min) *
                                        static_cast<double>(random.next() >> 11U) * 0x1p-53;
  }
  return static_cast<std::size_t>(std::llround(seconds * options.rate));
}

fs::path path_of(const Options& options, const Format& format, std::size_t index) {
  std::array<char, 64> name{};
  fs::path path = options.out;
  if (options.split_dirs > 0) {  // neighbours share a folder: path order is index order
    std::snprintf(name.data(), name.size(), "part_%02zu",
                  index * options.split_dirs / options.files);
    path /= name.data();
  }
  std::snprintf(name.data(), name.size(), "clip_%06zu%s", index, format.extension);
  return path / name.data();
}

void make_file(const Options& options, const Format& format, const NoiseTables& noise,
               std::size_t index, std::vector<float>& mono, std::vector<float>& interleaved) {
  const std::size_t frames = frames_of(options, index);
  const auto channels = static_cast<std::size_t>(options.channels);
  std::vector<Signal> signals;
  for (std::size_t c = 0; c < channels; ++c) {
    signals.emplace_back(noise, mix(mix(options.seed, index), c), options.rate);
  }
  Sink sink(path_of(options, format, index), options, format, frames);
  for (std::size_t done = 0; done < frames; done += kBlock) {
    const std::size_t part = std::min(kBlock, frames - done);
    const std::size_t rounded = (part + Signal::kLanes - 1) / Signal::kLanes * Signal::kLanes;
    if (channels == 1) {
      signals[0].fill(mono.data(), rounded);
      sink.write(mono.data(), part, 1);
      continue;
    }
    interleaved.resize(kBlock * channels);
    for (std::size_t c = 0; c < channels; ++c) {
      signals[c].fill(mono.data(), rounded);
      for (std::size_t i = 0; i < part; ++i) interleaved[i * channels + c] = mono[i];
    }
    sink.write(interleaved.data(), part, channels);
  }
}

void make_all(const Options& options, const Format& format) {
  const NoiseTables noise = make_noise(options.seed);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::string error;
  const auto work = [&] {
    std::vector<float> mono(kBlock), interleaved;
    try {
      for (std::size_t i = next++; i < options.files; i = next++) {
        make_file(options, format, noise, i, mono, interleaved);
      }
    } catch (const std::exception& e) {
      next = options.files;  // makes the other threads stop, too
      const std::scoped_lock lock(mutex);
      if (error.empty()) error = e.what();
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < options.threads; ++t) threads.emplace_back(work);
  threads.clear();  // joins
  if (!error.empty()) throw std::runtime_error(error);
}

std::string stamp_of(const Options& o) {
  std::ostringstream text;
  text << "melflow corpus " << kVersion << ": files=" << o.files << " rate=" << o.rate
       << " channels=" << o.channels << " format=" << o.format << " split_dirs=" << o.split_dirs
       << " seed=" << o.seed;
  if (o.seconds_max > 0) {
    text << " seconds=" << o.seconds_min << ".." << o.seconds_max;
  } else {
    text << " seconds=" << o.seconds;
  }
  text << '\n';
  return text.str();
}

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spit(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << text).flush()) fail(path, "cannot write");
}

void check(const Options& o) {
  if (o.seconds_max > 0 && o.seconds_min > o.seconds_max) {
    throw std::runtime_error("--seconds-min is greater than --seconds-max");
  }
  if (o.split_dirs > o.files) throw std::runtime_error("--split-dirs is greater than --files");
  const double longest = o.seconds_max > 0 ? o.seconds_max : o.seconds;
  if (o.format.starts_with("wav") && longest * o.rate * o.channels * 4 > 4e9) {
    throw std::runtime_error(
        "a WAV file holds at most 4 GB: choose fewer seconds or --format flac");
  }
}

void run(const Options& options) {
  check(options);
  const fs::path dir = options.out;
  const fs::path stamp = dir / ".corpus", started = dir / ".corpus.partial";
  const std::string wanted = stamp_of(options);
  if (slurp(stamp) == wanted) {
    std::printf("%s: used again: %s", dir.c_str(), wanted.c_str());
    return;
  }
  // Writes only into an empty folder, or one where this very corpus was begun, so that no other
  // files are lost or mixed in.
  const bool resumed = slurp(started) == wanted;
  if (fs::exists(dir) && !fs::is_empty(dir) && !resumed) {
    fail(dir, "holds something else (wanted: " + wanted.substr(0, wanted.size() - 1) +
                  "); choose another folder or remove this one");
  }
  fs::create_directories(dir);
  spit(started, wanted);
  const Format& format = formats().at(options.format);
  for (std::size_t i = 0; i < options.split_dirs; ++i) {
    const std::size_t first = (i * options.files + options.split_dirs - 1) / options.split_dirs;
    fs::create_directories(path_of(options, format, first).parent_path());
  }
  const auto begin = std::chrono::steady_clock::now();
  make_all(options, format);
  fs::rename(started, stamp);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%s: made in %.1f s: %s", dir.c_str(), took.count(), wanted.c_str());
}

}  // namespace
}  // namespace melflow

int main(int argc, char** argv) try {
  melflow::Options options;
  CLI::App app{"Makes a folder of synthetic recordings, the same for the same options."};
  std::vector<std::string> names;
  for (const auto& [name, format] : melflow::formats()) names.push_back(name);
  app.add_option("--out", options.out, "folder to fill (made when missing)")->required();
  app.add_option("--files", options.files, "number of files")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rate", options.rate, "sample rate [Hz]")
      ->check(CLI::Range(100, 768000))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "length of every file [s]")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  auto* most = app.add_option("--seconds-max", options.seconds_max,
                              "longest file [s]: lengths are spread evenly")
                   ->check(CLI::PositiveNumber);
  app.add_option("--seconds-min", options.seconds_min, "shortest file [s], with --seconds-max")
      ->check(CLI::NonNegativeNumber)
      ->needs(most);
  app.add_option("--channels", options.channels, "channels")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--format", options.format, "file format")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--split-dirs", options.split_dirs,
                 "spread the files over this many folders (0: none)")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "another seed gives another corpus")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  melflow::run(options);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "melflow_make_corpus: %s\n", e.what());
  return 1;
}
