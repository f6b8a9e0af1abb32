#include "apps/job/checked_json.h"

#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "pipeline/base/input_file.h"
#include "stages/files/own_file.h"
#include "stages/files/unique_fd.h"
#include "stages/files/whole_io.h"
#include "stages/shallow_json.h"

namespace melflow {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kCheck = "check";
constexpr std::size_t kMostBytes = 256 << 20;  // job.json has the pipeline and every part

std::string check_of(const Json& json) {
  const std::string text = json.dump();
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw RunError(fmt::format("{}: cannot be {}: {}", path, what, std::strerror(error)));
}

void write_with_check(const std::string& path, Json json) {
  json[kCheck] = check_of(json);
  write_file(path, json.dump(1) + "\n");
}

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  const UniqueFd fd = create_empty(path);
  if (!fd) fail(path, "made", errno);
  int error = write_whole(fd.get(), text.data(), text.size(), 0);
  if (error == 0) error = close_error(fd.get());
  if (error == 0) return;
  ::unlink(path.c_str());
  fail(path, "written", error);
}

void write_checked(const std::string& path, Json json, const std::string& writer) {
  const std::string beside = path + "." + writer;
  write_with_check(beside, std::move(json));
  if (const int error = rename_file(beside, path, 0); error != 0) {
    ::unlink(beside.c_str());
    fail(path, "written", error);
  }
}

// link() succeeds for only one program, on network file systems too; file systems without it get a
// rename instead.
bool write_new(const std::string& path, Json json, const std::string& beside) {
  write_with_check(beside, std::move(json));
  int error = ::link(beside.c_str(), path.c_str()) == 0 ? 0 : errno;
  if (error != 0 && error != EEXIST) error = rename_file(beside, path, RENAME_NOREPLACE);
  ::unlink(beside.c_str());
  if (error != 0 && error != EEXIST) fail(path, "made", error);
  return error == 0;
}

std::optional<Json> read_checked(const std::string& path) {
  InputFile file(path);
  if (file.is_missing()) return std::nullopt;
  Json json = parse_shallow<Json>(file.read_all(kMostBytes));
  if (!json.is_object() || !json.contains(kCheck)) refuse_checked(path);
  const Json check = json[kCheck];
  json.erase(kCheck);
  if (check != check_of(json)) refuse_checked(path);
  return json;
}

void refuse_checked(const std::string& path) {
  throw RunError(path + ": this file is damaged: it is not what melflow wrote");
}

}  // namespace melflow
