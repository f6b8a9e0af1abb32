#include "stages/model_files/model_text.h"

#include <fmt/format.h>

#include "config/document.h"
#include "pipeline/base/input_file.h"

namespace melflow {
namespace {

constexpr std::size_t kMostModelValues = 300'000;  // old files of Whisper have their filters

// Replaces the escapes of surrogates, which the parser refuses, by as long ones of U+FFFD. They are
// in templates of chats, which no front end needs.
std::string without_surrogates(std::string text) {
  for (std::size_t at = text.find("\\u"); at != text.npos && at + 6 <= text.size();
       at = text.find("\\u", at + 2)) {
    std::size_t before = at;
    while (before > 0 && text[before - 1] == '\\') --before;
    const bool is_escaped = (at - before) % 2 == 1;
    const bool is_half = (text[at + 2] == 'd' || text[at + 2] == 'D') &&
                         std::string_view("89abcdefABCDEF").find(text[at + 3]) != text.npos;
    if (!is_escaped && is_half) text.replace(at + 2, 4, "fffd");
  }
  return text;
}

}  // namespace

std::string read_model_bytes(const std::string& path) {
  const Mark mark{std::make_shared<const std::string>(path), 0, 0};
  InputFile file(path);
  std::string bytes = file.read(kMostModelText + 1);
  if (!file.problem().empty()) throw ConfigError(file.problem(), mark);
  if (bytes.size() > kMostModelText)
    throw ConfigError(fmt::format("this file is longer than {} MiB, which is the most that is read",
                                  kMostModelText >> 20),
                      mark);
  return bytes;
}

Value read_model_text(const std::string& text, const std::string& path, Problems& problems) {
  const DocumentKind kind{"file", kMostModelText, kMostModelValues, true};
  Document document = read_document(without_surrogates(text), path, kind);
  for (const Problem& p : document.problems.sorted()) problems.add(p.mark, p.message);
  return document.complete ? std::move(document.root) : Value();
}

std::string text_at(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value == nullptr ? std::string() : value->text();
}

}  // namespace melflow
