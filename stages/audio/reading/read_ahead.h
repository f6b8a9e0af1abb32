// read_ahead.h - makes the system load files into the page cache before workers read them, if
// workers would otherwise wait for a disk.
//
// In:  the list of files; which of them a worker has just read, and whether it had to wait.
// Out: the next files, in the page cache. No byte is copied or kept; workers read every file as
//      they would without this.
//
// Its threads are started when the first files turn out to be cold, and rest while files turn out
// to be in the cache already.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "pipeline/stage/ledger.h"
#include "stages/audio/reading/file_reader.h"
#include "stages/containers/container.h"
#include "stages/manifest.h"

namespace melflow {

class ReadAhead {
 public:
  // Files that a thread takes at a time; files per thread that are loaded before their turn.
  static constexpr std::size_t kRange = 4;
  static constexpr std::size_t kAheadPerThread = 8;
  // The threads rest after this many files in a row that are in the cache already.
  static constexpr std::size_t kWarm = 128;

  // All arguments must outlive this object. Files whose ledger records are closed are skipped,
  // because they will not be read.
  ReadAhead(const FileReader& reader, const Manifest& files, const Ledger& ledger, int threads);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();

  // Whether to measure if the read of this file has to wait: always for the first files, then for
  // one in eight, since measuring takes time.
  [[nodiscard]] static bool is_looked_at(std::size_t file) { return file < 64 || file % 8 == 0; }
  // How often the calling thread has left its core to wait.
  [[nodiscard]] static long waits();

  // Notes that a worker has read this file. `waited`: the read was measured and had to wait. May be
  // called from any thread.
  void note_read(std::size_t file, bool waited);

  // The numbers of files that the threads have handled, and that the system was told to load.
  [[nodiscard]] std::size_t seen() const { return seen_.load(); }
  [[nodiscard]] std::size_t loaded() const { return loaded_.load(); }
  // Whether its threads work; false while the page cache seems to have the files already.
  [[nodiscard]] bool is_active() const { return is_active_.load(std::memory_order_relaxed); }
  void stop();

 private:
  [[nodiscard]] bool is_due(bool waited);
  void begin(std::size_t file);
  void rest();
  void work();
  void load(std::size_t file);

  const FileReader& reader_;
  const Manifest& files_;
  const Ledger& ledger_;
  const ContainedItems contained_;
  const int wanted_;
  const std::size_t ahead_;  // files

  std::atomic<std::size_t> at_{0};  // the highest file that was read
  std::atomic<int> cold_{0};        // score of cold files; kBegins starts the threads
  std::atomic<bool> is_active_{false};
  std::atomic<std::size_t> seen_{0}, loaded_{0};
  std::atomic<std::size_t> warm_{0};         // files in a row that were in the cache already
  std::atomic<std::size_t> rests_until_{0};  // the first file that may restart it

  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_closed_ = false;
  std::size_t next_ = 0;
  std::size_t loaded_before_ = 0;  // the value of loaded_ when it began
  std::size_t rest_ = 0;           // length of the last rest [files]
  std::vector<std::thread> threads_;
};

}  // namespace melflow
