// The rival of the two-stage job and of the dataset builder: the work of melflow's graph, fused by
// hand into two threads.
//
// In:  a folder of WAV files, mono, 16-bit, 40,960 samples each behind a 44-byte header.
// Out: one flat file, float32 [files, rows, 32], files in path order; 237 rows, or 80 with
//      --windows plain. No HDF5, no labels, no index,
//      no accounting, no bounds.
//
// Each thread takes the next file, reads it in one read, computes its rows (hand_fused_kernel.h)
// and writes them with one pwrite. FFTW's plans are timed (FFTW_MEASURE), so the last bits may
// differ from run to run, which melflow does not accept.

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hand_fused_kernel.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;

constexpr int kHeader = 44;  // bytes before the samples

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw std::runtime_error(path + ": " + why);
}

class Fd {
 public:
  Fd(const std::string& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::vector<std::string> list(const std::string& dir) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (entry.path().extension() == ".wav") paths.push_back(entry.path().string());
  }
  if (paths.empty()) fail(dir, "holds no .wav file");
  std::sort(paths.begin(), paths.end());
  return paths;
}

template <class T>
T field(const std::vector<char>& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// Reads the whole file into `bytes` in one read and checks the header.
void read_file(const std::string& path, std::vector<char>& bytes) {
  Fd fd(path, O_RDONLY | O_NOATIME);
  if (fd.get() < 0 && errno == EPERM) fd = Fd(path, O_RDONLY);  // the file is not our own
  if (fd.get() < 0) fail(path, std::strerror(errno));
  const ssize_t got = ::read(fd.get(), bytes.data(), bytes.size());
  if (got < 0) fail(path, std::strerror(errno));
  const bool wave = got >= kHeader && std::memcmp(bytes.data(), "RIFF", 4) == 0 &&
                    std::memcmp(bytes.data() + 8, "WAVEfmt ", 8) == 0 &&
                    std::memcmp(bytes.data() + 36, "data", 4) == 0;
  if (!wave || field<std::uint16_t>(bytes, 20) != 1 || field<std::uint16_t>(bytes, 22) != 1 ||
      field<std::uint16_t>(bytes, 34) != 16 || got != kHeader + 2 * kSamples) {
    fail(path, "not a mono 16-bit WAV file of 40,960 samples behind a 44-byte header");
  }
}

struct Options {
  std::string dir, out;
  std::string fft = "r2c";
  std::string windows = "two-stage";
  double rate = 4096;  // [Hz]
  unsigned threads = 2;
};

void run(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::string> paths = list(options.dir);
  const Plan plan(options.fft == "pair" ? FftKind::kPair : FftKind::kReal, options.rate);
  const std::chrono::duration<double> start = std::chrono::steady_clock::now() - begin;
  const Fd out(options.out, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (out.get() < 0) fail(options.out, std::strerror(errno));

  const bool is_plain = options.windows == "plain";
  const std::size_t rows_per_file = is_plain ? kPlainRows : kRows;
  std::atomic<std::size_t> next{0};
  std::vector<std::string> errors(options.threads);
  const auto work = [&](unsigned thread) {
    try {
      Worker worker(plan, is_plain ? Windows::kPlain : Windows::kTwoStage);
      std::vector<char> bytes(kHeader + 2 * kSamples + 1);  // one more, to detect longer files
      const Aligned rows = aligned(rows_per_file * kBands);
      const std::size_t bytes_out = sizeof(float) * rows_per_file * kBands;
      for (std::size_t i = next++; i < paths.size(); i = next++) {
        read_file(paths[i], bytes);
        if (options.fft != "none")
          worker.run(reinterpret_cast<const std::int16_t*>(bytes.data() + kHeader), rows.get());
        if (::pwrite(out.get(), rows.get(), bytes_out, static_cast<off_t>(i * bytes_out)) !=
            static_cast<ssize_t>(bytes_out)) {
          fail(options.out, std::strerror(errno));
        }
      }
    } catch (const std::exception& e) {
      errors[thread] = e.what();
      next = paths.size();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < options.threads; ++t) threads.emplace_back(work, t);
  }
  for (const std::string& error : errors) {
    if (!error.empty()) throw std::runtime_error(error);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "files=%zu rows=%zu start=%.3f seconds=%.3f files_per_second=%.0f fft=%s threads=%u\n",
      paths.size(), paths.size() * rows_per_file, start.count(), took.count(),
      static_cast<double>(paths.size()) / took.count(), options.fft.c_str(), options.threads);
}

}  // namespace
}  // namespace melflow

int main(int argc, char** argv) try {
  melflow::Options options;
  CLI::App app{
      "Mel rows of sensor recordings, fused by hand: the rival of "
      "config/pipelines/leak_two_stage.yaml."};
  app.add_option("dir", options.dir, "folder of WAV files")->required();
  app.add_option("out", options.out, "flat float32 file to write, [files, rows, 32]")->required();
  app.add_option(
         "--fft", options.fft,
         "one real transform a window, two windows in one complex transform, or none: files "
         "are read and as many bytes written, without any computation")
      ->check(CLI::IsMember({"r2c", "pair", "none"}))
      ->capture_default_str();
  app.add_option("--windows", options.windows, "237 windows of a file, or 80 without overlap")
      ->check(CLI::IsMember({"two-stage", "plain"}))
      ->capture_default_str();
  app.add_option("--rate", options.rate, "sample rate of the files [Hz]")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threads", options.threads, "threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  melflow::run(options);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "melflow_hand_fused: %s\n", e.what());
  return 1;
}
