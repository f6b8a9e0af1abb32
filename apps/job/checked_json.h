// Small JSON files of a job, which several programs write and read at the same time: each appears
// as a whole, and says by a hash of itself that it is what was written.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "pipeline/base/problem.h"

namespace melflow {

/// Writes or replaces the file. `writer` must be another name for each program that may write it at
/// the same time. Throws RunError.
void write_checked(const std::string& path, nlohmann::ordered_json json, const std::string& writer);
/// The same as a new file; false where it is there already. `beside`: a name on the same file
/// system that nobody else uses; it is gone then. Throws RunError.
bool write_new(const std::string& path, nlohmann::ordered_json json, const std::string& beside);
/// Nothing where there is no such file. Throws RunError when it cannot be read or is not what was
/// written.
std::optional<nlohmann::ordered_json> read_checked(const std::string& path);

[[noreturn]] void refuse_checked(const std::string& path);
/// Calls `read`, which takes the JSON to pieces; throws RunError where that does not have them.
template <class Read>
void from_checked(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception&) {
  } catch (const std::logic_error&) {  // no number
  }
  refuse_checked(path);
}

}  // namespace melflow
