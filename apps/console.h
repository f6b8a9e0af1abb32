// Where a verb prints to, and how it is stopped. The program melflow has its standard files and
// signals; a process that runs verbs itself, such as Python, has a Console.
#pragma once

#include <cstdio>
#include <functional>
#include <string>

#include "pipeline/run/runner.h"

namespace melflow {

class Console {
 public:
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Takes what is printed to `out`, stdout or stderr. From any thread.
  virtual void print(std::FILE* out, const std::string& text) = 0;
  /// Takes the progress of a run, some times a second. From any thread.
  virtual void show(const Progress& progress, double rows_per_second) = 0;
  /// Sets what stops the verb's present step, or nothing where `stop` is empty. Calls it at once if
  /// the verb has been asked to stop. Returns after the calls of an earlier `stop` have ended.
  virtual void on_stop(std::function<void()> stop) = 0;
  /// Whether the verb has been asked to stop.
  virtual bool is_stopped() = 0;

 protected:
  Console() = default;
  ~Console() = default;
};

/// The console of the verb that this process runs; null in the program melflow.
Console* console();
/// Whether the verb that this process runs has been asked to stop, for long work between runs.
bool is_asked_to_stop();

/// Makes a console the present one until it is destroyed. Waits while another one is present, as a
/// process runs one verb at a time; throws RunError where the verb is stopped meanwhile. Also
/// restores the working folder, which some verbs change.
class ConsoleScope {
 public:
  explicit ConsoleScope(Console& console);
  ~ConsoleScope();
  ConsoleScope(const ConsoleScope&) = delete;
  ConsoleScope& operator=(const ConsoleScope&) = delete;

 private:
  int folder_;
};

}  // namespace melflow
