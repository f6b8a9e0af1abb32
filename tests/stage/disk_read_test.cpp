#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <functional>

#include "stages/audio/reading/uring_engine.h"
#include "tests/stage/bench.h"
#include "tests/stage/failing_calls.h"
#include "tests/support/printing.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/watchdog.h"

namespace melflow::test::disk_read_test {
namespace {

// Adds each engine to the options; io_uring only where the system allows it.
std::vector<std::string> with_engines(const std::string& options) {
  std::vector<std::string> out{options};
  for (const char* engine : {"inline", "threads", "io_uring"}) {
    if (std::string(engine) == "io_uring" && !uring_refusal().empty()) {
      skip("io_uring: " + uring_refusal());
      continue;
    }
    const std::string more = options == "{}" ? "" : ", " + options.substr(1, options.size() - 2);
    out.push_back(std::string("{engine: ") + engine + more + "}");
  }
  return out;
}

std::shared_ptr<const FileRef> listed(const std::string& path, std::int64_t size = -1) {
  auto file = std::make_shared<FileRef>();
  file->path = path;
  struct stat st {};
  if (size >= 0)
    file->size = static_cast<std::uint64_t>(size);
  else if (stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode))
    file->size = static_cast<std::uint64_t>(st.st_size);
  return file;
}

std::string pattern(std::size_t bytes) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 31 + (i >> 8));
  return out;
}

std::string content(const RawBytes& raw) {
  if (raw.data) return {reinterpret_cast<const char*>(raw.data.data()), raw.data.size()};
  std::string out(raw.size, '\0');
  const ssize_t n = pread(raw.fd.get(), out.data(), out.size(), 0);
  out.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return out;
}

void age_access_time(const std::string& path) {
  const timespec times[] = {{1'000'000'000, 0}, {0, UTIME_OMIT}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

std::int64_t access_time(const std::string& path) {
  struct stat st {};
  REQUIRE(stat(path.c_str(), &st) == 0);
  return st.st_atim.tv_sec;
}

}  // namespace

TEST_CASE("disk_read: files up to `whole` come in memory, larger ones open; both with every byte") {
  struct Row {
    std::size_t bytes;
    const char* options;
    bool in_memory;
  };
  const Row rows[] = {
      {1, "{}", true},
      {4095, "{buffer: 4096, whole: 4096}", true},
      {4096, "{buffer: 4096, whole: 4096}", true},
      {4097, "{buffer: 4096, whole: 4096}", false},
      {100'000, "{buffer: 4096, whole: 100000}", true},
      {100'001, "{buffer: 4096, whole: 100000}", false},
      {200'000, "{noatime: false}", true},
      {200'000, "{advise: none}", true},
      {200'000, "{advise: willneed, whole: 4096}", false},
  };
  const TempFolder folder;
  for (const Row& row : rows)
    for (const std::string& options : with_engines(row.options)) {
      CAPTURE(row.bytes);
      CAPTURE(options);
      const std::string bytes = pattern(row.bytes);
      const std::string path = folder.write("file", bytes);
      Bench bench("disk_read", options);
      const auto file = listed(path);
      const auto read = bench.single<RawBytes>(file);
      REQUIRE_MESSAGE(read.ok(), read.entry.reason);
      REQUIRE(read.blocks.size() == 1);
      const RawBytes& raw = *read.blocks[0];
      CHECK(bool(raw.data) == row.in_memory);
      CHECK(bool(raw.fd) == !row.in_memory);
      CHECK(raw.size == row.bytes);
      CHECK(raw.file == file);
      CHECK(content(raw) == bytes);
      // Memory that is held was charged.
      const std::size_t bound = bench.stage().output_bound({path, row.bytes}, row.bytes);
      if (row.in_memory) CHECK(raw.data.capacity() <= bound);
      if (!row.in_memory) CHECK(raw.window <= bound);
    }
}

TEST_CASE(
    "disk_read: what is not a readable file is named, and skipped only where nothing was to do") {
  const TempFolder folder;
  const Watchdog watchdog("disk_read on odd files");
  folder.folder("folder.wav");
  REQUIRE(mkfifo((folder / "fifo.wav").c_str(), 0644) == 0);
  REQUIRE(symlink("nowhere", (folder / "dangling.wav").c_str()) == 0);
  REQUIRE(symlink("circle.wav", (folder / "circle.wav").c_str()) == 0);
  REQUIRE(symlink("folder.wav", (folder / "link.wav").c_str()) == 0);
  folder.write("empty.wav", "");
  folder.write("file", "x");
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder / "socket.wav").copy(address.sun_path, sizeof(address.sun_path) - 1);
  REQUIRE(bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  struct Row {
    std::string path;
    Outcome outcome;
    std::string reason;
  };
  const Row rows[] = {
      {folder / "folder.wav", Outcome::skipped, "is a folder, not a file"},
      {folder / "link.wav", Outcome::skipped, "is a folder, not a file"},
      {folder / "fifo.wav", Outcome::skipped, "is a FIFO, not a file"},
      {"/dev/null", Outcome::skipped, "is a device, not a file"},
      {folder / "socket.wav", Outcome::skipped, "is a socket or a device"},
      {folder / "dangling.wav", Outcome::failed, "is a link that leads nowhere"},
      {folder / "circle.wav", Outcome::failed, "is a link that leads in a circle"},
      {folder / "empty.wav", Outcome::failed, "empty file (0 bytes)"},
      {folder / "gone.wav", Outcome::failed, "does not exist (any more)"},
      {folder / "file/x.wav", Outcome::failed, "cannot be read: Not a directory"},
      {folder / std::string(300, 'a'), Outcome::failed, "cannot be read: File name too long"},
  };
  for (const std::string& options : with_engines("{noatime: false}")) {
    for (const Row& row : rows) {
      CAPTURE(options);
      CAPTURE(row.path);
      Bench bench("disk_read", options);
      const auto read = bench.single<RawBytes>(listed(row.path));
      CHECK(read.blocks.empty());
      CHECK(read.entry.outcome == row.outcome);
      CHECK(read.entry.reason == row.reason);
    }
  }
  close(socket_fd);
}

TEST_CASE("disk_read: a file that changed since it was listed fails, rather than break its bound") {
  struct Row {
    const char* what;
    std::size_t now;
    std::int64_t listed;
    std::string reason;  ///< "" for ok
  };
  const Row rows[] = {
      {"grown", 3000, 2000, "changed while it was read: 2000 bytes when listed, 3000 now"},
      {"grown to a large one", 9000, 2000,
       "changed while it was read: 2000 bytes when listed, 9000 now"},
      {"shrunk", 1000, 2000, ""},
      {"shrunk from a large one", 1000, 9000, ""},
      {"a large one grown", 9500, 9000, ""},
      {"size was not known", 3000, 0, "changed while it was read: 0 bytes when listed, 3000 now"},
  };
  const TempFolder folder;
  for (const Row& row : rows)
    for (const std::string& options : with_engines("{whole: 8192, buffer: 4096}")) {
      CAPTURE(std::string(row.what));
      CAPTURE(options);
      const std::string bytes = pattern(row.now);
      const std::string path = folder.write("file", bytes);
      Bench bench("disk_read", options);
      const auto file = listed(path, row.listed);
      const auto read = bench.single<RawBytes>(file);
      CHECK(read.ok() == row.reason.empty());
      CHECK(read.entry.reason == row.reason);
      if (!read.ok()) continue;
      const RawBytes& raw = *read.blocks.at(0);
      CHECK(content(raw) == bytes);
      const std::size_t bound = bench.stage().output_bound({path, file->size}, file->size);
      if (raw.data) CHECK(raw.data.capacity() <= bound);
    }
}

TEST_CASE(
    "disk_read: a file that is written to while it is read fails, one that is only moved does "
    "not") {
  struct Row {
    const char* what;
    std::function<void(const std::string&)> happens;
    bool fails;
  };
  const auto rewrite = [](const std::string& path) {
    const std::string other(8000, 'y');
    const int fd = ::open(path.c_str(), O_WRONLY);
    CHECK(::pwrite(fd, other.data(), other.size(), 0) == 8000);
    ::close(fd);
  };
  const auto set_time = [](const std::string& path, std::int64_t seconds) {
    const timespec times[] = {{0, UTIME_OMIT}, {seconds, 0}};
    CHECK(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  };
  const auto changed = [](const std::string& path) {
    struct stat st {};
    ::stat(path.c_str(), &st);
    return st.st_ctim;
  };
  const Row rows[] = {
      {"nothing", [](const std::string&) {}, false},
      {"rewritten",
       [&](const std::string& path) {
         rewrite(path);
         set_time(path, 2'000'000'000);
       },
       true},
      {"rewritten, and its time put back",
       [&](const std::string& path) {
         const timespec before = changed(path);
         do {  // the inode clock may be coarser than this one
           rewrite(path);
           set_time(path, 1'000'000'000);
         } while (changed(path).tv_nsec == before.tv_nsec);
       },
       true},
      {"new permissions", [](const std::string& path) { ::chmod(path.c_str(), 0600); }, false},
      {"another link",
       [](const std::string& path) {
         CHECK(::link(path.c_str(), (path + ".backup").c_str()) == 0);
       },
       false},
  };
  const TempFolder folder;
  for (const Row& row : rows)
    for (const std::string& options : with_engines("{buffer: 4096}")) {
      CAPTURE(std::string(row.what));
      CAPTURE(options);
      const std::string path = folder.write("file", std::string(8000, 'x'));
      set_time(path, 1'000'000'000);
      ::unlink((path + ".backup").c_str());
      ::chmod(path.c_str(), 0644);
      Bench bench("disk_read", options);
      const AfterFstat after(path, [&] { row.happens(path); });
      const auto read = bench.single<RawBytes>(listed(path));
      CHECK(read.ok() != row.fails);
      if (row.fails)
        CHECK(read.entry.reason ==
              "changed while it was read: it was written to, so that its samples may be of two "
              "recordings");
    }
}

TEST_CASE("disk_read: the access time stays, unless noatime is off") {
  const TempFolder folder;
  const std::string path = folder.write("file", pattern(10'000));
  // Mount options may keep access times unchanged.
  age_access_time(path);
  CHECK(read_bytes(path).size() == 10'000);
  if (access_time(path) == 1'000'000'000) {
    skip("this file system does not keep access times");
    return;
  }
  for (const bool noatime : {true, false}) {
    for (const char* size : {"whole: 4096", "whole: 65536"}) {
      CAPTURE(noatime);
      CAPTURE(size);
      for (const std::string& options : with_engines(std::string("{buffer: 4096, ") + size +
                                                     (noatime ? "}" : ", noatime: false}"))) {
        CAPTURE(options);
        age_access_time(path);
        Bench bench("disk_read", options);
        const auto read = bench.single<RawBytes>(listed(path));
        REQUIRE(read.ok());
        CHECK(content(*read.blocks[0]).size() == 10'000);
        CHECK((access_time(path) == 1'000'000'000) == noatime);
      }
    }
  }
}

TEST_CASE("disk_read: a file that belongs to somebody else is read all the same") {
  const TempFolder folder;
  const std::string path = folder.write("file", pattern(10'000));
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  const OtherUser other;
  struct stat st {};
  REQUIRE(stat(path.c_str(), &st) == 0);
  if (!other.ok() || st.st_uid == geteuid()) {
    skip("cannot act as another user than the owner");
    return;
  }
  // Once refused, O_NOATIME is not tried again; the second file is opened without it.
  for (const std::string& options : with_engines("{}")) {
    CAPTURE(options);
    Bench bench("disk_read", options);
    for (int i = 0; i < 2; ++i) {
      const auto read = bench.single<RawBytes>(listed(path));
      REQUIRE_MESSAGE(read.ok(), read.entry.reason);
      CHECK(content(*read.blocks[0]) == pattern(10'000));
    }
  }
}

TEST_CASE("disk_read: a file that may not be read fails with the system's reason") {
  const TempFolder folder;
  const std::string closed_file = folder.write("closed.wav", "x");
  const std::string in_closed = folder.write("closed/a.wav", "x");
  REQUIRE(chmod(closed_file.c_str(), 0) == 0);
  REQUIRE(chmod((folder / "closed").c_str(), 0) == 0);
  const OtherUser other;
  if (!other.ok()) {
    skip("cannot act as a user without rights");
    return;
  }
  for (const std::string& options : with_engines("{}")) {
    CAPTURE(options);
    Bench bench("disk_read", options);
    for (const std::string& path : {closed_file, in_closed, folder / "closed"}) {
      CAPTURE(path);
      const auto read = bench.single<RawBytes>(listed(path));
      CHECK(read.entry.outcome == Outcome::failed);
      CHECK(read.entry.reason == "cannot be read: Permission denied");
    }
  }
}

TEST_CASE("disk_read: no file costs more than the largest, which the plan is checked with") {
  Bench bench("disk_read", "{whole: 1MiB, buffer: 64KiB}");
  std::size_t before = 0;
  for (const std::size_t size : {0UL, 1UL, 5000UL, 1UL << 20, (1UL << 20) + 1, 1UL << 40}) {
    CAPTURE(size);
    const std::size_t bound = bench.stage().output_bound({"a", size}, size);
    CHECK(bound >= before);
    CHECK(bound <= BufferPool::rounded(1 << 20));
    before = bound;
    // What is in memory beside it, such as a packed member of an archive, counts within that.
    for (const std::size_t held : {5000UL, 1UL << 20, 1UL << 40})
      CHECK(bench.stage().output_bound({"a", size, held}, size) ==
            BufferPool::rounded(std::min<std::size_t>(size + held, 1 << 20)));
  }
}

TEST_CASE("disk_read: options out of range are refused") {
  for (const char* options :
       {"{buffer: 4095}", "{whole: 1}", "{advise: random}", "{engine: uring}", "{noatime: 2}"}) {
    CAPTURE(options);
    CHECK_THROWS_AS(Bench("disk_read", options), ConfigError);
  }
}

TEST_CASE(
    "disk_read: the workers read with engine: auto and inline, other threads with the others") {
  for (const char* options : {"{}", "{engine: auto}", "{engine: inline}"}) {
    CHECK_FALSE(Bench("disk_read", options).stage().resources().blocking);
    CHECK(Bench("disk_read", options).stage().resources().default_concurrency == 0);
  }
  CHECK(Bench("disk_read", "{engine: threads}").stage().resources().blocking);
  CHECK(Bench("disk_read", "{engine: threads}").stage().resources().default_concurrency == 32);
  CHECK(
      Bench("disk_read", "{engine: io_uring, depth: 7}").stage().resources().default_concurrency ==
      7);
}

}  // namespace melflow::test::disk_read_test
