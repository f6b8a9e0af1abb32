// Checks of values on the command line, each with a message that says what is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace melflow {

CLI::Validator is_integer(std::int64_t least, std::int64_t most);
CLI::Validator is_one_of(const std::vector<std::string>& names);

}  // namespace melflow
