#include "stages/audio/reading/read_ahead.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>

#include "pipeline/base/threads.h"
#include "stages/files/mapped_range.h"

namespace melflow {
namespace {

// Four cold files of those examined, more or less in a row, start the threads.
constexpr int kWaited = 4, kBegins = 16;
// Workers also wait for each other, which looks the same. So threads that only found files in the
// cache rest for some files, and for twice as many the next time.
constexpr std::size_t kLeastRest = 1024, kMostRest = 1 << 20;

}  // namespace

ReadAhead::ReadAhead(const FileReader& reader, const Manifest& files, const Ledger& ledger,
                     int threads)
    : reader_(reader),
      files_(files),
      ledger_(ledger),
      wanted_(threads),
      ahead_(kAheadPerThread * static_cast<std::size_t>(threads) * files.size() /
             std::max<std::size_t>(1, files.recordings())) {}

ReadAhead::~ReadAhead() { stop(); }

long ReadAhead::waits() {
  struct rusage usage {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

void ReadAhead::note_read(std::size_t file, bool waited) {
  if (is_looked_at(file) && file >= rests_until_.load(std::memory_order_relaxed) && is_due(waited))
    begin(file);
  if (!is_active()) return;
  std::size_t at = at_.load(std::memory_order_relaxed);
  while (at < file && !at_.compare_exchange_weak(at, file)) {
  }
  if (at / kRange == file / kRange) return;
  { const std::lock_guard lock(mutex_); }  // a thread that checks at_ now sees it or is notified
  woken_.notify_one();
}

// Whether workers had to wait for enough of the last files.
bool ReadAhead::is_due(bool waited) {
  const int before = cold_.load(std::memory_order_relaxed);
  const int now = std::clamp(before + (waited ? kWaited : -1), 0, kBegins);
  if (now != before) cold_.store(now, std::memory_order_relaxed);
  return now == kBegins && !is_active();
}

void ReadAhead::begin(std::size_t file) {
  const std::lock_guard lock(mutex_);
  if (is_closed_ || is_active()) return;
  cold_.store(0);
  warm_.store(0);
  if (at_.load() < file) at_.store(file);
  loaded_before_ = loaded();
  is_active_.store(true);
  if (threads_.empty())
    for (int i = 0; i < wanted_ && add_thread(threads_, "prefetch", [this] { work(); }); ++i) {
    }
  woken_.notify_all();
}

void ReadAhead::rest() {
  const std::lock_guard lock(mutex_);
  if (!is_active()) return;
  is_active_.store(false);
  rest_ = loaded() > loaded_before_ ? kLeastRest : std::clamp(2 * rest_, kLeastRest, kMostRest);
  rests_until_.store(at_.load() + rest_);
}

void ReadAhead::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    woken_.wait(lock, [this] {
      if (is_closed_) return true;
      next_ = std::max(next_, at_.load() + 1);
      return is_active() && next_ < files_.size() && next_ <= at_.load() + ahead_;
    });
    if (is_closed_) return;
    const std::size_t first = next_;
    const std::size_t end = std::min(first + kRange, files_.size());
    next_ = end;
    lock.unlock();
    for (std::size_t i = first; i < end; ++i) {
      load(i);
      ++seen_;
    }
    lock.lock();
  }
}

// Ignores errors in a file: the worker that reads it reports them.
void ReadAhead::load(std::size_t file) {
  if (ledger_.outcome(file) != Outcome::open || files_.follows_in_recording(file)) return;
  int error = 0;
  FileRef ref;
  ref.path = files_.path(file);
  if (!files_.are_all_files())
    if (const ContainedItem item = contained_(ref.path); item.container)
      item.container->locate(item.name, ref);
  if (ref.container) return;
  const UniqueFd fd = reader_.open(FileReader::file_of(ref), error);
  struct stat st {};
  if (!fd || fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) return;
  const std::uint64_t begin = ref.part ? ref.part->begin : 0,
                      size = ref.part ? ref.part->stored : static_cast<std::uint64_t>(st.st_size);
  if (size == 0 || begin > static_cast<std::uint64_t>(st.st_size) - size) return;
  // Only the beginning of a large file: the system itself prefetches a file read in order.
  const bool is_whole = size <= reader_.settings().whole;
  const std::uint64_t bytes = is_whole ? size : std::min<std::uint64_t>(size, reader_.window());
  if (is_in_page_cache(fd.get(), begin + bytes - 1) == PageCache::holds) {
    if (warm_.fetch_add(1) + 1 >= kWarm) rest();
    return;
  }
  warm_.store(0);
  posix_fadvise(fd.get(), static_cast<off_t>(begin), static_cast<off_t>(bytes),
                POSIX_FADV_WILLNEED);
  ++loaded_;
}

void ReadAhead::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  woken_.notify_all();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

}  // namespace melflow
