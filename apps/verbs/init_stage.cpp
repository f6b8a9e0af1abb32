#include "apps/verbs/init_stage.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "apps/shipped.h"
#include "apps/verbs/written_file.h"
#include "pipeline/base/input_file.h"
#include "pipeline/base/problem.h"
#include "pipeline/stage/registry.h"
#include "stages/files/own_file.h"

namespace melflow {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kLongestName = 40;
constexpr const char* kExample = "loudness";  // the name in the files that come with melflow
constexpr const char* kFiles[] = {"loudness.cpp", "loudness_test.cpp", "loudness.yaml",
                                  "CMakeLists.txt"};

bool is_small(char c) { return c >= 'a' && c <= 'z'; }

// peak_level: PeakLevel
std::string class_name(const std::string& stage) {
  std::string out;
  bool begins = true;
  for (const char c : stage) {
    if (c != '_') out += begins && is_small(c) ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  return out;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::string renamed(std::string text, const std::string& stage) {
  replace_all(text, kExample, stage);
  replace_all(text, class_name(kExample), class_name(stage));
  return text;
}

std::string example_text(const std::string& file) {
  const fs::path path = shipped_file("own_stage/" + file, "apps/own_stage/" + file);
  constexpr std::size_t kMostText = 1 << 20;  // [bytes]
  return InputFile(path).read_all(kMostText);
}

}  // namespace

std::string wrong_stage_name(const std::string& name) {
  const bool is_name = !name.empty() && is_small(name.front()) && name.size() <= kLongestName &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return is_small(c) || c == '_' || (c >= '0' && c <= '9');
                       });
  if (!is_name)
    return fmt::format(
        "{} is not a name for a stage; allowed: small letters, digits and _, a letter first, "
        "at most {} characters, such as peak_level",
        name.empty() ? "an empty text" : name, kLongestName);
  if (Registry::global().find(name) != nullptr)
    return fmt::format("there is a stage {} already (melflow stages {}); give another name", name,
                       name);
  return "";
}

void write_stage_project(const std::string& name, const std::string& folder) {
  if (has_name(folder))
    throw RunError(folder + ": this already exists; give the name of a new folder");
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* file : kFiles)
    files.emplace_back(renamed(file, name), renamed(example_text(file), name));

  std::error_code error;
  if (!fs::create_directory(folder, error))
    throw RunError(fmt::format("{}: the folder cannot be made: {}", folder, error.message()));
  try {
    for (const auto& [file, text] : files)
      WrittenFile((fs::path(folder) / file).string()).write(text);
  } catch (...) {
    fs::remove_all(folder, error);
    throw;
  }
}

std::string installed_prefix() {
  const fs::path prefix = shipped_places("", "").front() / "../..";  // of PREFIX/share/melflow
  std::error_code error;  // packages of the program alone have no headers
  const bool has_headers = fs::is_directory(prefix / "include/melflow", error);
  return has_headers ? fs::canonical(prefix, error).string() : "";
}

}  // namespace melflow
