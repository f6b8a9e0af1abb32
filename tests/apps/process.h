// Runs a program and captures its output and exit status.
#pragma once

#include <doctest/doctest.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temp_folder.h"

namespace melflow::test {

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);

/// Whether a text has a part; failure messages show the text.
struct Has {
  std::string text;
  bool is_so;
  operator bool() const { return is_so; }  // NOLINT(google-explicit-constructor)
};

inline Has has(const std::string& text, const std::string& part) {
  return {text, text.find(part) != std::string::npos};
}

struct Ended {
  int code = 0;  ///< exit status; 1000 + the signal that killed it
  std::string out, err;
};

/// Runs a program inside `folder`; stdout and stderr go into files.
class Process {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;
  /// With `terminal`, stderr is a pseudo terminal of 100 columns.
  Process(const TempFolder& folder, std::vector<std::string> command, const Variables& set = {},
          bool terminal = false);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Whether this machine has pseudo terminals.
  static bool has_terminals();

  void send(int signal) const;
  /// Types at its terminal.
  void type(const std::string& keys) const;
  /// Waits until a condition holds. Throws std::runtime_error when the process ends before.
  void wait_until(const std::function<bool()>& is_so) const;
  /// Waits until the terminal shows a text. Throws std::runtime_error when the process ends before.
  void read_until(const std::string& text);
  /// Waits for the end.
  Ended wait();

 private:
  bool read_terminal();

  const TempFolder& folder_;
  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string drawn_;  // the terminal's output so far
};

Ended run(const TempFolder& folder, std::vector<std::string> command,
          const Process::Variables& set = {});
/// Returns `ended` if it has this exit status; otherwise ends the test.
Ended exits(int code, Ended ended, std::source_location at = std::source_location::current());
/// Runs melflow.
Ended melflow_in(const TempFolder& folder, std::vector<std::string> arguments,
                 const Process::Variables& set = {});

}  // namespace melflow::test

template <>
struct doctest::StringMaker<melflow::test::Has> {
  static String convert(const melflow::test::Has& has) { return has.text.c_str(); }
};
