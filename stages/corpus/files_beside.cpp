#include "stages/corpus/files_beside.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/text.h"
#include "stages/containers/file_channel.h"
#include "stages/corpus/json_lines.h"
#include "stages/corpus/path_parts.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {
namespace {

constexpr std::uint64_t kMostOfText = 1 << 20;  // [bytes] of a file
constexpr std::string_view kJsonEnding = ".json";

// The place of a file in a rule, which a ':' and the name of a value may follow.
std::string_view place_in(std::string_view rule) { return rule.substr(0, rule.find(':')); }

constexpr std::string_view kParts[] = {"{name}", "{folder}", "{parent_dir}", "{top_dir}"};

}  // namespace

std::string FilesBeside::place(std::string_view rule, std::string_view below) {
  const std::size_t slash = below.rfind('/') + 1;
  const std::string_view name = below.substr(slash),
                         values[] = {name.substr(0, name.rfind('.')), below.substr(0, slash),
                                     parent_folder(below), first_folder(below)};
  std::string out(place_in(rule));
  for (std::size_t p = 0; p < std::size(kParts); ++p)
    for (std::size_t at = 0; (at = out.find(kParts[p], at)) != out.npos; at += values[p].size())
      out.replace(at, kParts[p].size(), values[p]);
  return out;
}

FilesBeside::FilesBeside(std::string root)
    : root_(std::move(root)), reader_({.buffer = kMostOfText, .whole = kMostOfText}), pool_(0) {}

std::string FilesBeside::problem(std::string_view text) {
  const std::string_view place = place_in(text);
  const bool has_key = place.size() < text.size();
  if (has_key && (!place.ends_with(kJsonEnding) || text.size() == place.size() + 1))
    return fmt::format("'{}': only a .json has values, as in .json:speaker", excerpt(text));
  if (!place.starts_with('.')) {
    std::string rest(place);
    for (const std::string_view part : kParts)
      for (std::size_t at; (at = rest.find(part)) != rest.npos;) rest.erase(at, part.size());
    return rest.find_first_of("{}") == rest.npos
               ? ""
               : fmt::format("'{}': a path of a file has {}", excerpt(text),
                             fmt::join(kParts, ", "));
  }
  const bool is_ending =
      place.size() > 1 && std::all_of(place.begin(), place.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
      });
  return is_ending ? ""
                   : fmt::format(
                         "'{}' is no file beside a recording; write its ending, such as .txt, or "
                         ".json:KEY for a value in it",
                         excerpt(text));
}

const std::string& FilesBeside::read(const std::string& path) {
  if (path == path_) return bytes_;
  path_ = path;
  bytes_.clear();
  const auto bad = [&](const std::string& why) {
    path_.clear();
    throw BadLine(fmt::format("its file {} {}", path.substr(path.rfind('/') + 1), why));
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
  if (bytes_.starts_with(kByteOrderMark)) bytes_.erase(0, kByteOrderMark.size());
  if (!is_utf8(bytes_)) bad("is not UTF-8 text");
  if (bytes_.find('\0') != bytes_.npos) bad("has a zero byte, which cannot be stored");
  return bytes_;
}

std::string FilesBeside::text(const std::string& path_or_channel, std::string_view below_root,
                              std::string_view rule) {
  const std::string path = without_channel(path_or_channel), below = without_channel(below_root);
  const std::string_view place = place_in(rule);
  const std::string* bytes = nullptr;
  if (place.starts_with('.')) {
    const std::size_t last = path.rfind('.'), first = path.find('.', path.rfind('/') + 1);
    if (first == path.npos) return {};
    bytes = &read(path.substr(0, last).append(place));
    if (bytes->empty() && first != last) bytes = &read(path.substr(0, first).append(place));
  } else {
    const std::string file = FilesBeside::place(rule, below);
    bytes = &read(root_.empty() || file.starts_with('/') ? file : root_ + '/' + file);
  }
  std::string_view text = *bytes;
  if (!text.empty() && place.size() < rule.size()) {
    std::string value;
    const std::string problem = json_value(text, rule.substr(place.size() + 1), value);
    if (problem.empty()) return value;
    throw BadLine(fmt::format("its file {} {}", path_.substr(path_.rfind('/') + 1), problem));
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return std::string(text);
}

}  // namespace melflow
