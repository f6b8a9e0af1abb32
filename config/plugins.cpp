#include "config/plugins.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/base/version.h"
#include "pipeline/stage/registry.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;

// What is wrong with each library that was loaded, by its real path. Its code stays in memory and
// would not register its stages a second time.
std::mutex loading;
std::map<fs::path, std::string> loaded;

// Returns the text between `before` and `after` (or the end); "" without `before`.
std::string between(const std::string& text, std::string_view before, std::string_view after) {
  const std::size_t at = text.find(before);
  if (at == text.npos) return "";
  const std::string rest = text.substr(at + before.size());
  return rest.substr(0, rest.find(after));
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return name == nullptr ? symbol : name.get();
}

// Translates an error of the system's loader into terms of melflow, if it concerns melflow.
std::string reason(const std::string& said, const fs::path& file) {
  std::string version = between(said, "version `MELFLOW_", "'");
  if (version.empty() && said.find("cannot open shared object file") != said.npos)
    version = between(said, "libmelflow.so.", ":");
  if (!version.empty())
    return fmt::format("was built for melflow {}, and this is {}; build it again with this version",
                       version, kVersion);
  const std::string symbol = demangled(between(said, "undefined symbol: ", ","));
  if (symbol.find("melflow::check_abi<") != symbol.npos)
    return "was built with another C++ library than melflow, or in its debug mode; build it again "
           "with that of melflow, libstdc++ with its C++11 ABI";
  if (symbol.find("melflow::") != symbol.npos)
    return fmt::format("needs {}, which this melflow {} has not; build it again with this version",
                       excerpt(symbol), kVersion);
  const std::string prefix = file.string() + ": ";
  return "cannot be loaded: " + said.substr(said.starts_with(prefix) ? prefix.size() : 0);
}

// Returns why these stages cannot be added; "" if they can.
std::string clash(const std::vector<StageInfo>& stages) {
  if (stages.empty()) return "is no plug-in of melflow: it registers no stage";
  std::set<std::string> names;
  for (const StageInfo& stage : stages) {
    const StageInfo* other = Registry::global().find(stage.name);
    if (other == nullptr && names.insert(stage.name).second) continue;
    const bool is_own = other == nullptr;
    return fmt::format("its stage '{}' exists already, {}; give it another name", stage.name,
                       is_own                  ? "in the same file"
                       : other->plugin.empty() ? "built in"
                                               : "loaded from " + other->plugin);
  }
  return "";
}

std::string load(const std::string& path) {
  if (path.empty()) return "write the path of a plug-in, such as ./loudness.so";
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (error == std::errc::no_such_file_or_directory) return no_such_file(path, {".so"});
  if (error) return "cannot be loaded: " + error.message();
  // The system's loader would wait for a FIFO's writer.
  if (const InputFile input(file); input.error() == EINVAL) return input.problem();
  const std::lock_guard lock(loading);
  if (const auto known = loaded.find(file); known != loaded.end()) return known->second;
  void* library = nullptr;
  std::vector<StageInfo> stages =
      Registry::global().added_by([&] { library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); });
  if (library == nullptr) return reason(::dlerror(), file);
  std::string& wrong = loaded[file] = clash(stages);
  if (!wrong.empty()) return wrong;
  for (StageInfo& stage : stages) {
    stage.plugin = path;
    Registry::global().add(std::move(stage));
  }
  return "";
}

}  // namespace

std::string load_plugin(const std::string& path) {
  const std::string wrong = load(path);
  return wrong.empty() ? "" : fmt::format("{}: {}", path.empty() ? "''" : excerpt(path), wrong);
}

void load_plugins_of_environment() {
  const char* paths = std::getenv("MELFLOW_PLUGINS");
  std::istringstream all(paths == nullptr ? "" : paths);
  for (std::string path; std::getline(all, path, ':');)
    if (const std::string wrong = path.empty() ? "" : load_plugin(path); !wrong.empty())
      throw ConfigError(wrong, {std::make_shared<const std::string>("MELFLOW_PLUGINS"), 0, 0});
}

bool has_plugin(const std::string& path) {
  const std::vector<const StageInfo*> stages = Registry::global().all();
  return std::any_of(stages.begin(), stages.end(), [&](const StageInfo* stage) {
    return !stage->plugin.empty() &&
           fs::path(stage->plugin).filename() == fs::path(path).filename();
  });
}

}  // namespace melflow
