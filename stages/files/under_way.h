// The files that a run is decoding, in memory shared with a file: its contents survive the process,
// however it ends, and the next run reads them (decision 19).
//
// The memory is an array of entries of 64 bytes: the hash of a file's path, 0 for none, and its
// state, 8 bytes each. First an entry for each worker, for the file it is decoding, then one for
// each file that earlier runs noted.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "stages/files/mapped_range.h"

namespace melflow {

class UnderWay {
 public:
  enum class State : std::uint64_t {
    begun,     ///< in progress
    hung,      ///< in progress, and the process was ended because it hung
    suspect,   ///< in progress when a process ended
    excluded,  ///< in progress alone when another process ended: never begin it again
    excluded_as_hung,
  };
  struct Entry {
    std::uint64_t file = 0;
    State state = State::begun;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Entries = std::vector<Entry>;

  /// Returns the key by which a path is known here; never 0.
  static std::uint64_t key(std::string_view path);
  static constexpr std::size_t kEntry = 64;  ///< [bytes]
  /// Returns the entries of a piece of memory that are not empty.
  static Entries read(std::span<const std::byte> memory);
  /// Derives suspects and excluded files from the entries that a process left.
  static Entries judge(const Entries& left);

 private:
  struct alignas(kEntry) Slot {
    std::atomic<std::uint64_t> file{0};
    std::atomic<State> state{State::begun};
  };

 public:
  UnderWay() = default;
  ~UnderWay();
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  /// Notes the limit of calls that work on a file [s of processor time]; 0: none. Before keep_in().
  void expect(int timeout);
  /// Ends the process, which hangs at `file`; does not return.
  using End = std::function<void(std::uint64_t file, int timeout)>;
  /// Notes files in progress in `memory`, which must be zeros, from now on; its last entries become
  /// `known`. `end` may be empty.
  void keep_in(MappedRange mapping, std::span<std::byte> memory, const Entries& known, End end);
  [[nodiscard]] bool is_kept() const { return slots_ > 0; }

  // ---- from any thread

  /// Returns why the file is excluded, or null.
  [[nodiscard]] const char* why_excluded(std::uint64_t file) const;
  /// Notes that a suspect has passed. While there are any, one file is in progress at a time.
  void pass(std::uint64_t file);

  /// Marks a file as in progress while this lives. One for a thread at a time.
  class Mark {
   public:
    /// `of` may be null: then nothing is noted.
    Mark(UnderWay* of, std::uint64_t file, int timeout);
    ~Mark() {
      if (slot_ != nullptr) slot_->file.store(0, std::memory_order_release);
    }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

   private:
    Slot* slot_ = nullptr;
    std::unique_lock<std::mutex> alone_;
  };

 private:
  // The current call of a slot, for the watch thread.
  struct alignas(kEntry) Call {
    std::atomic<std::uint64_t> number{0};
    std::atomic<clockid_t> clock{};
    std::atomic<int> timeout{0};  // [s]
  };
  void watch(const End& end);

  MappedRange mapping_;
  Slot* memory_ = nullptr;
  std::size_t slots_ = 0, known_ = 0;
  std::vector<Call> calls_;  // one for each slot
  std::atomic<std::size_t> suspects_{0};
  std::mutex alone_;
  int shortest_ = 0;  // shortest timeout [s]; 0: none
  std::mutex mutex_;  // guards is_over_
  std::condition_variable over_;
  bool is_over_ = false;
  std::vector<std::thread> watch_;  // one thread, or none
};

}  // namespace melflow
