// Errors of a command line, in the style of all other messages.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "apps/verbs/verbs.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace melflow {

/// An argument that is no value of its option; the program ends with kUsage.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The verb of that name, or null.
const Verb* find_verb(std::string_view name);

/// What to say where the first of `arguments` is no verb and no option of `app`; "" where it is
/// one.
std::string wrong_verb(const CLI::App& app, const std::vector<std::string>& arguments);

/// A line that says what the parser of `app` found wrong, and what is allowed.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace melflow
