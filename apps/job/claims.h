// Claims record which worker computes which part of a job. A claim saves work but is not needed for
// correctness: two workers that compute one part write the same bytes, each into its own files, and
// either may publish them.
//
//   claims/0007.json  created by the worker that begins the part: {"worker": ID, "work": ...}
//   claims/0007.left  the same, from a worker that was stopped; its partial work can be continued
//   workers/ID.json   a worker's heartbeat: an increasing number, and its current part
//   workers/ID.lock   locked while the worker lives
//
// A worker is gone when its lock is free and it ran on this machine since the last boot, or when
// its number has not changed for some time on the observer's clock; other clocks do not matter.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "apps/job/job.h"
#include "stages/files/unique_fd.h"

namespace melflow {

class WorkerSign {
 public:
  /// Registers this program under a name among the job's workers. Throws RunError.
  explicit WorkerSign(const Job& job);
  /// Removes the registration.
  ~WorkerSign();
  WorkerSign(const WorkerSign&) = delete;
  WorkerSign& operator=(const WorkerSign&) = delete;

  struct At {
    std::size_t part = 0;
    std::size_t files = 0, of_files = 0;  ///< files done so far, and in the whole part
  };
  /// Publishes that this worker lives, and its current part. Does not throw: a full disk must not
  /// end a worker.
  void give(const std::optional<At>& at) noexcept;
  [[nodiscard]] const std::string& id() const { return id_; }

  /// The last heartbeat of the worker `id`.
  struct Seen {
    std::uint64_t number = 0;
    std::optional<At> at;
    std::string machine;   ///< for human readers
    bool is_gone = false;  ///< whether it is known to have ended
  };
  /// Reads the heartbeat of a worker; nothing where it has none.
  static std::optional<Seen> look(const Job& job, const std::string& id);

 private:
  std::string folder_, id_;
  UniqueFd lock_;
  std::uint64_t number_ = 0;
};

class Claims {
 public:
  using Seconds = std::chrono::duration<double>;
  /// `patience`: how long a heartbeat's number may stay the same.
  Claims(const Job& job, std::string worker, Seconds patience)
      : job_(job), worker_(std::move(worker)), patience_(patience) {}

  struct Taken {
    /// The name in work/ under which to compute the part; files that exist there can be resumed.
    std::string work;
    /// The name used by a worker that has stopped responding; "" for none.
    std::string before;
  };
  /// Takes a part that no worker has, or whose worker is gone; returns nothing where a live worker
  /// has it. Throws RunError.
  std::optional<Taken> take(std::size_t part);
  /// Removes the claim of a part that is done, whoever computed it.
  void forget(std::size_t part);
  /// Gives the part back: this worker does not compute it any more.
  void give_up(std::size_t part);
  /// As give_up(), but keeps the partial work under that name for the next worker.
  void leave(std::size_t part, const std::string& work);

  struct Claim {
    std::string worker, work;
  };
  /// Reads which worker has claimed a part.
  static std::optional<Claim> read(const Job& job, std::size_t part);

 private:
  [[nodiscard]] std::string path(std::size_t part, const char* ending) const {
    return job_.in("claims/" + job_.name(part) + ending);
  }
  enum class State { lives, has_ended, is_silent };
  State state_of(const std::string& worker);

  const Job& job_;
  std::string worker_;
  Seconds patience_;
  struct Watched {
    std::uint64_t number = 0;
    std::chrono::steady_clock::time_point since;
  };
  std::map<std::string, Watched> watched_;
};

}  // namespace melflow
