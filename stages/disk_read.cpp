// disk_read: the bytes of a file, without touching its access time.
//
// In:  FileRef.
// Out: RawBytes; files up to `whole` in memory, larger ones open, to be read as they are decoded.

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/registry.h"
#include "stages/items.h"

namespace melflow {

enum class Advise { none, sequential, willneed };
template <>
struct EnumNames<Advise> {
  static constexpr std::pair<const char*, Advise> values[] = {
      {"none", Advise::none}, {"sequential", Advise::sequential}, {"willneed", Advise::willneed}};
};

enum class ReadEngine { in_line, threads };
template <>
struct EnumNames<ReadEngine> {
  static constexpr std::pair<const char*, ReadEngine> values[] = {{"inline", ReadEngine::in_line},
                                                                  {"threads", ReadEngine::threads}};
};

namespace {

struct DiskReadOptions {
  Bytes buffer{128 * 1024};
  bool noatime = true;
  Advise advise = Advise::sequential;
  Bytes whole{4 * 1024 * 1024};
  ReadEngine engine = ReadEngine::in_line;

  void describe(Schema& s) {
    s.field("buffer", buffer, "bytes asked for in one read; also the window on a large file")
        .range(4096, 1 << 30)
        .tuning();
    s.field("noatime", noatime,
            "leave the access time alone (O_NOATIME); files of other owners are read without it")
        .tuning();
    s.field("advise", advise, "what the system is told about a file larger than one buffer")
        .tuning();
    s.field("whole", whole, "files up to this size are read at once, larger ones piece by piece")
        .range(4096, 1 << 30)
        .tuning();
    s.field(
         "engine", engine,
         "inline: read on the workers, best from a warm cache; threads: `concurrency` threads of "
         "its own, so that a slow disk does not hold the workers")
        .tuning();
  }
};

class DiskRead final : public Transform<FileRef, RawBytes> {
 public:
  explicit DiskRead(DiskReadOptions options) : options_(options) {}

  [[nodiscard]] bool blocking() const override { return options_.engine == ReadEngine::threads; }

  // A large file takes no more than a window, but no file may cost more than the largest: what the
  // plan is checked with.
  [[nodiscard]] std::size_t output_bound(const SourceInfo& source, std::size_t) const override {
    return BufferPool::rounded(std::min<std::uint64_t>(source.bytes, options_.whole.count));
  }

  Result<std::shared_ptr<const RawBytes>> process(std::shared_ptr<const FileRef> file,
                                                  ItemContext& context) const override {
    UniqueFd fd;
    if (auto error = open(*file, fd)) return std::move(*error);
    struct stat st {};
    if (fstat(fd.get(), &st) != 0) return failed(errno);
    if (!S_ISREG(st.st_mode)) return ItemError::skipped("is " + kind_of(st.st_mode));
    const auto size = static_cast<std::uint64_t>(st.st_size);
    if (size == 0) return ItemError::failed("empty file (0 bytes)");

    auto out = std::make_shared<RawBytes>();
    out->size = size;
    out->window = window();
    if (is_large(size)) {
      if (!is_large(file->size)) return changed(*file, size);
      advise(fd.get());
      out->fd = std::move(fd);
    } else {
      // What was admitted is what may be held.
      if (size > file->size) return changed(*file, size);
      if (size > options_.buffer.count) advise(fd.get());
      out->data = context.run().pool.lease(size);
      std::size_t got = 0;
      while (got < size) {
        const std::size_t want = std::min<std::size_t>(size - got, options_.buffer.count);
        const ssize_t n = ::read(fd.get(), out->data.data() + got, want);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed(errno);
        if (n == 0)
          return ItemError::failed(
              fmt::format("changed while it was read: {} bytes when opened, {} now", size, got));
        got += static_cast<std::size_t>(n);
      }
    }
    out->file = std::move(file);
    return std::shared_ptr<const RawBytes>(std::move(out));
  }

 private:
  [[nodiscard]] bool is_large(std::uint64_t size) const { return size > options_.whole.count; }
  [[nodiscard]] std::size_t window() const {
    return std::min<std::size_t>(options_.buffer.count, options_.whole.count);
  }

  static ItemError failed(int error) {
    return ItemError::failed(fmt::format("cannot be read: {}", std::strerror(error)));
  }
  static ItemError changed(const FileRef& file, std::uint64_t size) {
    return ItemError::failed(
        fmt::format("changed while it was read: {} bytes when listed, {} now", file.size, size));
  }
  static std::string kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder, not a file";
    if (S_ISFIFO(mode)) return "a FIFO, not a file";
    if (S_ISSOCK(mode)) return "a socket, not a file";
    return "a device, not a file";
  }

  std::optional<ItemError> open(const FileRef& file, UniqueFd& fd) const {
    // O_NONBLOCK: a FIFO among the files must not hold the run until somebody writes to it.
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    const char* path = file.path.c_str();
    if (options_.noatime && !noatime_refused_.load(std::memory_order_relaxed))
      fd = UniqueFd(::open(path, flags | O_NOATIME));
    if (!fd && (errno == EPERM || !options_.noatime || noatime_refused_)) {
      // Only an owner may leave the access time alone. One corpus has one owner, mostly, so the
      // next files are not asked twice.
      const bool was_refused = options_.noatime && errno == EPERM;
      fd = UniqueFd(::open(path, flags));
      if (fd && was_refused) noatime_refused_.store(true, std::memory_order_relaxed);
    }
    if (fd) return std::nullopt;
    const int error = errno;
    struct stat st {};
    if (error == ENOENT && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
      return ItemError::skipped("is a link that leads nowhere");
    if (error == ENOENT) return ItemError::failed("does not exist (any more)");
    if (error == ENXIO || error == ENODEV) return ItemError::skipped("is a socket or a device");
    if (error == ELOOP) return ItemError::skipped("is a link that leads in a circle");
    return failed(error);
  }

  void advise(int fd) const {
    if (options_.advise == Advise::none) return;
    posix_fadvise(
        fd, 0, 0,
        options_.advise == Advise::sequential ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_WILLNEED);
  }

  DiskReadOptions options_;
  mutable std::atomic<bool> noatime_refused_{false};
};

const RegisterStage<DiskRead, DiskReadOptions> registered{
    "disk_read", "Reads files, leaving their access times alone."};

}  // namespace
}  // namespace melflow
