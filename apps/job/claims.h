// Claims: which worker computes which part of a job. A claim saves work and decides nothing: two
// workers that make one part write the same bytes, each into files of its own, and either may
// publish them.
//
//   claims/0007.json  made by whoever begins the part, as a new file: {"worker": ID, "work": ...}
//   claims/0007.left  the same of a worker that was stopped; what it has done can be gone on with
//   workers/ID.json   the heartbeat of a worker: a number that goes up, and what it is at
//   workers/ID.lock   locked while the worker lives
//
// A worker is gone when its lock is free and it ran on this machine since that was started, or when
// its number has not changed for some time, measured by who looks: clocks of others are not asked.
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
  /// Gives this program a name among the job's workers. Throws RunError.
  explicit WorkerSign(const Job& job);
  /// Takes the sign away.
  ~WorkerSign();
  WorkerSign(const WorkerSign&) = delete;
  WorkerSign& operator=(const WorkerSign&) = delete;

  struct At {
    std::size_t part = 0;
    std::size_t files = 0, of_files = 0;  ///< that are done of it
  };
  /// Says that this worker lives, and what it is at. Does not throw: a disk that is full ends no
  /// worker.
  void give(const std::optional<At>& at) noexcept;
  [[nodiscard]] const std::string& id() const { return id_; }

  /// The last heartbeat of the worker `id`.
  struct Seen {
    std::uint64_t number = 0;
    std::optional<At> at;
    std::string machine;   ///< for people
    bool is_gone = false;  ///< it is known to have ended
  };
  /// Nothing where there is no sign of it.
  static std::optional<Seen> look(const Job& job, const std::string& id);

 private:
  std::string folder_, id_;
  UniqueFd lock_;
  std::uint64_t number_ = 0;
};

class Claims {
 public:
  using Seconds = std::chrono::duration<double>;
  /// `patience`: how long a number may stay the same.
  Claims(const Job& job, std::string worker, Seconds patience)
      : job_(job), worker_(std::move(worker)), patience_(patience) {}

  struct Taken {
    /// The name in work/ under which to make it; what is there already can be resumed.
    std::string work;
    /// The name that a worker used which is silent now; "" for none.
    std::string before;
  };
  /// Takes a part that no worker has, or one that is gone; nothing where another worker has it.
  /// Throws RunError.
  std::optional<Taken> take(std::size_t part);
  /// The part is done, whoever has made it.
  void forget(std::size_t part);
  /// The part is not to be made by this worker any more.
  void give_up(std::size_t part);
  /// As give_up(); what was done of it under that name stays for whoever comes next.
  void leave(std::size_t part, const std::string& work);

  struct Claim {
    std::string worker, work;
  };
  /// Who is at a part, as it is written there.
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
