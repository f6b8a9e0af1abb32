#include "stages/corpus/corpus_guess.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/value.h"
#include "stages/corpus/file_list_options.h"
#include "stages/corpus/folder_scan.h"
#include "stages/corpus/kaldi_folder.h"
#include "stages/corpus/lhotse_manifest.h"
#include "stages/corpus/path_parts.h"
#include "stages/corpus/split_name.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

// Whether a manifest of NeMo has parts of recordings, maybe in its last lines only.
bool has_offsets(const fs::path& list) {
  std::ifstream in(list);
  for (std::string line; std::getline(in, line);)
    if (line.find("\"offset\"") != line.npos) return true;
  return false;
}

std::string yaml(const std::string& text) { return to_json(Value::scalar(text, {}, true)); }

bool has(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The names in a folder, ascending.
Texts names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    names.insert(entry.path().filename());
  return {names.begin(), names.end()};
}

std::string first_line(const fs::path& list) {
  std::string line;
  TextLines(list.string()).next(line);
  return line;
}

// The columns of a data folder that most use.
std::string columns_of_kaldi(const std::string& folder) {
  const KaldiFolder table(folder, {});
  Texts out{"utterance"};
  for (const char* name : {"speaker", "text"})
    if (table.column(name) >= 0) out.emplace_back(name);
  return fmt::format("[{}]", fmt::join(out, ", "));
}

std::optional<CorpusGuess> kaldi(const fs::path& folder) {
  for (const fs::path& parent : {folder, folder / "data"}) {
    if (has(parent / "wav.scp")) {
      Texts files;
      for (const char* name : {"wav.scp", "segments", "utt2spk", "text"})
        if (has(parent / name)) files.emplace_back(name);
      CorpusGuess out{fmt::format("a data folder of Kaldi ({})", fmt::join(files, ", ")),
                      {{"manifest", yaml(parent.string())}}};
      if (has(parent / "segments")) out.options.emplace_back("utterances", "{}");
      out.options.emplace_back("columns", columns_of_kaldi(parent.string()));
      return out;
    }
    Texts splits, lists;
    bool has_segments = false;
    for (const std::string& name : names_in(parent))
      if (has(parent / name / "wav.scp") && split_name_problem(name).empty()) {
        splits.push_back(name);
        lists.push_back(fmt::format("{}: {}", yaml(name), yaml((parent / name).string())));
        has_segments = has_segments || has(parent / name / "segments");
      }
    if (splits.empty()) continue;
    CorpusGuess out{
        fmt::format("data folders of Kaldi, each a split ({})", fmt::join(splits, ", ")),
        {{"manifest", fmt::format("{{{}}}", fmt::join(lists, ", "))}}};
    if (has_segments) out.options.emplace_back("utterances", "{}");
    out.options.emplace_back("columns", columns_of_kaldi((parent / splits.front()).string()));
    return out;
  }
  return std::nullopt;
}

std::optional<CorpusGuess> lj_speech(const fs::path& folder) {
  const fs::path list = folder / "metadata.csv";
  if (!has(list) || !has(folder / "wavs")) return std::nullopt;
  const std::string line = first_line(list);
  const auto bars = std::count(line.begin(), line.end(), '|');
  if (bars < 1 || bars > 2) return std::nullopt;
  return CorpusGuess{"LJSpeech (metadata.csv with |, wavs/ID.wav)",
                     {{"root", yaml(folder.string())},
                      {"manifest", yaml(list.string())},
                      {"delimiter", "\"|\""},
                      {"header", bars == 2 ? "[id, text, normalized]" : "[id, text]"},
                      {"columns_are", "{path: \"wavs/{id}.wav\"}"},
                      {"columns", bars == 2 ? "{text: normalized}" : "[text]"}}};
}

std::optional<CorpusGuess> common_voice(const fs::path& folder) {
  if (!has(folder / "clips")) return std::nullopt;
  Texts names, lists;
  for (const char* name : {"train", "dev", "test"}) {
    const fs::path list = folder / (name + std::string(".tsv"));
    if (!has(list) || first_line(list).find("\tsentence") == std::string::npos) continue;
    names.push_back(list.filename());
    lists.push_back(fmt::format("{}: {}", name, yaml(list.string())));
  }
  if (lists.empty()) return std::nullopt;
  return CorpusGuess{fmt::format("Common Voice ({}, clips)", fmt::join(names, ", ")),
                     {{"root", yaml(folder.string())},
                      {"manifest", fmt::format("{{{}}}", fmt::join(lists, ", "))},
                      {"columns_are", "{path: \"clips/{path}\"}"},
                      {"columns", "{text: sentence, speaker: client_id}"}}};
}

std::optional<CorpusGuess> libri_speech(const fs::path& folder) {
  std::string example;
  const auto find = [&](const FolderScan::Found& found) {
    if (example.empty() && !found.is_folder && found.error == 0)
      example = std::string(found.folder) + std::string(found.name);
  };
  FolderScan({folder.string(), {"**/*.trans.txt"}, {}, false}).run(find);
  if (example.empty()) return std::nullopt;
  const bool has_splits = std::count(example.begin(), example.end(), '/') == 3;
  std::string ending = ".flac";
  for (const std::string& name : names_in((folder / example).parent_path()))
    if (name.ends_with(".wav")) ending = ".wav";
  CorpusGuess out{"LibriSpeech (*.trans.txt beside the files)",
                  {{"root", yaml(folder.string())},
                   {"manifest", yaml((folder / "**/*.trans.txt").string())},
                   {"header", "[id, text]"},
                   {"delimiter", "\" \""},
                   {"columns_are", fmt::format("{{path: \"{{folder}}{{id}}{}\"}}", ending)},
                   // "$$": a $ begins a variable.
                   {"columns", "{text: text, speaker: '([0-9]+)-[0-9]+-[0-9]+[.][a-z]+$$'}"}}};
  if (has_splits) out.options.emplace_back("splits", "top_dir");
  return out;
}

std::optional<CorpusGuess> lhotse(const fs::path& folder) {
  std::optional<std::pair<int, std::string>> best;  // cuts before supervisions before recordings
  for (const std::string& name : names_in(folder)) {
    const std::string list = (folder / name).string();
    if ((!name.ends_with(".jsonl") && !name.ends_with(".jsonl.gz")) ||
        !LhotseManifest::is_one(list))
      continue;
    const std::string line = first_line(list);
    const int rank =
        line.find("\"recording_id\"") != line.npos && line.find("\"supervisions\"") == line.npos ? 1
        : line.find("\"supervisions\"") == line.npos && line.find("\"tracks\"") == line.npos     ? 2
                                                                                             : 0;
    if (!best || rank < best->first) best.emplace(rank, list);
  }
  if (!best) return std::nullopt;
  constexpr const char* kWhat[] = {"cuts", "supervisions, with the recordings beside them",
                                   "recordings"};
  return CorpusGuess{fmt::format("a manifest of Lhotse ({} in {})", kWhat[best->first],
                                 fs::path(best->second).filename().string()),
                     {{"manifest", yaml(best->second)},
                      {"utterances", "{}"},
                      {"columns", "[utterance, text, speaker]"}}};
}

// Finds the first of these names among a table's columns.
std::string one_of(TableReader& table, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (table.find_column(name) >= 0) return name;
  return "";
}

// Finds the folder below `folder` to which a path of a table is relative: "", "audio/", ...
std::optional<std::string> folder_of_paths(const fs::path& folder, const fs::path& list,
                                           const std::string& path) {
  if (path.empty()) return std::nullopt;
  if (path.starts_with('/')) return has(path) ? std::optional<std::string>("") : std::nullopt;
  Texts folders{"", fs::relative(list.parent_path(), folder).string() + '/'};
  for (const std::string& name : names_in(folder))
    if (fs::is_directory(folder / name)) folders.push_back(name + '/');
  for (const std::string& below : folders)
    if (has(folder / below / path)) return below == "./" ? "" : below;
  return std::nullopt;
}

std::optional<CorpusGuess> of_table(const fs::path& folder, const fs::path& list) {
  const std::unique_ptr<TableReader> table = open_table(list.string(), {});
  const std::string path = one_of(*table, {"path", "file_name", "filename", "file", "filepath",
                                           "file_path", "wav", "fname", "audio"});
  if (path.empty() || table->find_column(path) < 0) return std::nullopt;
  std::optional<std::string> below;
  for (int rows = 0; rows < 20 && !below; ++rows) {  // some of the files may be missing
    try {
      if (!table->next()) break;
    } catch (const BadLine&) {
      continue;
    }
    below = folder_of_paths(folder, list, table->cell(path));
  }
  if (!below) return std::nullopt;
  const bool is_nemo = table->column("audio_filepath") >= 0 && path == "path";
  CorpusGuess out{
      fmt::format("{} ({}, {} columns)", is_nemo ? "a manifest of NeMo" : "a table with paths",
                  fs::relative(list, folder).string(), table->columns().size()),
      {{"root", yaml((folder / *below).string())}, {"manifest", yaml(list.string())}}};
  if (out.options.front().second.ends_with("/\""))
    out.options.front().second = yaml((folder / *below).parent_path().string());
  Texts are;
  const auto name = [&](const char* role, std::initializer_list<const char*> names) {
    const std::string column = one_of(*table, names);
    if (!column.empty() && column != role) are.push_back(fmt::format("{}: {}", role, yaml(column)));
    return !column.empty();
  };
  if (path != "path") are.push_back("path: " + yaml(path));
  const bool has_labels = name("label", {"label", "category", "class", "label_name"});
  name("split", {"split", "fold"});
  const bool has_start = name("start", {"start", "offset", "begin", "start_time"});
  const bool has_end =
      (has_start || (is_nemo && has_offsets(list))) &&
      (name("end", {"end", "stop", "end_time"}) || table->find_column("duration") >= 0);
  if (!has_end) std::erase_if(are, [](const std::string& a) { return a.starts_with("start: "); });
  if (is_nemo) std::erase_if(are, [](const std::string& a) { return a.starts_with("start: "); });
  if (!are.empty())
    out.options.emplace_back("columns_are", fmt::format("{{{}}}", fmt::join(are, ", ")));
  if (has_labels) out.options.emplace_back("labels", "manifest");
  if (has_end) out.options.emplace_back("utterances", "{}");
  Texts columns;
  for (const char* column : {"text", "sentence", "transcription", "speaker", "client_id"})
    if (table->find_column(column) >= 0) columns.emplace_back(column);
  if (!columns.empty())
    out.options.emplace_back("columns", fmt::format("[{}]", fmt::join(columns, ", ")));
  return out;
}

std::optional<CorpusGuess> tables(const fs::path& folder) {
  for (const fs::path& parent : {folder, folder / "meta", folder / "metadata"})
    for (const std::string& name : names_in(parent)) {
      const fs::path list = parent / name;
      std::error_code error;
      if (!fs::is_regular_file(list, error) || !is_table(list.string())) continue;
      try {
        if (auto guess = of_table(folder, list)) return guess;
      } catch (const RunError&) {  // some other table
      }
    }
  return std::nullopt;
}

std::optional<CorpusGuess> folders(const fs::path& folder) {
  std::size_t files = 0;
  std::ptrdiff_t depth = -1;  // the least number of folders above a file
  std::set<std::string> top;
  const auto count = [&](const FolderScan::Found& found) {
    if (found.is_folder || found.error != 0) return;
    const auto above = std::count(found.folder.begin(), found.folder.end(), '/');
    depth = files++ == 0 ? above : std::min(depth, above);
    top.emplace(first_folder(std::string(found.folder) + "x"));
  };
  FolderScan({folder.string(), FileListOptions{}.include, {}, false}).run(count);
  if (files == 0) return std::nullopt;
  const bool are_splits =
      depth > 0 && top.size() > 1 && std::all_of(top.begin(), top.end(), is_known_split);
  const bool has_labels = depth > (are_splits ? 1 : 0);
  CorpusGuess out{
      fmt::format(
          "a folder of {} sound file{}{}{}", files, files == 1 ? "" : "s",
          are_splits ? fmt::format(", in one for each split ({})", fmt::join(top, ", ")) : "",
          has_labels ? ", with labels from the names of folders" : ""),
      {{"root", yaml(folder.string())}}};
  if (are_splits) out.options.emplace_back("splits", "top_dir");
  if (has_labels) out.options.emplace_back("labels", "top_dir");
  return out;
}

}  // namespace

std::optional<CorpusGuess> guess_corpus(const std::string& folder) {
  fs::path path = fs::path(folder).lexically_normal();
  if (!path.has_filename() && path.has_parent_path()) path = path.parent_path();
  for (const auto guess :
       {&kaldi, &lj_speech, &common_voice, &libri_speech, &lhotse, &tables, &folders})
    if (auto found = guess(path)) return found;
  return std::nullopt;
}

}  // namespace melflow
