// Errors of a command line, in the style of all other messages.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "apps/verbs/verbs.h"
#include "pipeline/stage/registry.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace melflow {

/// An argument that is not a valid value of its option; the program ends with kUsage.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns the verb of that name, or null.
const Verb* find_verb(std::string_view name);

/// Returns the error where the first of `arguments` is neither a verb nor an option of `app`; ""
/// where it is one.
std::string wrong_verb(const CLI::App& app, const std::vector<std::string>& arguments);

/// Returns the end of the error about an option that the stage does not have: "; use 'hop' instead
/// (hop_length is the name in librosa)"; "" where no other is meant.
std::string advice_on(const StageInfo& stage, const std::string& option, const Value& given);

/// Returns a line with the parser's error and what is allowed.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace melflow
