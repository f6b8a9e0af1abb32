#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "pipeline/base/problem.h"
#include "stages/audio/store/audio_cache_file.h"
#include "stages/files/mapped_range.h"
#include "stages/files/unique_fd.h"
#include "tests/support/small_disk.h"
#include "tests/support/temp_folder.h"

namespace melflow::test::audio_cache_file_test {
namespace {

using File = AudioCacheFile;

const CacheKey kKey{12, 34};

// Makes samples of recording `number`, with individual length and content.
std::vector<std::int16_t> recording(unsigned number) {
  std::vector<std::int16_t> out(100 + 37 * (number % 50));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::int16_t>(number * 7919 + i * 31);
  return out;
}
CacheKey key_of(unsigned number) { return cache_key("recording " + std::to_string(number)); }
FileStamp stamp_of_number(unsigned number) { return {1000 + number, 5'000'000'000 + number}; }

// Stores a recording in `pieces` extents.
bool put(File& file, unsigned number, std::size_t pieces = 1) {
  const auto samples = recording(number);
  const auto bytes = std::as_bytes(std::span(samples));
  File::Entry e;
  e.key = key_of(number);
  e.stamp = stamp_of_number(number);
  e.count = static_cast<std::int64_t>(samples.size());
  e.type = static_cast<std::uint16_t>(SampleType::int16);
  e.sample_rate = 16000;
  e.file_rate = 44100;
  e.file_frames = 5'000 + number;
  e.checksum = XXH3_64bits(bytes.data(), bytes.size());
  std::vector<File::Extent> extents;
  const std::size_t step = (samples.size() / pieces) * sizeof(std::int16_t);
  for (std::size_t i = 0; i < pieces; ++i) {
    const auto part = i + 1 == pieces ? bytes.subspan(i * step) : bytes.subspan(i * step, step);
    const auto extent = file.append(part);
    if (!extent) return false;
    extents.push_back(*extent);
  }
  return file.add(e, extents);
}

// Returns "" if the file returns the recording as stored, else the difference.
std::string look(const File& file, unsigned number) {
  const auto entry = file.find(key_of(number), stamp_of_number(number));
  if (!entry) return "not found";
  if (!file.verify(*entry)) return "damaged";
  if (entry->sample_rate != 16000 || entry->file_rate != 44100 ||
      entry->file_frames != 5'000 + number ||
      entry->type != static_cast<std::uint32_t>(SampleType::int16))
    return "other samples";
  std::vector<std::byte> got;
  for (const auto& piece : file.samples(*entry)) got.insert(got.end(), piece.begin(), piece.end());
  const auto samples = recording(number);
  const auto bytes = std::as_bytes(std::span(samples));
  return std::equal(got.begin(), got.end(), bytes.begin(), bytes.end()) ? "" : "other samples";
}

unsigned count_good(const File& file, unsigned most) {
  unsigned n = 0;
  for (unsigned i = 0; i < most; ++i) {
    const std::string found = look(file, i);
    if (found.empty()) ++n;
    CHECK(found != "other samples");
  }
  return n;
}

void build(const std::string& path, unsigned first, unsigned end) {
  File file(path, kKey);
  REQUIRE(file.is_writer());
  for (unsigned i = first; i < end; ++i) REQUIRE(put(file, i, 1 + i % 3));
  REQUIRE(file.commit());
}

void flip(const std::string& path, std::size_t at) {
  std::string bytes = read_bytes(path);
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 4);
  write_bytes(path, bytes);
}

}  // namespace

TEST_CASE("audio cache: what is committed is found again, by path, size and time") {
  const TempFolder folder;
  const std::string path = folder / "a.cache";
  build(path, 0, 500);
  const File file(path, kKey);
  CHECK(file.note() == "");
  CHECK(file.entries() == 500);
  CHECK(count_good(file, 500) == 500);
  CHECK(look(file, 500) == "not found");
  FileStamp stamp = stamp_of_number(3);
  ++stamp.size;
  CHECK_FALSE(file.find(key_of(3), stamp));
  stamp = stamp_of_number(3);
  ++stamp.modified;
  CHECK_FALSE(file.find(key_of(3), stamp));
  const auto entry = file.find(key_of(3), stamp_of_number(3));
  REQUIRE(entry);
  CHECK(entry->sample_rate == 16000);
  CHECK(entry->count == static_cast<std::int64_t>(recording(3).size()));
}

TEST_CASE("audio cache: later commits add, and replace what has another state") {
  const TempFolder folder;
  const std::string path = folder / "a.cache";
  build(path, 0, 100);
  build(path, 100, 250);
  {
    File file(path, kKey);
    CHECK(file.entries() == 250);
    // Stores other samples under the same path.
    auto samples = recording(777);
    const auto bytes = std::as_bytes(std::span(samples));
    File::Entry e;
    e.key = key_of(5);
    e.stamp = {1, 2};
    e.count = static_cast<std::int64_t>(samples.size());
    e.type = static_cast<std::uint16_t>(SampleType::int16);
    e.checksum = XXH3_64bits(bytes.data(), bytes.size());
    const auto extent = file.append(bytes);
    REQUIRE(extent);
    REQUIRE(file.add(e, std::span(&*extent, 1)));
    CHECK(look(file, 5) == "");  // not before it is opened again
  }
  {
    // The recording was not committed.
    const File file(path, kKey);
    CHECK(look(file, 5) == "");
    CHECK_FALSE(file.find(key_of(5), {1, 2}));
  }
}

TEST_CASE("audio cache: entries beyond a quarter of what is there are committed by themselves") {
  const TempFolder folder;
  File file(folder / "a.cache", kKey);
  for (unsigned i = 0; i < 5000; ++i) REQUIRE(put(file, i));
  const File other(folder / "a.cache", kKey, File::Access::read_only);
  CHECK(other.entries() >= 3000);
  CHECK(count_good(other, 5000) == other.entries());
}

TEST_CASE("audio cache: a build that is killed leaves its last commit") {
  const TempFolder folder;
  const std::string path = folder / "a.cache";
  build(path, 0, 40);
  for (const bool commits : {false, true}) {
    CAPTURE(commits);
    const pid_t child = fork();
    if (child == 0) {
      File file(path, kKey);
      for (unsigned i = 40; i < 80; ++i) put(file, i);
      if (commits) (void)file.commit();
      for (unsigned i = 80; i < 120; ++i) put(file, i);
      ::raise(SIGKILL);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    {
      const File file(path, kKey);
      CHECK(file.is_writer());  // the lock ended with the process
      CHECK(file.note() == "");
      CHECK(count_good(file, 120) == (commits ? 80 : 40));
    }
  }
  build(path, 80, 120);
  CHECK(count_good(File(path, kKey), 120) == 120);
}

TEST_CASE("audio cache: a build that never committed is started over") {
  const TempFolder folder;
  const std::string path = folder / "a.cache";
  {
    File file(path, kKey);
    for (unsigned i = 0; i < 40; ++i) REQUIRE(put(file, i));
  }
  {
    const File file(path, kKey);
    CHECK(file.note() == "");
    CHECK(file.entries() == 0);
    CHECK(count_good(file, 40) == 0);
  }
  build(path, 0, 30);
  CHECK(count_good(File(path, kKey), 40) == 30);
}

TEST_CASE("audio cache: an entry that no recording can have is as if it were not there") {
  struct Row {
    const char* what;
    void (*spoil)(File::Entry&);
  };
  const Row rows[] = {
      {"no rate", [](File::Entry& e) { e.sample_rate = 0; }},
      {"no rate of the file", [](File::Entry& e) { e.file_rate = -1; }},
      {"frames below 0", [](File::Entry& e) { e.file_frames = -1; }},
      {"a count that wraps", [](File::Entry& e) { e.count = std::int64_t{1} << 62; }},
      {"samples of no type", [](File::Entry& e) { e.type = 9; }},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    const TempFolder folder;
    {
      File file(folder / "cache", kKey);
      const auto samples = recording(0);
      const auto extent = file.append(std::as_bytes(std::span(samples)));
      REQUIRE(extent);
      File::Entry e;
      e.key = key_of(0);
      e.stamp = stamp_of_number(0);
      e.count = static_cast<std::int64_t>(samples.size());
      e.sample_rate = e.file_rate = 16000;
      row.spoil(e);
      REQUIRE(file.add(e, {&*extent, 1}));
      REQUIRE(file.commit());
    }
    CHECK_FALSE(File(folder / "cache", kKey).find(key_of(0), stamp_of_number(0)).has_value());
  }
}

TEST_CASE("audio cache: a flipped bit anywhere never gives other samples") {
  const TempFolder folder;
  const std::string good = folder / "good.cache", path = folder / "a.cache";
  build(good, 0, 12);
  build(good, 12, 24);
  const std::size_t size = read_bytes(good).size();
  std::size_t whole = 0, older = 0, none = 0, partly = 0;
  // The index of the last commit is at the end.
  for (std::size_t at = 0; at < size; at += at < 4096 ? 7 : at < size - 5120 ? 97 : 13) {
    CAPTURE(at);
    std::filesystem::copy_file(good, path, std::filesystem::copy_options::overwrite_existing);
    flip(path, at);
    {
      const File file(path, kKey);
      CHECK(file.is_writer());
      switch (const unsigned n = count_good(file, 24)) {
        case 24:
          ++whole;
          break;
        case 12:
          ++older;
          break;
        case 0:
          ++none;
          break;
        default:
          ++partly;
          CHECK(n >= 23 - 12);
      }
    }
    build(path, 0, 24);  // it can always be completed
    CHECK(count_good(File(path, kKey), 24) == 24);
  }
  CHECK(whole > 0);   // unused bytes
  CHECK(older > 0);   // the last commit is damaged, the one before is intact
  CHECK(none > 0);    // the header is damaged
  CHECK(partly > 0);  // samples are damaged
}

TEST_CASE("audio cache: truncated, foreign and other files are replaced, not used") {
  const TempFolder folder;
  const std::string good = folder / "good.cache", path = folder / "a.cache";
  build(good, 0, 20);
  const std::string bytes = read_bytes(good);
  struct Row {
    const char* what;
    std::string content;
    bool noted;
  };
  std::string version = bytes;
  version[8] = 9;
  const Row rows[] = {{"cut in the index", bytes.substr(0, bytes.size() - 100), true},
                      {"cut in the samples", bytes.substr(0, 5000), true},
                      {"cut in the header", bytes.substr(0, 100), true},
                      {"empty", "", false},
                      {"something else", std::string(10000, 'x'), true},
                      {"text", "not a cache\n", true},
                      {"another version", version, true}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    write_bytes(path, row.content);
    {
      const File file(path, kKey);
      CHECK(!file.note().empty() == row.noted);
      CHECK(file.is_writer());
      CHECK(count_good(file, 20) == 0);
    }
    CHECK_FALSE(std::filesystem::exists(path + ".new"));
    build(path, 0, 20);
    CHECK(count_good(File(path, kKey), 20) == 20);
  }
  // A cache with other settings under this name.
  const File other(path, CacheKey{1, 1});
  CHECK(other.entries() == 0);
  CHECK(other.note() != "");
}

TEST_CASE("audio cache: one writes, others read what is committed") {
  const TempFolder folder;
  const std::string path = folder / "a.cache";
  build(path, 0, 10);
  File writer(path, kKey);
  REQUIRE(writer.is_writer());
  for (unsigned i = 10; i < 20; ++i) REQUIRE(put(writer, i));
  const File before(path, kKey);
  CHECK_FALSE(before.is_writer());
  CHECK(before.note().find("another run") != std::string::npos);
  CHECK(count_good(before, 20) == 10);
  REQUIRE(writer.commit());
  CHECK(count_good(before, 20) == 10);  // as when it was opened
  CHECK(count_good(File(path, kKey), 20) == 20);
  // A reader keeps its contents while the file is replaced.
  const std::string bytes = read_bytes(path);
  std::filesystem::rename(path, path + ".old");
  write_bytes(path, "nothing");
  {
    const File replaced(path, kKey);
    CHECK(replaced.is_writer());
    CHECK(replaced.entries() == 0);
  }
  CHECK(count_good(before, 20) == 10);
  CHECK(bytes == read_bytes(path + ".old"));
}

TEST_CASE("audio cache: readers are right at any moment of a build") {
  const TempFolder folder;
  const std::string path = folder / "a.cache";
  { const File made(path, kKey); }
  const pid_t child = fork();
  if (child == 0) {
    File file(path, kKey);
    for (unsigned i = 0; i < 600; ++i) {
      put(file, i);
      if (i % 3 == 0) (void)file.commit();
    }
    (void)file.commit();
    ::_exit(0);
  }
  int status = 0;
  std::size_t most = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    const File file(path, kKey, File::Access::read_only);
    CHECK(file.entries() >= most);
    most = file.entries();
    CHECK(count_good(file, 600) == most);
  }
  REQUIRE(WIFEXITED(status));
  CHECK(count_good(File(path, kKey), 600) == 600);
}

TEST_CASE("audio cache: many threads append at once") {
  const TempFolder folder;
  const std::string path = folder / "a.cache";
  {
    File file(path, kKey);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&file, t] {
        for (unsigned i = t; i < 4000; i += 4) put(file, i, 1 + i % 2);
      });
    for (std::thread& t : threads) t.join();
    CHECK(file.commit());
  }
  CHECK(count_good(File(path, kKey), 4000) == 4000);
}

TEST_CASE("audio cache: a full disk stops the writing, what was committed stays") {
  const TempFolder folder;
  const std::string path = folder / "a.cache";
  build(path, 0, 20);
  {
    const FileSizeLimit limit(std::filesystem::file_size(path) + 2000);
    File file(path, kKey);
    bool is_full = false;
    for (unsigned i = 20; i < 60 && !is_full; ++i) is_full = !put(file, i);
    CHECK(is_full);
    CHECK(file.error() != "");
    CHECK_FALSE(file.commit());
  }
  CHECK(count_good(File(path, kKey), 60) == 20);
}

TEST_CASE("audio cache: without the right to write it is read, or says why not") {
  const TempFolder folder;
  const std::string path = folder / "a.cache";
  build(path, 0, 20);
  ::chmod(path.c_str(), 0444);
  const OtherUser nobody;
  if (!nobody.ok()) return;
  const File file(path, kKey);
  CHECK_FALSE(file.is_writer());
  CHECK(file.note().find("cannot be written: Permission denied") != std::string::npos);
  CHECK(count_good(file, 20) == 20);
  CHECK_THROWS_WITH_AS(File(folder / "b.cache", kKey),
                       (folder / "b.cache: cannot be written: Permission denied").c_str(),
                       RunError);
}

// Returns the bytes of the file that are mapped and in memory because this process accessed them.
std::size_t touched_bytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t kib = 0;
  bool is_file = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) is_file = line.ends_with(path);
    if (is_file && line.starts_with("Rss:")) kib += std::stoul(line.substr(4));
  }
  return 1024 * kib;
}

// The index of a closed file, and the number of entries that a look-up visits.
class Index {
 public:
  explicit Index(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    CachePage page{};
    REQUIRE(::pread(fd_.get(), page.data(), page.size(), 0) == static_cast<ssize_t>(page.size()));
    commit_ = cache_commits(page)[0];
    map_ = MappedRange(fd_.get(), commit_.index_offset, bytes());
    REQUIRE(map_.data() != nullptr);
  }
  [[nodiscard]] std::size_t bytes() const { return commit_.capacity * sizeof(CacheEntry); }
  [[nodiscard]] std::size_t visited(const CacheKey& key) const {
    const auto* table = reinterpret_cast<const CacheEntry*>(map_.data());
    return (cache_place_of(table, commit_.capacity, key) - key.low) % commit_.capacity + 1;
  }

 private:
  UniqueFd fd_;
  CacheCommit commit_;
  MappedRange map_;
};

TEST_CASE("audio cache: opening reads no samples, and a look-up visits few places") {
  const TempFolder folder;
  const std::string path = folder / "a.cache";
  constexpr unsigned kFiles = 60'000;
  std::size_t sample_bytes = 0;
  {
    File file(path, kKey);
    for (unsigned i = 0; i < kFiles; ++i) {
      REQUIRE(put(file, i));
      sample_bytes += recording(i).size() * sizeof(std::int16_t);
    }
    REQUIRE(file.commit());
  }
  const File file(path, kKey);
  unsigned found = 0;
  for (unsigned i = 0; i < kFiles; ++i)
    if (file.find(key_of(i), stamp_of_number(i))) ++found;
  CHECK(found == kFiles);
  const std::size_t touched = touched_bytes(path);
  const Index index(path);
  constexpr std::size_t kBesideIt = 1 << 20;  // a page fault also maps adjacent pages
  REQUIRE(sample_bytes > 4 * (index.bytes() + kBesideIt));
  CHECK(touched >= index.bytes());
  CHECK(touched <= index.bytes() + kBesideIt);

  std::size_t visited = 0;
  for (unsigned i = 0; i < kFiles; ++i) visited += index.visited(key_of(i));
  CHECK(visited < 3 * std::size_t{kFiles});
}

}  // namespace melflow::test::audio_cache_file_test
