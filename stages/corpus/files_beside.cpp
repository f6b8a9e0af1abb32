#include "stages/corpus/files_beside.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "pipeline/base/text.h"
#include "stages/corpus/json_lines.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {
namespace {

constexpr std::uint64_t kMostOfText = 1 << 20;  // [bytes] of a file
constexpr std::string_view kJsonEnding = ".json";

std::string_view ending_in(std::string_view rule) { return rule.substr(0, rule.find(':')); }

}  // namespace

FilesBeside::FilesBeside() : reader_({.buffer = kMostOfText, .whole = kMostOfText}), pool_(0) {}

std::string FilesBeside::problem(std::string_view text) {
  const std::string_view ending = ending_in(text);
  const bool has_key = ending.size() < text.size();
  const bool is_ending =
      ending.size() > 1 && std::all_of(ending.begin(), ending.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
      });
  if (is_ending && (!has_key || (ending == kJsonEnding && text.size() > ending.size() + 1)))
    return {};
  return fmt::format(
      "'{}' is no file beside a recording; write its ending, such as .txt, or .json:KEY for a "
      "value in it",
      excerpt(text));
}

const std::string& FilesBeside::read(const std::string& path) {
  if (path == path_) return bytes_;
  path_ = path;
  bytes_.clear();
  const auto bad = [&](const std::string& why) {
    path_.clear();
    throw BadLine(fmt::format("{} beside it {}", path.substr(path.rfind('/') + 1), why));
  };
  FileStamp stamp;
  const auto item = contained_(path);
  auto file = std::make_shared<const FileRef>(located(path, item, &stamp));
  if (stamp.size < 0 && (!item.container || item.container->is_known())) return bytes_;
  if (stamp.size == 0) return bytes_;
  if (file->size > kMostOfText)
    bad(fmt::format("has {} bytes, and a text at most {}", file->size, kMostOfText));
  if (auto unread = reader_.unread(file)) bad(unread->error().reason);
  auto raw = reader_.read(file, pool_);
  if (!raw) bad(raw.error().reason);
  bytes_.assign(reinterpret_cast<const char*>((*raw)->data.data()), (*raw)->size);
  if (!is_utf8(bytes_)) bad("is not UTF-8 text");
  if (bytes_.find('\0') != bytes_.npos) bad("has a zero byte, which cannot be stored");
  return bytes_;
}

std::string FilesBeside::text(const std::string& path, std::string_view rule) {
  const std::string_view ending = ending_in(rule);
  const std::size_t name = path.rfind('/') + 1;
  const std::size_t last = path.rfind('.'), first = path.find('.', name);
  if (first == path.npos) return {};
  const std::string* bytes = &read(path.substr(0, last).append(ending));
  if (bytes->empty() && first != last) bytes = &read(path.substr(0, first).append(ending));
  std::string_view text = *bytes;
  if (!text.empty() && ending.size() < rule.size()) {
    std::string value;
    const std::string problem = json_value(text, rule.substr(ending.size() + 1), value);
    if (problem.empty()) return value;
    throw BadLine(fmt::format("{} beside it {}", path_.substr(path_.rfind('/') + 1), problem));
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return std::string(text);
}

}  // namespace melflow
