// A verb of the program that runs on a thread of this process.
#pragma once

#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/console.h"
#include "apps/python/process.h"

namespace melflow {

class VerbCall final : public EndsWithPython, private Console {
 public:
  /// Begins the verb. `arguments`: those of the command line, from the verb on; `input`: its
  /// standard input. Throws RunError in a forked process.
  VerbCall(std::vector<std::string> arguments, std::string input);
  ~VerbCall();

  struct Seen {
    Progress progress;
    double rows_per_second = 0;
  };
  struct News {
    std::string said;          ///< printed to stderr since the last call
    std::optional<Seen> seen;  ///< the progress, if it is newer than at the last call
    bool has_ended = false;    ///< nothing follows
  };
  /// Waits until there is something new, at most `seconds`.
  News wait(double seconds);
  /// Stops the verb, as Ctrl-C does in the program.
  void ask_to_stop();
  /// Likewise, and waits until it has ended.
  void stop() override;
  /// Returns the exit status, or throws what the verb threw; after the end.
  int status() const;
  /// Returns what was printed to stdout; after the end.
  const std::string& printed() const { return printed_; }

 private:
  void print(std::FILE* out, const std::string& text) override;
  void show(const Progress& progress, double rows_per_second) override;
  void on_stop(std::function<void()> stop) override;
  bool is_stopped() override;
  void join();

  mutable std::mutex mutex_;  // guards the members up to `is_stopped_`
  Condition changed_{new std::condition_variable};
  News news_;
  std::string printed_;
  int status_ = 0;
  std::exception_ptr thrown_;
  std::mutex stopping_;  // guards the members up to `stop_`; held while `stop_` is called
  bool is_stopped_ = false;
  std::function<void()> stop_;
  std::mutex joining_;
  std::thread thread_;
};

}  // namespace melflow
