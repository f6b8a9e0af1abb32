// Kaldi's files of options: a line --name=value each, # begins a comment.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "pipeline/base/text.h"
#include "stages/model_files/front_end_class.h"
#include "stages/model_files/model_formats.h"

namespace melflow {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// The lines without comments, with their numbers.
std::vector<std::pair<int, std::string_view>> lines_of(std::string_view text) {
  std::vector<std::pair<int, std::string_view>> out;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = trimmed(line.substr(0, std::min(line.find('#'), line.size())));
    if (!line.empty()) out.emplace_back(number, line);
  }
  return out;
}

}  // namespace

std::optional<ModelInstance> kaldi_instance(const std::string& text, const std::string& path,
                                            FileSurroundings& beside, Problems& problems) {
  const auto lines = lines_of(text);
  if (lines.empty() || !lines.front().second.starts_with("--")) return std::nullopt;
  const auto file = std::make_shared<const std::string>(path);
  ModelInstance out;
  out.family = &kKaldi;
  out.mark = {file, 0, 0};
  out.keys = Value::map({}, out.mark);
  const std::string name = std::filesystem::path(path).filename().string();
  const Value* given = beside.given->find(kKaldi.ignored);
  const std::string feature = given != nullptr                  ? given->text()
                              : name.find("mfcc") != name.npos  ? "mfcc"
                              : name.find("fbank") != name.npos ? "fbank"
                                                                : "";
  if (feature != "mfcc" && feature != "fbank") {
    problems.add(out.mark, fmt::format("the file does not say whether it is for fbank or mfcc, and "
                                       "neither does its name; write {{file: FILE, {}: fbank}}",
                                       kKaldi.ignored));
    return out;
  }
  out.class_name = fmt::format("compute-{}-feats", feature);
  for (auto [number, line] : lines) {
    const Mark mark{file, number, 1};
    if (!line.starts_with("--")) {
      problems.add(mark, fmt::format("{}: a line is --name=value", excerpt(line)));
      continue;
    }
    line.remove_prefix(2);
    const std::size_t at = line.find('=');
    std::string key(trimmed(line.substr(0, std::min(at, line.size()))));
    std::replace(key.begin(), key.end(), '-', '_');
    if (out.keys.find(key) != nullptr)
      problems.add(mark, fmt::format("{}: is written twice", excerpt(key)));
    out.keys.entries().push_back(
        {key,
         Value::scalar(at == line.npos ? "true" : std::string(trimmed(line.substr(at + 1))), mark),
         mark});
  }
  return out;
}

}  // namespace melflow
