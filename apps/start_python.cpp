#include "apps/start_python.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "config/document.h"
#include "pipeline/base/version.h"

namespace melflow {
namespace {

// Run by Python first: removes the current folder, which it searches for modules before any other,
// from sys.path. Python's option -P does the same, but only from 3.11 on.
constexpr const char* kWithoutFolder = "import sys; sys.path[:1] = filter(None, sys.path[:1])";

// Removes entries that mean the current folder, such as empty ones, from a list of folders.
std::string without_current(std::string_view folders) {
  std::string out;
  while (!folders.empty()) {
    const std::string_view entry = folders.substr(0, folders.find(':'));
    folders.remove_prefix(std::min(entry.size() + 1, folders.size()));
    std::error_code none;
    if (!entry.empty() && !std::filesystem::equivalent(entry, ".", none))
      out.append(out.empty() ? "" : ":").append(entry);
  }
  return out;
}

// Returns the version of the Python package, or "".
std::string version_in(const std::string& python) {
  constexpr const char* kAsked = "MELFLOW_ASKED_PYTHON";  // for the shell
  setenv(kAsked, python.c_str(), 1);
  std::FILE* out = popen(fmt::format("\"${}\" -c '{}; import melflow; print(melflow.__version__)' "
                                     "2>/dev/null </dev/null",
                                     kAsked, kWithoutFolder)
                             .c_str(),
                         "re");
  unsetenv(kAsked);
  if (out == nullptr) return {};
  char line[64] = {};
  const bool has_line = std::fgets(line, sizeof(line), out) != nullptr;
  pclose(out);
  std::string text = has_line ? line : "";
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// Makes text that was read from the standard input readable there again.
void restore_input() {
  const std::string* given = given_standard_input();
  if (given == nullptr) return;
  const int file = memfd_create("pipeline", 0);
  if (file < 0) return;
  for (std::size_t done = 0; done < given->size();) {
    const ssize_t n = write(file, given->data() + done, given->size() - done);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
  lseek(file, 0, SEEK_SET);
  dup2(file, STDIN_FILENO);
}

std::string own_python() {
  for (const char* variable : {"MELFLOW_PYTHON", "MELFLOW_OWN_PYTHON"}) {
    const char* named = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
    if (named != nullptr && *named != '\0') return named;
  }
  return "python3";
}

}  // namespace

void clean_python_path() {
  const char* folders = std::getenv("PYTHONPATH");  // NOLINT(concurrency-mt-unsafe)
  if (folders != nullptr) setenv("PYTHONPATH", without_current(folders).c_str(), 1);
}

std::string start_in_python(int argc, char** argv) {
  const std::string python = own_python();
  clean_python_path();
  if (const std::string version = version_in(python); version != kVersion)
    return fmt::format(
        "this needs Python with the package melflow {}, and {} has {}; install it "
        "there (pip install), or name another Python by MELFLOW_PYTHON",
        kVersion, python, version.empty() ? "none" : "melflow " + version);
  restore_input();
  std::string words[] = {python, "-c",
                         fmt::format("{}; from melflow import __main__", kWithoutFolder)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  return fmt::format("{}: cannot be started: {}", python, std::strerror(errno));
}

}  // namespace melflow
