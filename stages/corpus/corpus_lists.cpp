#include "stages/corpus/corpus_lists.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/corpus/folder_scan.h"
#include "stages/corpus/path_parts.h"

namespace melflow {
namespace {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Reads a map of texts; returns the problem with it, or "".
std::string read_map(const Value& v, NamedTexts& out) {
  for (const Value::Entry& e : v.entries()) {
    auto& [name, text] = out.emplace_back(e.key, "");
    std::string why = OptionType<std::string>::parse(e.value, text);
    if (why.empty() && text.empty()) why = "is empty";
    if (!why.empty()) return excerpt(name) + ": " + why;
  }
  return {};
}

// The folder before the first name with a wildcard: "." or ending in '/'.
std::string folder_of_pattern(const std::string& path) {
  const std::size_t slash = path.rfind('/', path.find_first_of("*?"));
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

std::string CorpusLists::text() const {
  std::string out;
  for (const List& one : list) out += (out.empty() ? "" : ", ") + one.path;
  return out;
}

bool is_list_pattern(const std::string& path) {
  std::error_code error;
  return path.find_first_of("*?") != path.npos && !std::filesystem::exists(path, error);
}

bool is_list_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(is_list_pattern(path) ? folder_of_pattern(path) : path, error);
}

std::vector<CorpusLists::List> CorpusLists::files() const {
  std::vector<List> out;
  for (const List& one : list) {
    if (!is_list_pattern(one.path)) {
      out.push_back(one);
      continue;
    }
    const std::size_t before = out.size();
    const std::string folder = folder_of_pattern(one.path);
    const std::string pattern = one.path.substr(folder == "." ? 0 : folder.size());
    const bool is_flat = pattern.find('/') == pattern.npos;  // else FolderScan looks further down
    const FolderScan scan({folder, {pattern}, {}, true});
    scan.run([&](const FolderScan::Found& found) {
      if (!found.is_folder && found.error == 0 && (!is_flat || found.folder.empty()))
        out.push_back({one.split, (folder == "." ? "" : folder) + std::string(found.folder) +
                                      std::string(found.name)});
    });
    if (out.size() == before)
      throw RunError(one.path + ": no file matches this pattern of manifest");
  }
  return out;
}

std::string folder_of_list(const std::string& list, const std::string& root) {
  const auto folder = std::filesystem::absolute(list).parent_path() / "";
  std::string below = BelowRoot(root.empty() ? "." : root)(folder.string());
  if (!below.empty() && !below.ends_with('/')) below += '/';
  return below;
}

std::string OptionType<CorpusLists>::parse(const Value& v, CorpusLists& out) {
  CorpusLists read;
  if (v.is_map()) {
    NamedTexts texts;
    if (std::string why = read_map(v, texts); !why.empty()) return why;
    if (texts.empty()) return "has no list; write one for each split, {train: train.tsv}";
    for (auto& [split, path] : texts) {
      if (path != CorpusLists::kRest)
        read.list.push_back({split, path});
      else if (read.rest.empty())
        read.rest = split;
      else
        return fmt::format(
            "{} and {}: only one split gets the rest; for a list of that name write "
            "./rest",
            excerpt(read.rest), excerpt(split));
    }
    if (read.list.empty())
      return excerpt(read.rest) +
             ": the rest is what no list names, and there is no list; write {test: test.txt, "
             "train: rest}";
  } else {
    std::string path;
    if (std::string why = OptionType<std::string>::parse(v, path); !why.empty()) return why;
    if (!path.empty()) read.list.push_back({"", path});
  }
  out = std::move(read);
  return {};
}

Value OptionType<CorpusLists>::echo(const CorpusLists& v) {
  if (!v.has_splits()) return OptionType<std::string>::echo(v.empty() ? "" : v.list.front().path);
  Value out = Value::map({});
  for (const auto& [split, path] : v.list) out.set(split, OptionType<std::string>::echo(path));
  if (!v.rest.empty()) out.set(v.rest, OptionType<std::string>::echo(CorpusLists::kRest));
  return out;
}

std::string Constants::value(std::string_view name) const {
  for (const auto& [key, value] : list)
    if (key == name) return value;
  return {};
}

std::vector<std::string> Constants::columns() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : list)
    if (name != "label" && name != "split") out.push_back(name);
  return out;
}

Constants Constants::of_source(const std::string& name) const {
  Constants out = *this;
  const std::string mark = kSource;
  for (auto& [key, value] : out.list)
    for (std::size_t at = 0; (at = value.find(mark, at)) != value.npos; at += name.size()) {
      if (name.empty())
        throw RunError(fmt::format(
            "constants.{}: {} is the name of one of several file_list nodes, and there is one; "
            "write the text itself",
            excerpt(key), mark));
      value.replace(at, mark.size(), name);
    }
  return out;
}

std::string OptionType<Constants>::parse(const Value& v, Constants& out) {
  if (!v.is_map()) return detail::is_not(v, "a map, such as {label: speech, corpus: TIMIT}");
  Constants read;
  if (std::string why = read_map(v, read.list); !why.empty()) return why;
  out = std::move(read);
  return {};
}

Value OptionType<Constants>::echo(const Constants& v) {
  Value out = Value::map({});
  for (const auto& [name, value] : v.list) out.set(name, OptionType<std::string>::echo(value));
  return out;
}

}  // namespace melflow
