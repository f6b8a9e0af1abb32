#include "stages/corpus/guess/corpus_guess.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/shell_word.h"
#include "stages/containers/archive.h"
#include "stages/corpus/archive_names.h"
#include "stages/corpus/guess/corpus_contents.h"
#include "stages/corpus/guess/guess_parts.h"
#include "stages/corpus/guess/known_corpora.h"
#include "stages/corpus/guess/table_guess.h"
#include "stages/corpus/kaldi_folder.h"
#include "stages/corpus/path_parts.h"
#include "stages/corpus/split_name.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"
#include "stages/files/packing.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;
using namespace guesses;

// Returns the options for sound files that no list names. `what`: "a folder".
std::optional<CorpusGuess> found(const CorpusContents& contents, const std::string& what,
                                 const std::string& root) {
  const Texts& sounds = contents.sounds();
  if (sounds.empty()) return std::nullopt;
  std::ptrdiff_t depth = std::numeric_limits<std::ptrdiff_t>::max();  // folders above every file
  std::set<std::string> tops, seconds, parents;
  for (const std::string& path : sounds) {
    depth = std::min(depth, std::count(path.begin(), path.end(), '/'));
    tops.emplace(first_folder(path));
    seconds.emplace(first_folder(std::string_view(path).substr(path.find('/') + 1)));
    parents.emplace(parent_folder(path));
  }
  const bool are_splits = depth > 0 && tops.size() > 1 &&
                          std::all_of(tops.begin(), tops.end(), [](const std::string& name) {
                            return is_known_split(name) && split_name_problem(name).empty();
                          });
  // One and the same label for all files is none.
  const char* labels = depth <= (are_splits ? 1 : 0)                        ? ""
                       : (are_splits ? seconds : tops).size() > 1           ? "top_dir"
                       : depth > (are_splits ? 2 : 1) && parents.size() > 1 ? "parent_dir"
                                                                            : "";
  CorpusGuess out{"", {{"root", text(root)}}, {}};
  if (are_splits) out.options.emplace_back("splits", word("top_dir"));
  std::string of_text;
  Texts used;
  for (const CorpusContents::Beside& beside : contents.beside()) {
    const bool is_of_most = 2 * beside.count >= sounds.size();
    if (!is_of_most) continue;
    if (beside.rule == ".cls") {
      labels = ".cls";
      used.push_back(beside.rule);
    } else if (of_text.empty() && (beside.ends_in(".txt") || beside.ends_in(".lab")) &&
               beside.is_rule()) {
      of_text = beside.rule;
      used.push_back(beside.rule);
    }
  }
  if (*labels != '\0') out.options.emplace_back("labels", word(labels));
  if (!of_text.empty()) out.options.emplace_back("columns", map({{"text", text(of_text)}}));
  out.what = fmt::format(
      "{} of {} sound file{}{}{}{}", what, sounds.size(), sounds.size() == 1 ? "" : "s",
      are_splits ? fmt::format(", in one for each split ({})", some_of({tops.begin(), tops.end()}))
                 : "",
      std::string_view(labels).ends_with("_dir") ? ", with labels from the names of folders" : "",
      used.empty() ? "" : fmt::format(", with {} beside them", fmt::join(used, ", ")));
  return out;
}

// Remarks on files that the options do not name.
void note_unused(const CorpusContents& contents, const std::string& folder, CorpusGuess& out) {
  const auto is_used = [&](const std::string& name) {
    return std::any_of(out.options.begin(), out.options.end(),
                       [&](const auto& option) { return mentions(option.second, name); });
  };
  Texts tables;
  for (const std::string& table : contents.tables())
    if (!is_used((fs::path(folder) / table).string())) tables.push_back(table);
  for (const CorpusContents::Beside& beside : contents.beside()) {
    if (is_used(beside.rule)) continue;
    const bool is_root = out.options.front().second.text() == folder || beside.is_ending();
    const std::string key = beside.rule.ends_with(".json") ? ":KEY" : "";
    out.remarks.push_back(fmt::format(
        "{} {} named like sound files, such as {}, {} not used{}", beside.count,
        beside.count == 1 ? "file" : "files", beside.example, beside.count == 1 ? "is" : "are",
        is_root && beside.is_rule()
            ? fmt::format("; to use them: columns: {{NAME: \"{}{}\"}}", beside.rule, key)
            : ""));
  }
  if (!tables.empty())
    out.remarks.push_back(fmt::format(
        "{} not used: {}", tables.size() == 1 ? "a table is" : "tables are", some_of(tables)));
}

// `root`: an archive, or a pattern of several, of which the first is looked at.
std::optional<CorpusGuess> archives(const std::string& root) {
  const Texts names = archives_of(root);
  const std::string& first = names.front();
  const auto archive = archive_at(first.empty() ? root : archive_base(root) + '/' + first);
  CorpusContents contents;
  for (std::size_t i = 0; i < archive->size(); ++i) contents.add(std::string(archive->name(i)));
  auto out = found(contents,
                   first.empty() || names.size() == 1
                       ? "an archive"
                       : fmt::format("{} archives, the first", names.size()),
                   root);
  if (out) note_unused(contents, root, *out);
  return out;
}

// The archives in a folder: of each ending the only one, or a pattern of them.
Texts archives_in(const fs::path& folder) {
  const Texts names = names_in(folder);
  Texts out;
  for (const std::string ending : {".tar", ".zip", ".tar.gz", ".tgz"}) {
    const auto is_one = [&](const std::string& name) { return name.ends_with(ending); };
    const auto count = std::count_if(names.begin(), names.end(), is_one);
    if (count > 0)
      out.push_back(
          (folder / (count == 1 ? *std::find_if(names.begin(), names.end(), is_one) : "*" + ending))
              .string());
  }
  return out;
}

void note_archives(const Texts& others, CorpusGuess& out) {
  for (const std::string& root : others)
    out.remarks.push_back(fmt::format(
        "{} {} not used; to use {}: --from {}", root, root.find('*') == root.npos ? "is" : "are",
        root.find('*') == root.npos ? "it" : "them", shell_word(root)));
}

// A folder of shards.
std::optional<CorpusGuess> shards(const fs::path& folder) {
  Texts roots = archives_in(folder);
  if (roots.empty()) return std::nullopt;
  auto out = archives(roots.front());
  roots.erase(roots.begin());
  if (out) note_archives(roots, *out);
  return out;
}

constexpr Guess* kOfLists[] = {kaldi, lj_speech,    common_voice, speech_commands, vox_celeb,
                               vctk,  libri_speech, audio_set,    lhotse,          tables};

std::optional<CorpusGuess> of_lists(const fs::path& folder) {
  for (const auto guess : kOfLists)
    if (auto found = guess(folder)) return found;
  return std::nullopt;
}

// If the lists are in a subfolder, advises to give that. A link may lead anywhere, so it is not
// followed.
void note_lists_below(const fs::path& folder, CorpusGuess& out) {
  for (const std::string& name : names_in(folder)) {
    std::error_code error;
    if (fs::is_symlink(folder / name, error) || !fs::is_directory(folder / name, error)) continue;
    try {
      if (const auto below = of_lists(folder / name))
        out.remarks.push_back(fmt::format("{} has {}, which is not used; to use it: --from {}",
                                          (folder / name).string(), below->what,
                                          shell_word((folder / name).string())));
    } catch (const RunError&) {  // it is not what was asked for
    }
  }
}

// A list, given itself. Its paths may start in its folder, or in the one above it.
std::optional<CorpusGuess> list(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (KaldiFolder::is_one(file.string())) return kaldi(folder);
  if (const Packing* packing = packing_of_file(file.string());
      packing != nullptr && packing->ending != ".gz")
    throw RunError(fmt::format("{}: this is {}; {}", file.string(), packing->what,
                               advice_on(*packing, file.string())));
  const std::string name = (folder / file.filename()).string();
  for (const auto guess : {lj_speech, common_voice, speech_commands, vox_celeb, vctk, audio_set})
    if (auto found = guess(folder))
      for (const auto& [option, value] : found->options)
        if (mentions(value, name)) return found;
  if (is_table(file.string())) {
    if (auto guess = lhotse_of({file.filename()}, folder)) return guess;
    for (const fs::path& root : {folder, folder / ".."})
      if (auto found = table(root.lexically_normal(), file)) return found;
    throw RunError(without_paths(file));
  }
  std::error_code error;
  std::string line;
  for (TextLines lines(file.string()); lines.next(line);)
    if (!line.empty() && !line.starts_with('#')) break;
  for (const fs::path& root : {folder, folder / ".."})
    if (!line.empty() && fs::is_regular_file(root / line, error))
      return CorpusGuess{
          "a list of paths",
          {{"root", text(root.lexically_normal().string())}, {"manifest", text(file.string())}},
          {}};
  return std::nullopt;
}

}  // namespace

std::optional<CorpusGuess> guess_corpus(const std::string& given) {
  fs::path path = fs::path(given).lexically_normal();
  if (!path.has_filename() && path.has_parent_path()) path = path.parent_path();
  if (names_archives(path.string())) return archives(path.string());
  std::error_code error;
  if (fs::is_regular_file(path, error)) return list(path);
  std::optional<CorpusGuess> out = of_lists(path);
  const bool has_lists = out.has_value();
  CorpusContents contents;
  contents.add_folder(path.string());
  if (!out) out = found(contents, "a folder", path.string());
  if (!out) return shards(path);
  if (!has_lists) note_lists_below(path, *out);
  if (out->remarks.empty() || has_lists) note_unused(contents, path.string(), *out);
  note_archives(archives_in(path), *out);
  return out;
}

}  // namespace melflow
