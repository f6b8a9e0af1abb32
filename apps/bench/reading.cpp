// Measures reading: files of 320 kB (10 s of speech in 16 bits at 16 kHz) are opened, checked and
// read as disk_read does it. The page cache is read by one thread per core, the disk by as many
// threads as disk_read.depth allows files to be loaded at once.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "apps/bench/measurements.h"
#include "pipeline/base/cpu.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/threads.h"
#include "stages/audio/reading/file_reader.h"
#include "stages/files/whole_io.h"

namespace melflow {
namespace {

constexpr std::size_t kFiles = 64, kBytes = 320'000;
constexpr int kDepth = 32;

/// The files, and the ways to read them.
class Files {
 public:
  explicit Files(const TemporaryFolder& folder) {
    const std::vector<std::int16_t> samples = tones_and_noise(kBytes / 2);
    for (std::size_t i = 0; i < kFiles; ++i) {
      auto file = std::make_shared<FileRef>();
      file->path = folder / fmt::format("file{}", i);
      file->size = kBytes;
      const UniqueFd fd(::open(file->path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      const int error = fd ? write_whole(fd.get(), samples.data(), kBytes, 0) : errno;
      if (error != 0)
        throw RunError(fmt::format("{}: cannot be written: {}", file->path, std::strerror(error)));
      all_.push_back(std::move(file));
    }
  }

  /// Reads file number `i` and returns its size [bytes]. Thread-safe.
  double read(std::size_t i) {
    const std::shared_ptr<const FileRef>& file = all_[i % kFiles];
    const auto bytes = reader_.read(file, pool_);
    if (!bytes.ok()) throw RunError(fmt::format("{}: {}", file->path, bytes.error().reason));
    return kBytes;
  }

  /// Drops the files from the page cache. Returns false where it keeps some of them.
  [[nodiscard]] bool drop() const {
    // A page that was just written may stay for a moment on a list of some core.
    for (int round = 0; round < 20; ++round) {
      bool is_any_left = false;
      for (const auto& file : all_) {
        const UniqueFd fd(::open(file->path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!fd || fdatasync(fd.get()) != 0 ||
            posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) != 0)
          return false;
        is_any_left |= is_cached(fd.get());
      }
      if (!is_any_left) return true;
    }
    return false;
  }

 private:
  // Asks mincore: a read that must not block would make the system start loading the file.
  static bool is_cached(int fd) {
    void* const at = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return true;
    std::vector<unsigned char> pages(kBytes / 4096 + 1);  // no page is smaller
    const bool is_known = ::mincore(at, kBytes, pages.data()) == 0;
    ::munmap(at, kBytes);
    bool is_any = !is_known;
    for (const unsigned char page : pages) is_any |= (page & 1U) != 0;
    return is_any;
  }

  FileReader reader_{{.buffer = 128 << 10, .whole = 4 << 20}};
  BufferPool pool_{kDepth * (1 << 20)};
  std::vector<std::shared_ptr<const FileRef>> all_;
};

double warm(Files& files, int threads, const Slice& slice) {
  std::atomic<std::size_t> next{0};
  return rate_on(threads, slice, [&]() -> Work { return [&] { return files.read(next++); }; }) /
         1e6;
}

double cold(Files& files, const Slice& slice) {
  const auto began = std::chrono::steady_clock::now();
  double seconds = 0, bytes = 0;
  do {
    if (!files.drop()) continue;
    std::atomic<std::size_t> next{0};
    const auto reading_began = std::chrono::steady_clock::now();
    on_threads(kDepth, [&] {
      for (std::size_t i = next++; i < kFiles; i = next++) (void)files.read(i);
    });
    seconds += Slice::seconds_since(reading_began);
    bytes += kFiles * kBytes;
  } while (!slice.is_over(began));
  return seconds > 0 ? bytes / seconds / 1e6 : 0;
}

}  // namespace

std::vector<Measurement> reading(const TemporaryFolder& folder) {
  const auto files = std::make_shared<Files>(folder);
  const int cores = available_cpus();
  Measurement from_disk{fmt::format("read files from the disk, {} at once", kDepth), "MB/s",
                        [=](const Slice& slice) { return cold(*files, slice); }};
  if (!files->drop())
    from_disk.why_not = "this file system keeps files in memory; --dir takes a folder on a disk";
  return {{"read files in the page cache, " + cores_text(cores), "MB/s",
           [=](const Slice& slice) { return warm(*files, cores, slice); }},
          std::move(from_disk)};
}

}  // namespace melflow
