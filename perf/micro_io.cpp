// What surrounds the arithmetic: reading a small file, decoding from memory, writing rows. Its
// files are made in the folder that the system keeps for temporary ones, and removed.
//
//   read/WHAT     open, read and close an 80 KiB file that lies in the page cache
//   decode/WHAT   10 s of 16-bit mono from memory by libsndfile: WAV at 4096 Hz, FLAC at 16 kHz
//   write/TYPE    RowFile::write of 948 rows of 32 columns: four files of the two-stage job
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "stages/audio/decoders/sound_file.h"
#include "stages/files/unique_fd.h"
#include "stages/output/formats/row_file.h"

namespace {

using namespace melflow;
namespace fs = std::filesystem;

class TempFolder {
 public:
  TempFolder() {
    std::string name = (fs::temp_directory_path() / "melflow-micro-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder: " + name);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string operator/(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

/// 10 s of tones and noise.
void make_sound(const std::string& path, int rate, int format) {
  SF_INFO info{};
  info.samplerate = rate;
  info.channels = 1;
  info.format = format | SF_FORMAT_PCM_16;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  if (file == nullptr) throw std::runtime_error(path + ": " + sf_strerror(nullptr));
  std::vector<short> samples(static_cast<std::size_t>(10 * rate));
  std::uint32_t seed = 1;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    seed = seed * 1664525U + 1013904223U;
    samples[i] = static_cast<short>(8000 * std::sin(0.05 * static_cast<double>(i)) +
                                    static_cast<double>(seed >> 21U));
  }
  const auto written =
      sf_writef_short(file, samples.data(), static_cast<sf_count_t>(samples.size()));
  sf_close(file);
  if (written != static_cast<sf_count_t>(samples.size()))
    throw std::runtime_error(path + ": cannot be written");
}

void read_file(benchmark::State& state, int flags) {
  const TempFolder folder;
  const std::string path = folder / "clip.wav";
  make_sound(path, 4096, SF_FORMAT_WAV);
  std::vector<char> bytes(128 * 1024);
  for (auto _ : state) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
    if (!fd || ::read(fd.get(), bytes.data(), bytes.size()) < 80'000) {
      state.SkipWithError("cannot read");
      break;
    }
    benchmark::DoNotOptimize(bytes.data());
  }
}

void decode(benchmark::State& state, int rate, int format) {
  const TempFolder folder;
  const std::string path = folder / "clip";
  make_sound(path, rate, format);
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  std::vector<short> samples(static_cast<std::size_t>(10 * rate));
  for (auto _ : state) {
    SoundFile sound{SoundInput(std::as_bytes(std::span(bytes)))};
    if (!sound.ok() || sound.read(samples.data(), 10 * rate) != 10 * rate) {
      state.SkipWithError("cannot decode");
      break;
    }
    benchmark::DoNotOptimize(samples.data());
  }
  state.counters["x_real_time"] = benchmark::Counter(10.0 * static_cast<double>(state.iterations()),
                                                     benchmark::Counter::kIsRate);
}

void write_rows(benchmark::State& state, NumberType type) {
  constexpr std::int64_t rows = 948, columns = 32, places = 64;
  const TempFolder folder;
  RowFile file(folder / "rows.h5", "mel", type, columns, Existing::refuse);
  const std::vector<float> values(rows * columns, -40.0F);
  // Pages that are there already: making new ones is the file system's own cost, which job "write"
  // has.
  for (std::int64_t place = 0; place < places; ++place)
    file.write(place * rows, values.data(), rows);
  std::int64_t place = 0;
  for (auto _ : state) {
    file.write(place * rows, values.data(), rows);
    place = (place + 1) % places;
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * rows *
                          static_cast<std::int64_t>(file.row_bytes()));
}

}  // namespace

BENCHMARK_CAPTURE(read_file, noatime, O_NOATIME)->Name("read/noatime");
BENCHMARK_CAPTURE(decode, wav, 4096, SF_FORMAT_WAV)->Name("decode/wav16_10s_4096Hz");
BENCHMARK_CAPTURE(decode, flac, 16000, SF_FORMAT_FLAC)->Name("decode/flac_10s_16kHz");
BENCHMARK_CAPTURE(write_rows, float32, NumberType::float32)->Name("write/float32");
BENCHMARK_CAPTURE(write_rows, float16, NumberType::float16)->Name("write/float16");
