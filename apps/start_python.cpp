#include "apps/start_python.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "config/document.h"
#include "stages/version.h"

namespace melflow {
namespace {

// Returns the version of the Python package, or "".
std::string version_in(const std::string& python) {
  setenv("MELFLOW_PYTHON", python.c_str(), 1);  // for the shell
  std::FILE* out = popen(
      "\"$MELFLOW_PYTHON\" -c 'import melflow; print(melflow.__version__)' 2>/dev/null </dev/null",
      "re");
  if (out == nullptr) return {};
  char line[64] = {};
  const bool has_line = std::fgets(line, sizeof(line), out) != nullptr;
  pclose(out);
  std::string text = has_line ? line : "";
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// Gives what was read from the standard input back.
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

}  // namespace

std::string start_in_python(int argc, char** argv) {
  const char* named = std::getenv("MELFLOW_PYTHON");  // NOLINT(concurrency-mt-unsafe)
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  if (const std::string version = version_in(python); version != kVersion)
    return fmt::format(
        "this needs Python with the package melflow {}, and {} has {}; install it "
        "there (pip install), or name another Python by MELFLOW_PYTHON",
        kVersion, python, version.empty() ? "none" : "melflow " + version);
  restore_input();
  std::string words[] = {python, "-m", "melflow"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  return fmt::format("{}: cannot be started: {}", python, std::strerror(errno));
}

}  // namespace melflow
