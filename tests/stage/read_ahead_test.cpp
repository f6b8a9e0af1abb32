#include "stages/audio/reading/read_ahead.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "stages/files/mapped_range.h"
#include "tests/support/page_cache.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/watchdog.h"

namespace melflow::test::read_ahead_test {
namespace {

constexpr int kThreads = 2;
constexpr std::size_t kAhead = ReadAhead::kAheadPerThread * kThreads;

// Files of one page each, listed in order.
struct Corpus {
  explicit Corpus(std::size_t count) : files(folder.path()) {
    const std::uint32_t top = files.add_folder("");
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = fmt::format("{:04}", i);
      folder.write(name, std::string(4096, 'x'));
      files.add(top, name);
    }
    files.close();
    ledger.open(count, {"read"});
  }
  [[nodiscard]] std::vector<std::string> paths() const {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < files.size(); ++i) out.push_back(files.path(i));
    return out;
  }
  [[nodiscard]] bool has(std::size_t i) const { return is_cached(files.path(i)); }

  const TempFolder folder;
  Manifest files;
  Ledger ledger;
  const FileReader reader{{.buffer = 4096, .whole = 1 << 20}};
};

// Notes enough cold files for read-ahead to begin.
void begin(ReadAhead& ahead) {
  for (std::size_t i = 0; i < 4; ++i) ahead.note_read(i, true);
}

template <class F>
void wait_until(const char* what, F&& is_so) {
  const Watchdog watchdog(what);
  while (!is_so()) std::this_thread::yield();
}

// Waits until most of the files [begin, end) have been in the page cache: all at once they may
// never be, as the system takes pages back where memory is short.
void wait_for_most(const Corpus& corpus, std::size_t begin, std::size_t end) {
  std::set<std::size_t> seen;
  wait_until("files that are being loaded", [&] {
    for (std::size_t i = begin; i < end; ++i)
      if (corpus.has(i)) seen.insert(i);
    return 2 * seen.size() > end - begin;
  });
}

}  // namespace

TEST_CASE("read ahead: begins where workers wait for the disk, not for a single file") {
  const Corpus corpus(8);
  ReadAhead ahead(corpus.reader, corpus.files, corpus.ledger, kThreads);
  for (std::size_t i = 0; i < 1000; ++i) ahead.note_read(i, i % 5 == 0);
  CHECK_FALSE(ahead.is_active());
  for (std::size_t i = 0; i < 3; ++i) ahead.note_read(8 * i, true);
  CHECK_FALSE(ahead.is_active());
  ahead.note_read(24, true);
  CHECK(ahead.is_active());
}

TEST_CASE("read ahead: of later files one in eight is looked at") {
  const Corpus corpus(8);
  ReadAhead ahead(corpus.reader, corpus.files, corpus.ledger, kThreads);
  for (std::size_t i = 65; i < 72; ++i) {
    CHECK_FALSE(ReadAhead::is_looked_at(i));
    ahead.note_read(i, true);
  }
  CHECK_FALSE(ahead.is_active());
}

TEST_CASE("read ahead: loads the next files and goes no further ahead than it may") {
  const Corpus corpus(100);
  if (!evict(corpus.paths())) return skip("files here cannot be taken out of the page cache");
  ReadAhead ahead(corpus.reader, corpus.files, corpus.ledger, kThreads);
  begin(ahead);
  // Not loaded(): to ask whether a file is there starts loading it, which may be done at once.
  wait_until("the first files", [&] { return ahead.seen() == kAhead; });
  wait_for_most(corpus, 4, 4 + kAhead);
  ahead.note_read(4 + kAhead / 2, false);
  wait_until("the next", [&] { return ahead.seen() >= kAhead + kAhead / 2; });
  ahead.stop();
  // Whole ranges.
  const std::size_t end = 4 + kAhead / 2 + kAhead + ReadAhead::kRange;
  CHECK(ahead.seen() <= end - 4);
  for (std::size_t i = end; i < 100; ++i) CHECK_FALSE(corpus.has(i));
  for (std::size_t i = 0; i < 4; ++i) CHECK_FALSE(corpus.has(i));
}

TEST_CASE("read ahead: is not behind the workers, and comes to the end of the list") {
  const Corpus corpus(100);
  if (!evict(corpus.paths())) return skip("files here cannot be taken out of the page cache");
  ReadAhead ahead(corpus.reader, corpus.files, corpus.ledger, kThreads);
  begin(ahead);
  ahead.note_read(89, false);
  wait_for_most(corpus, 90, 100);
  ahead.note_read(99, false);
  ahead.stop();
  CHECK(ahead.loaded() <= 2 * kAhead + 2 * ReadAhead::kRange);
}

TEST_CASE(
    "read ahead: rests where the files are in the page cache, ever longer, and begins again") {
  const Corpus corpus(4000);
  const UniqueFd first(::open(corpus.files.path(0).c_str(), O_RDONLY | O_CLOEXEC));
  if (is_in_page_cache(first.get(), 0) == PageCache::does_not_say)
    return skip("this file system does not say what is in the page cache");
  ReadAhead ahead(corpus.reader, corpus.files, corpus.ledger, kThreads);
  std::size_t at = 0;
  // If the workers overtake it, read-ahead skips files.
  const auto until_it_rests = [&] {
    const std::size_t seen = ahead.seen(), from = at;
    wait_until("files that are there", [&] {
      if (at < from + ReadAhead::kWarm && ahead.seen() - seen + 4 > at - from)
        ahead.note_read(++at, false);
      return !ahead.is_active();
    });
  };
  // Workers wait for files until it begins.
  const auto until_it_begins = [&] {
    const std::size_t from = at;
    while (!ahead.is_active() && at < 4000) ahead.note_read(at++, true);
    return at - from;
  };
  CHECK(until_it_begins() == 4);
  until_it_rests();
  CHECK(ahead.loaded() == 0);
  const std::size_t once = until_it_begins();
  CHECK(once >= 1024 - ReadAhead::kWarm);
  CHECK(once <= 1024 + 8 * 4);
  until_it_rests();
  const std::size_t twice = until_it_begins();
  CHECK(twice >= 2048 - ReadAhead::kWarm);
  CHECK(twice <= 2048 + 8 * 4);
}

TEST_CASE("read ahead: passes over what is done already, as most files of an update are") {
  Corpus corpus(40);
  if (!evict(corpus.paths())) return skip("files here cannot be taken out of the page cache");
  for (std::size_t i = 10; i < 30; ++i) corpus.ledger.close(i, Outcome::not_run, -1, "");
  ReadAhead ahead(corpus.reader, corpus.files, corpus.ledger, kThreads);
  begin(ahead);
  ahead.note_read(8, false);
  ahead.note_read(28, false);
  wait_for_most(corpus, 30, 40);
  ahead.stop();
  for (std::size_t i = 10; i < 30; ++i) CHECK_FALSE(corpus.has(i));
}

TEST_CASE("read ahead: leaves to who reads them what is no file, and goes on") {
  Corpus corpus(40);
  if (!evict(corpus.paths())) return skip("files here cannot be taken out of the page cache");
  for (const char* name : {"0005", "0006", "0007"}) std::filesystem::remove(corpus.folder / name);
  std::filesystem::create_directory(corpus.folder / "0006");
  REQUIRE(mkfifo((corpus.folder / "0007").c_str(), 0600) == 0);
  ReadAhead ahead(corpus.reader, corpus.files, corpus.ledger, kThreads);
  begin(ahead);
  ahead.note_read(30, false);
  wait_for_most(corpus, 30, 40);
}

TEST_CASE("read ahead: an end before it has begun, and twice") {
  const Corpus corpus(40);
  ReadAhead ahead(corpus.reader, corpus.files, corpus.ledger, kThreads);
  ahead.stop();
  begin(ahead);
  CHECK_FALSE(ahead.is_active());
  ahead.stop();
  CHECK(ahead.seen() == 0);
}

}  // namespace melflow::test::read_ahead_test
