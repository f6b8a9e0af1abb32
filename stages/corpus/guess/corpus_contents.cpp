#include "stages/corpus/guess/corpus_contents.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "pipeline/base/text.h"
#include "stages/corpus/file_list_options.h"
#include "stages/corpus/folder_scan.h"
#include "stages/corpus/name_rule.h"
#include "stages/corpus/path_parts.h"
#include "stages/corpus/table_reader.h"

namespace melflow {
namespace {

std::string_view folder_of(std::string_view path) { return path.substr(0, path.rfind('/') + 1); }

// The name without its last ending, or without all of them.
std::string_view stem_of(std::string_view path, bool whole_ending) {
  const std::size_t begin = path.rfind('/') + 1;
  const std::size_t dot = whole_ending ? path.find('.', begin) : path.rfind('.');
  return dot == path.npos || dot < begin ? path : path.substr(0, dot);
}

// The template of the text at `path` for the sound file of the same name.
std::string template_of(std::string_view path, std::string_view ending, std::string_view sound) {
  std::string folder(folder_of(path));
  const std::string_view parent = parent_folder(path), top = first_folder(path);
  if (!parent.empty() && parent == parent_folder(sound))
    folder.replace(folder.size() - parent.size() - 1, parent.size(), "{parent_dir}");
  if (top.size() + 1 < folder_of(path).size() && top == first_folder(sound))
    folder.replace(0, top.size(), "{top_dir}");
  return folder.append("{name}").append(ending);
}

}  // namespace

bool CorpusContents::Beside::is_rule() const {
  return NameRule::is_beside(rule) && NameRule::problem(rule).empty() &&
         rule.find(':') == rule.npos && excerpt(rule, kLongestPath) == rule &&
         rule.find_first_of("\"\\$") == rule.npos;
}

void CorpusContents::add(std::string path) {
  static const FolderScan sound({"", FileListOptions{}.include, {}, false});
  (sound.wanted(path) ? sounds_ : others_).push_back(std::move(path));
}

void CorpusContents::add_folder(const std::string& folder) {
  FolderScan({folder, {"**"}, {}, false}).run([this](const FolderScan::Found& found) {
    if (!found.is_folder && found.error == 0) add(std::string(found.folder).append(found.name));
  });
}

std::pair<std::vector<CorpusContents::Beside>, std::vector<std::string>> CorpusContents::sorted()
    const {
  std::unordered_set<std::string_view> stems;
  std::unordered_map<std::string_view, std::string_view> by_name;  // name -> sound file
  for (const std::string& sound : sounds_)
    for (const bool whole_ending : {false, true}) {
      const std::string_view stem = stem_of(sound, whole_ending);
      stems.insert(stem);
      if (!whole_ending) by_name.emplace(stem.substr(folder_of(stem).size()), sound);
    }
  std::map<std::string, Beside> rules;
  // Whether the file has the name of a sound file.
  const auto take = [&](const std::string& path) {
    for (const bool whole_ending : {false, true}) {
      const std::string_view stem = stem_of(path, whole_ending);
      const std::string ending = path.substr(stem.size());
      const auto named = by_name.find(stem.substr(folder_of(stem).size()));
      if (ending.empty() || named == by_name.end()) continue;
      const bool is_beside = stems.contains(stem);
      if (!is_beside && path.find_first_of("{}") != path.npos) continue;  // like a part of a rule
      const std::string rule = is_beside ? ending : template_of(path, ending, named->second);
      ++rules.try_emplace(rule, Beside{rule, path}).first->second.count;
      return true;
    }
    return false;
  };
  constexpr std::ptrdiff_t kDeepest = 2;
  std::pair<std::vector<Beside>, std::vector<std::string>> out;
  for (const std::string& path : others_)
    if (!take(path) && (has_separators(path) || is_json_lines(path)) &&
        std::count(path.begin(), path.end(), '/') <= kDeepest)
      out.second.push_back(path);
  for (auto& [rule, found] : rules) out.first.push_back(std::move(found));
  return out;
}

}  // namespace melflow
