// Replaces ${NAME} and ${NAME:-default} in the texts of a configuration; $$ stands for $, and
// ${0xE9} for the byte E9 of a path that is not UTF-8.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/base/problem.h"
#include "pipeline/base/value.h"

namespace melflow {

/// An argument of --var or --set: NAME=VALUE.
struct Assignment {
  std::string name;
  std::string value;
  Mark given_at = {};  ///< position of the value in Python's argument, if given there
};

class Variables {
 public:
  /// Variables in `given` override the environment's; the last of several with one name counts.
  /// `takes_environment`: whether the environment's are filled in at all.
  explicit Variables(std::vector<Assignment> given, bool takes_environment = true)
      : given_(std::move(given)), takes_environment_(takes_environment) {}

  /// Replaces the variables in every scalar in `value`, but not in keys. A variable that cannot be
  /// replaced stays unchanged and is reported with its position. As in a shell, a default also
  /// replaces a variable that is set but empty, and may itself contain variables, some levels deep.
  void expand(Value& value, Problems& problems);

  /// From now on, a variable without a value stays unchanged and is not a problem.
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
  bool takes_environment_, may_be_missing_ = false;
  std::set<std::string> asked_;
  std::string empty_;      // the last variable used that is set but empty
  std::size_t bytes_ = 0;  // of all texts with variables, after replacement
};

/// Reports variables in `given` that the configuration does not use, which are probably misspelt.
void check_unused(const std::vector<Assignment>& given, const std::set<std::string>& asked,
                  Problems& problems);

}  // namespace melflow
