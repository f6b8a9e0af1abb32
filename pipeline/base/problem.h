// The problems of a plan, collected so that a user sees all of them together.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/value.h"

namespace melflow {

struct Problem {
  Mark mark;
  std::string message;

  /// "file.yaml:12:5: message", or just the message without a mark.
  [[nodiscard]] std::string str() const;
};

class Problems {
 public:
  /// The largest number of problems that are collected.
  static constexpr std::size_t kMost = 1000;
  static constexpr std::size_t kLongestMessage = 2000;  ///< [bytes]

  /// Adds a problem. Throws ConfigError with all problems at kMost of them, to end the search.
  void add(Mark mark, std::string message);
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] std::size_t size() const { return list_.size(); }
  /// All problems, sorted by file and position; those at one position keep their order.
  [[nodiscard]] std::vector<Problem> sorted() const;
  /// All problems as text, one per line.
  [[nodiscard]] std::string str() const;

 private:
  std::vector<Problem> list_;
};

/// Thrown when a plan is wrong; nothing was started. The text has one line per problem.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(Problems problems)
      : std::runtime_error(problems.str()), problems_(std::move(problems)) {}
  explicit ConfigError(std::string message, Mark mark = {});
  [[nodiscard]] const Problems& problems() const { return problems_; }

 private:
  Problems problems_;
};

/// Thrown when a run as a whole fails (a full disk, too many bad files). The text says what failed,
/// where, and what to do.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns ". Did you mean 'x'?" with the candidate nearest to `word` by edit distance, or the only
/// one that begins with it; "" if none is near enough, or it is too long to be a misspelling.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace melflow
