// Small JSON files of a job, which several programs write and read at the same time. Each file
// appears as a whole and contains a hash of itself, by which damage is detected.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "pipeline/base/problem.h"

namespace melflow {

/// Writes or replaces a file of a job, which need not be JSON. Throws RunError.
void write_file(const std::string& path, const std::string& text);
/// Writes or replaces the file. `writer`: a name that no other program uses for this file at the
/// same time. Throws RunError.
void write_checked(const std::string& path, nlohmann::ordered_json json, const std::string& writer);
/// Writes a new file; returns false where it exists already. `beside`: a temporary name on the same
/// file system that nobody else uses; removed afterwards. Throws RunError.
bool write_new(const std::string& path, nlohmann::ordered_json json, const std::string& beside);
/// Reads the file; returns nothing where it does not exist. Throws RunError when it cannot be read
/// or does not match its hash.
std::optional<nlohmann::ordered_json> read_checked(const std::string& path);

[[noreturn]] void refuse_checked(const std::string& path);
/// Calls `read`, which reads values of the JSON; throws RunError where one is missing or wrong.
template <class Read>
void from_checked(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception&) {
  } catch (const std::logic_error&) {  // not a number
  }
  refuse_checked(path);
}

}  // namespace melflow
