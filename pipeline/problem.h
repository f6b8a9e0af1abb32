// What is wrong with a plan, collected so that a user sees every problem in one go.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/value.h"

namespace melflow {

struct Problem {
  Mark mark;
  std::string message;

  /// "file.yaml:12:5: message", or the bare message when there is no mark.
  [[nodiscard]] std::string str() const;
};

class Problems {
 public:
  /// Nobody reads more of them.
  static constexpr std::size_t kMost = 1000;
  static constexpr std::size_t kLongestMessage = 2000;  ///< [bytes]

  /// Throws ConfigError with all of them when there are too many: no more are looked for.
  void add(Mark mark, std::string message);
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  /// Sorted by place in the file; equal places keep the order they were found in.
  [[nodiscard]] std::vector<Problem> sorted() const;
  /// One line a problem.
  [[nodiscard]] std::string str() const;

 private:
  std::vector<Problem> list_;
};

/// The plan is wrong: nothing was started. The text has one line a problem.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(Problems problems)
      : std::runtime_error(problems.str()), problems_(std::move(problems)) {}
  explicit ConfigError(std::string message, Mark mark = {});
  [[nodiscard]] const Problems& problems() const { return problems_; }

 private:
  Problems problems_;
};

/// The run as a whole failed (a full disk, too many bad files): what, where, and what to do.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// ", did you mean 'x'?" of the candidate nearest to `word` by edit distance; "" when none is near
/// enough to suggest, or the word too long for a slip of the keyboard.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace melflow
