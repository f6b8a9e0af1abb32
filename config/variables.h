// Replaces ${NAME} and ${NAME:-default} in the texts of a configuration; $$ stands for $.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/problem.h"
#include "pipeline/base/value.h"

namespace melflow {

/// The argument of --var or --set: NAME=VALUE.
struct Assignment {
  std::string name;
  std::string value;
  Mark given_at = {};  ///< of the value, where Python's argument for it is
};

class Variables {
 public:
  /// Variables in `given` override those of the environment; of two with one name the later counts.
  explicit Variables(std::vector<Assignment> given) : given_(std::move(given)) {}

  /// Replaces the variables in every scalar below `value`, but not in keys. A variable that cannot
  /// be replaced stays as it is written and is a problem at its place. As in a shell, a default
  /// also replaces a variable that is set but empty, and may itself contain variables, some levels
  /// deep.
  void expand(Value& value, Problems& problems);

  /// From now on a variable without a value stays as it is written and is no problem.
  void allow_missing() { may_be_missing_ = true; }
  [[nodiscard]] const std::set<std::string>& asked() const { return asked_; }

 private:
  struct Failure {
    std::string reason;
  };
  std::string expand_text(std::string_view text, int depth = 0);
  std::string look_up(std::string_view inside, int depth);
  [[nodiscard]] const Assignment* find(const std::string& name) const;

  std::vector<Assignment> given_;
  bool may_be_missing_ = false;
  std::set<std::string> asked_;
  std::string empty_;      // that was asked for last, is set and has nothing in it
  std::size_t bytes_ = 0;  // of all texts with variables, filled in
};

/// Reports variables in `given` that the configuration does not use, which are likely misspelt.
void check_unused(const std::vector<Assignment>& given, const std::set<std::string>& asked,
                  Problems& problems);

}  // namespace melflow
