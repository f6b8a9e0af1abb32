#include "stages/corpus/corpus_guess.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/value.h"
#include "stages/containers/archive.h"
#include "stages/corpus/archive_names.h"
#include "stages/corpus/corpus_contents.h"
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

// At most so many names, and how many more there are.
std::string some_of(const Texts& names) {
  constexpr std::size_t kMostNamed = 8;
  const std::size_t named = std::min(names.size(), kMostNamed);
  return fmt::format(
      "{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named), ", "),
      named < names.size() ? fmt::format(" and {} more", names.size() - named) : "");
}

std::string name_of(const std::string& path) { return fs::path(path).filename(); }

// A list, and its columns that are stored.
struct Listed {
  std::string path;
  Texts columns;
};

// Sets the option `columns` to those that all lists have, and remarks on the others.
void take_columns(const std::vector<Listed>& lists, CorpusGuess& out) {
  Texts all;
  std::map<std::string, Texts> some;  // by column, the lists that have it
  for (const Listed& list : lists)
    for (const std::string& column : list.columns) some[column].push_back(name_of(list.path));
  for (const std::string& column : lists.front().columns)
    if (some[column].size() == lists.size()) all.push_back(column);
  for (const auto& [column, names] : some)
    if (names.size() < lists.size())
      out.remarks.push_back(fmt::format("the column {} is not used: of {} lists {} {} it ({})",
                                        column, lists.size(), names.size(),
                                        names.size() == 1 ? "has" : "have", some_of(names)));
  if (!all.empty()) out.options.emplace_back("columns", fmt::format("[{}]", fmt::join(all, ", ")));
}

// The splits that several lists are, by what differs in their names: train_manifest.json and
// val_manifest.json are train and val. Empty unless all are names of splits.
std::vector<std::pair<std::string, std::string>> lists_by_split(const Texts& lists) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  Texts names;
  for (const std::string& list : lists) {
    const std::string name = name_of(list);
    names.push_back(name.substr(0, name.find('.')));
  }
  if (names.size() < 2) return {};
  const auto ends_differ = [&](const auto& at) {  // the length of what is common, up to a word
    std::size_t common = 0, words = 0;
    for (;; ++common) {
      for (const std::string& name : names)
        if (common >= name.size() || at(name, common) != at(names.front(), common)) return words;
      if (!is_letter(at(names.front(), common))) words = common + 1;
    }
  };
  const std::size_t begin = ends_differ([](auto& name, std::size_t i) { return name[i]; });
  for (std::string& name : names) name.erase(0, begin);
  const std::size_t end =
      ends_differ([](auto& name, std::size_t i) { return name[name.size() - 1 - i]; });
  std::vector<std::pair<std::string, std::string>> out;
  std::set<std::string> splits;
  for (std::size_t i = 0; i < names.size(); ++i) {
    out.emplace_back(names[i].substr(0, names[i].size() - end), lists[i]);
    if (!is_known_split(out.back().first) || !splits.insert(out.back().first).second) return {};
  }
  return out;
}

std::string map_of(const std::vector<std::pair<std::string, std::string>>& lists) {
  Texts out;
  for (const auto& [split, list] : lists)
    out.push_back(fmt::format("{}: {}", yaml(split), yaml(list)));
  return fmt::format("{{{}}}", fmt::join(out, ", "));
}

// Of these lists those whose names have the name of a split.
Texts named_after_splits(const Texts& lists) {
  Texts out;
  for (const std::string& list : lists) {
    std::string word;
    bool is_one = false;
    for (const char c : name_of(list) + '.') {
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
        word += c;
        continue;
      }
      is_one = is_one || is_known_split(word);
      word.clear();
    }
    if (is_one) out.push_back(list);
  }
  return out;
}

// The columns of a data folder that most use.
Listed columns_of_kaldi(const std::string& folder) {
  const KaldiFolder table(folder, {});
  Listed out{folder, {"utterance"}};
  for (const char* name : {"speaker", "text"})
    if (table.column(name) >= 0) out.columns.emplace_back(name);
  return out;
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
      take_columns({columns_of_kaldi(parent.string())}, out);
      return out;
    }
    Texts splits;
    std::vector<std::pair<std::string, std::string>> lists;
    std::vector<Listed> columns;
    bool has_segments = false;
    for (const std::string& name : names_in(parent))
      if (has(parent / name / "wav.scp") && split_name_problem(name).empty()) {
        splits.push_back(name);
        lists.emplace_back(name, (parent / name).string());
        columns.push_back(columns_of_kaldi(lists.back().second));
        has_segments = has_segments || has(parent / name / "segments");
      }
    if (splits.empty()) continue;
    CorpusGuess out{
        fmt::format("data folders of Kaldi, each a split ({})", fmt::join(splits, ", ")),
        {{"manifest", map_of(lists)}}};
    if (has_segments) out.options.emplace_back("utterances", "{}");
    take_columns(columns, out);
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
  Texts names;
  std::vector<std::pair<std::string, std::string>> lists;
  for (const char* name : {"train", "dev", "test"}) {
    const fs::path list = folder / (name + std::string(".tsv"));
    if (!has(list) || first_line(list).find("\tsentence") == std::string::npos) continue;
    names.push_back(list.filename());
    lists.emplace_back(name, list.string());
  }
  if (lists.empty()) return std::nullopt;
  return CorpusGuess{fmt::format("Common Voice ({}, clips)", fmt::join(names, ", ")),
                     {{"root", yaml(folder.string())},
                      {"manifest", map_of(lists)},
                      {"columns_are", "{path: \"clips/{path}\"}"},
                      {"columns", "{text: sentence, speaker: client_id}"}}};
}

std::optional<CorpusGuess> speech_commands(const fs::path& folder) {
  const fs::path validation = folder / "validation_list.txt", test = folder / "testing_list.txt";
  if (!has(validation) || !has(test)) return std::nullopt;
  const bool has_noise = has(folder / "_background_noise_");
  CorpusGuess out{
      fmt::format("Speech Commands (validation_list.txt, testing_list.txt, all others for "
                  "training; labels from the names of folders{})",
                  has_noise ? "; without _background_noise_" : ""),
      {{"root", yaml(folder.string())},
       {"manifest", fmt::format("{{train: rest, validation: {}, test: {}}}",
                                yaml(validation.string()), yaml(test.string()))},
       {"labels", "parent_dir"},
       {"columns", "{speaker: '/([^/_]+)_nohash_'}"}}};
  if (has_noise) out.options.emplace_back("exclude", "[_background_noise_]");
  return out;
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
  CorpusGuess out{fmt::format("LibriSpeech (*.trans.txt beside the files{})",
                              has(folder / "SPEAKERS.TXT") ? "; SPEAKERS.TXT" : ""),
                  {{"root", yaml(folder.string())},
                   {"manifest", yaml((folder / "**/*.trans.txt").string())},
                   {"header", "[id, text]"},
                   {"delimiter", "\" \""},
                   {"columns_are", fmt::format("{{path: \"{{folder}}{{id}}{}\"}}", ending)},
                   // "$$": a $ begins a variable.
                   {"columns", "{text: text, speaker: '([0-9]+)-[0-9]+-[0-9]+[.][a-z]+$$'}"}}};
  if (has_splits) out.options.emplace_back("splits", "top_dir");
  if (const fs::path speakers = folder / "SPEAKERS.TXT"; has(speakers))
    out.options.emplace_back(
        "join", fmt::format("{{table: {}, delimiter: \"|\", comment: \";\", header: [id, sex, "
                            "subset, minutes, name], on: speaker, columns: [sex]}}",
                            yaml(speakers.string())));
  return out;
}

std::optional<CorpusGuess> vox_celeb(const fs::path& folder) {
  const fs::path list = folder / "vox1_meta.csv";
  if (!has(list) || !has(folder / "wav")) return std::nullopt;
  return CorpusGuess{
      "VoxCeleb1 (wav/SPEAKER/VIDEO; vox1_meta.csv has splits and speakers)",
      {{"root", yaml((folder / "wav").string())},
       {"labels", "top_dir"},
       {"columns", "{speaker: top_dir, video: parent_dir}"},
       {"join", fmt::format("{{table: {}, delimiter: \"\\t\", on: speaker, key: VoxCeleb1 ID, "
                            "columns: {{gender: Gender}}, split: Set}}",
                            yaml(list.string()))}}};
}

std::optional<CorpusGuess> vctk(const fs::path& folder) {
  const fs::path list = folder / "speaker-info.txt";
  for (const char* name : {"wav48_silence_trimmed", "wav48"}) {
    if (!has(list) || !has(folder / name)) continue;
    std::string line;
    TextLines lines(list.string());
    for (int n = 0; n < 2; ++n) lines.next(line);
    // The first release has 225 where the folder is p225.
    const bool has_letters = !line.empty() && (line.front() == 'p' || line.front() == 's');
    // Two microphones share a text in the second release, of which no rule knows.
    const bool has_texts = has(folder / "txt") && name == std::string("wav48");
    CorpusGuess out{
        fmt::format("VCTK ({}/SPEAKER; {}speaker-info.txt)", name, has_texts ? "txt; " : ""),
        {{"root", yaml((has_texts ? folder : folder / name).string())},
         {"labels", "parent_dir"},
         // "$$": a $ begins a variable.
         {"columns", fmt::format("{{speaker: {}{}}}",
                                 has_letters ? "parent_dir" : "'(?:^|/)[a-z]*([^/]+)/[^/]+$$'",
                                 has_texts ? ", text: \"txt/{parent_dir}/{name}.txt\"" : "")},
         {"join",
          fmt::format("{{table: {}, delimiter: \" \", comment: ID, header: [id, age, gender, "
                      "accent], on: speaker, columns: [gender, accent]}}",
                      yaml(list.string()))}}};
    if (has(folder / "txt") && !has_texts)
      out.remarks.emplace_back(
          "the texts in txt are not used: they are called like the recordings without _mic1 and "
          "_mic2");
    return out;
  }
  return std::nullopt;
}

// The template of the files of AudioSet, by the first of the table's ids that a path has.
std::string path_of_audio_set(const fs::path& list, const CorpusContents& contents) {
  constexpr std::size_t kIdLength = 11;  // of YouTube
  const std::unique_ptr<TableReader> table =
      open_table(list.string(), {},
                 {.delimiter = ", ", .header = {"ytid", "start", "end", "labels"}, .comment = "#"});
  const int column = table->find_column("ytid");
  std::set<std::string, std::less<>> ids;
  constexpr std::size_t kMostIds = 1000;
  while (ids.size() < kMostIds) {
    try {
      if (!table->next()) break;
      ids.insert(table->cell(column));
    } catch (const BadLine&) {
    }
  }
  for (const std::string& path : contents.sounds())
    for (std::size_t at = path.rfind('/') + 1; at + kIdLength <= path.size(); ++at) {
      if (!ids.contains(std::string_view(path).substr(at, kIdLength))) continue;
      std::string rest = path.substr(at + kIdLength);
      // A time in the name may be written otherwise than in the table.
      if (rest.find_first_of("0123456789") < rest.rfind('.')) return "";
      return path.substr(0, at) + "{ytid}" + rest;
    }
  return "";
}

std::optional<CorpusGuess> audio_set(const fs::path& folder) {
  std::optional<CorpusContents> contents;
  std::vector<std::pair<std::string, std::string>> lists;  // by split
  Texts names;
  std::string path;
  for (const std::string& name : names_in(folder)) {
    const fs::path list = folder / name;
    std::error_code error;
    if (!has_separators(name) || !fs::is_regular_file(list, error)) continue;
    TextLines lines(list.string());
    bool is_one = false;
    for (std::string line; lines.next(line) && line.starts_with('#');)
      is_one = is_one || line.starts_with("# YTID,");
    if (!is_one) continue;
    if (!contents) contents.emplace().add_folder(folder.string());
    const std::string its = path_of_audio_set(list, *contents);
    if (its.empty() || (!path.empty() && its != path)) continue;
    path = its;
    names.push_back(name);
    lists.emplace_back(name.substr(0, std::min(name.find("_segments"), name.find('.'))), list);
  }
  if (lists.empty()) return std::nullopt;
  CorpusGuess out{
      fmt::format("AudioSet ({})", fmt::join(names, ", ")),
      {{"root", yaml(folder.string())},
       {"manifest", lists.size() > 1 ? map_of(lists) : yaml(lists.front().second)},
       {"delimiter", "\", \""},
       {"comment", "\"#\""},
       {"header", "[ytid, start, end, labels]"},
       {"columns_are", fmt::format("{{path: {}, label: labels}}", yaml(path))},
       {"labels", "manifest"},
       {"label_separator", "\",\""},
       {"utterances", "{}"}},
      {"the files are taken for whole videos, and the segments for parts of them; where the files "
       "are the segments themselves, remove utterances"}};
  if (const fs::path classes = folder / "class_labels_indices.csv"; has(classes))
    out.options.emplace_back("join",
                             fmt::format("{{table: {}, on: label, key: mid, label: display_name}}",
                                         yaml(classes.string())));
  return out;
}

// The best of these lists in the folder, or those of several splits.
std::optional<CorpusGuess> lhotse_of(const Texts& names, const fs::path& folder) {
  Texts lists[3];  // cuts before supervisions before recordings
  for (const std::string& name : names) {
    const std::string list = (folder / name).string();
    if ((!name.ends_with(".jsonl") && !name.ends_with(".jsonl.gz")) ||
        !LhotseManifest::is_one(list))
      continue;
    const std::string line = first_line(list);
    const int rank =
        line.find("\"recording_id\"") != line.npos && line.find("\"supervisions\"") == line.npos ? 1
        : line.find("\"supervisions\"") == line.npos && line.find("\"tracks\"") == line.npos     ? 2
                                                                                             : 0;
    lists[rank].push_back(list);
  }
  constexpr const char* kWhat[] = {"cuts", "supervisions, with the recordings beside them",
                                   "recordings"};
  for (std::size_t rank = 0; rank < std::size(lists); ++rank) {
    if (lists[rank].empty()) continue;
    const auto splits = lists_by_split(named_after_splits(lists[rank]));
    Texts taken;
    for (const auto& [split, list] : splits) taken.push_back(name_of(list));
    const std::string first = lists[rank].front();
    return CorpusGuess{
        splits.empty() ? fmt::format("a manifest of Lhotse ({} in {})", kWhat[rank], name_of(first))
                       : fmt::format("manifests of Lhotse, each a split ({} in {})", kWhat[rank],
                                     fmt::join(taken, ", ")),
        {{"manifest", splits.empty() ? yaml(first) : map_of(splits)},
         {"utterances", "{}"},
         {"columns", "[utterance, text, speaker]"}}};
  }
  return std::nullopt;
}

std::optional<CorpusGuess> lhotse(const fs::path& folder) {
  return lhotse_of(names_in(folder), folder);
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

// A table that can be used, and how.
struct OfTable {
  CorpusGuess guess;  // without `columns`, and the manifest is the table
  Listed list;
  bool is_nemo = false;
};

// Whether the cells of a column have several texts, or there is but one.
bool differs(const std::string& list, const std::string& column) {
  const std::unique_ptr<TableReader> table = open_table(list, {});
  if (table->find_column(column) < 0) return false;
  std::optional<std::string> first;
  for (int rows = 0;;) {
    try {
      if (!table->next()) return rows < 2;
    } catch (const BadLine&) {
      continue;
    }
    ++rows;
    const std::string& cell = table->cell(column);
    if (first && cell != *first) return true;
    first = cell;
  }
}

// The column with paths of files, and the folder below `folder` where these begin.
std::optional<std::pair<std::string, std::string>> paths_in(TableReader& table,
                                                            const fs::path& folder,
                                                            const fs::path& list) {
  const std::string known = one_of(table, {"path", "file_name", "filename", "file", "filepath",
                                           "file_path", "wav", "fname", "audio"});
  constexpr int kRows = 20;  // some of the files may be missing
  for (int rows = 0; rows < kRows; ++rows) {
    try {
      if (!table.next()) break;
    } catch (const BadLine&) {
      continue;
    }
    Texts columns = known.empty() ? table.columns() : Texts{known};
    for (const std::string& column : columns) {
      if (table.column(column) < 0) continue;
      if (auto below = folder_of_paths(folder, list, table.cell(column)))
        return std::pair(column, std::move(*below));
    }
  }
  return std::nullopt;
}

std::optional<OfTable> of_table(const fs::path& folder, const fs::path& list) {
  const std::unique_ptr<TableReader> table = open_table(list.string(), {});
  const auto paths = paths_in(*table, folder, list);
  if (!paths) return std::nullopt;
  const auto& [path, below] = *paths;
  OfTable out;
  out.is_nemo = table->column("audio_filepath") >= 0 && path == "path";
  out.guess = {
      fmt::format("{} ({}, {} columns)", out.is_nemo ? "a manifest of NeMo" : "a table with paths",
                  fs::relative(list, folder).string(), table->columns().size()),
      {{"root", yaml((folder / below).string())}, {"manifest", yaml(list.string())}},
      {}};
  auto& options = out.guess.options;
  if (options.front().second.ends_with("/\""))
    options.front().second = yaml((folder / below).parent_path().string());
  Texts are;
  const auto name = [&](const char* role, std::initializer_list<const char*> names) {
    const std::string column = one_of(*table, names);
    if (!column.empty() && column != role) are.push_back(fmt::format("{}: {}", role, yaml(column)));
    return column;
  };
  if (path != "path") are.push_back("path: " + yaml(path));
  const std::string label = one_of(*table, {"label", "category", "class", "label_name"});
  const bool has_labels = !label.empty() && differs(list.string(), label);
  if (has_labels) name("label", {label.c_str()});
  name("split", {"split", "fold"});
  const bool has_start =
      !name("start", {"start", "offset", "begin", "start_time", "start_s", "start_seconds"})
           .empty();
  const bool has_end = (has_start || (out.is_nemo && has_offsets(list))) &&
                       (!name("end", {"end", "stop", "end_time", "end_s", "end_seconds"}).empty() ||
                        table->find_column("duration") >= 0);
  if (!has_end || out.is_nemo)
    std::erase_if(are, [](const std::string& a) { return a.starts_with("start: "); });
  if (!are.empty())
    options.emplace_back("columns_are", fmt::format("{{{}}}", fmt::join(are, ", ")));
  if (has_labels) options.emplace_back("labels", "manifest");
  if (has_end) options.emplace_back("utterances", "{}");
  out.list.path = list.string();
  for (const char* column :
       {"text", "sentence", "transcription", "transcript", "speaker", "client_id"})
    if (table->find_column(column) >= 0) out.list.columns.emplace_back(column);
  if (!label.empty() && !has_labels)
    out.guess.remarks.push_back(
        fmt::format("the column {} is not used: all its texts are the same", label));
  if (table->find_column("channel") >= 0)
    out.guess.remarks.emplace_back(
        "the column channel is not used: all channels of a file become one, and a channel for "
        "each line takes Python (docs/corpora.md)");
  return out;
}

CorpusGuess with_columns(const OfTable& table) {
  CorpusGuess out = table.guess;
  take_columns({table.list}, out);
  return out;
}

// The tables that are for splits where there are such, else the first.
std::optional<CorpusGuess> tables(const fs::path& folder) {
  for (const fs::path& parent : {folder, folder / "meta", folder / "metadata"}) {
    std::map<std::string, OfTable> found;
    Texts lists;
    for (const std::string& name : names_in(parent)) {
      const fs::path list = parent / name;
      std::error_code error;
      if (!fs::is_regular_file(list, error) || !is_table(list.string())) continue;
      try {
        if (auto table = of_table(folder, list)) {
          found.emplace(list.string(), std::move(*table));
          lists.push_back(list.string());
        }
      } catch (const RunError&) {  // some other table
      }
    }
    if (lists.empty()) continue;
    const auto splits = lists_by_split(named_after_splits(lists));
    if (splits.empty()) return with_columns(found.at(lists.front()));
    OfTable& first = found.at(splits.front().second);
    auto& manifest = first.guess.options[1].second;
    std::vector<Listed> listed;
    Texts names;
    for (const auto& [split, list] : splits) {
      OfTable& other = found.at(list);
      if (&other != &first) {
        other.guess.options[1].second = manifest;
        if (other.guess.options != first.guess.options) return with_columns(first);
      }
      listed.push_back(other.list);
      names.push_back(fs::relative(list, folder));
    }
    manifest = map_of(splits);
    first.guess.what = fmt::format("{}, each a split ({})",
                                   first.is_nemo ? "manifests of NeMo" : "tables with paths",
                                   fmt::join(names, ", "));
    take_columns(listed, first.guess);
    return first.guess;
  }
  return std::nullopt;
}

// What to write for sound files that no list names. `what`: "a folder".
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
  const bool are_splits =
      depth > 0 && tops.size() > 1 && std::all_of(tops.begin(), tops.end(), is_known_split);
  // One and the same label for all files is none.
  const char* labels = depth <= (are_splits ? 1 : 0)                        ? ""
                       : (are_splits ? seconds : tops).size() > 1           ? "top_dir"
                       : depth > (are_splits ? 2 : 1) && parents.size() > 1 ? "parent_dir"
                                                                            : "";
  CorpusGuess out{"", {{"root", yaml(root)}}, {}};
  if (are_splits) out.options.emplace_back("splits", "top_dir");
  std::string text;
  Texts used;
  for (const CorpusContents::Beside& beside : contents.beside()) {
    const bool is_of_most = 2 * beside.count >= sounds.size();
    if (!is_of_most) continue;
    if (beside.rule == ".cls") {
      labels = ".cls";
      used.push_back(beside.rule);
    } else if (text.empty() && (beside.ends_in(".txt") || beside.ends_in(".lab"))) {
      text = beside.rule;
      used.push_back(beside.rule);
    }
  }
  if (*labels != '\0') out.options.emplace_back("labels", labels);
  if (!text.empty()) out.options.emplace_back("columns", fmt::format("{{text: {}}}", yaml(text)));
  out.what = fmt::format(
      "{} of {} sound file{}{}{}{}", what, sounds.size(), sounds.size() == 1 ? "" : "s",
      are_splits ? fmt::format(", in one for each split ({})", fmt::join(tops, ", ")) : "",
      std::string_view(labels).ends_with("_dir") ? ", with labels from the names of folders" : "",
      used.empty() ? "" : fmt::format(", with {} beside them", fmt::join(used, ", ")));
  return out;
}

// Remarks on files that the options do not name.
void note_unused(const CorpusContents& contents, const std::string& folder, CorpusGuess& out) {
  const auto is_used = [&](const std::string& text) {
    return std::any_of(out.options.begin(), out.options.end(), [&](const auto& option) {
      return option.second.find(text) != std::string::npos;
    });
  };
  Texts tables;
  for (const std::string& table : contents.tables())
    if (!is_used(yaml((fs::path(folder) / table).string()))) tables.push_back(table);
  for (const CorpusContents::Beside& beside : contents.beside()) {
    if (is_used(beside.rule)) continue;
    const bool is_root = out.options.front().second == yaml(folder) || beside.is_ending();
    const std::string key = beside.rule.ends_with(".json") ? ":KEY" : "";
    out.remarks.push_back(fmt::format(
        "{} {} called like sound files, such as {}, {} not used{}", beside.count,
        beside.count == 1 ? "file" : "files", beside.example, beside.count == 1 ? "is" : "are",
        is_root ? fmt::format("; to use them: columns: {{NAME: \"{}{}\"}}", beside.rule, key)
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
  auto out = found(
      contents, first.empty() ? "an archive" : fmt::format("{} archives, the first", names.size()),
      root);
  if (out) note_unused(contents, root, *out);
  return out;
}

// A folder of shards.
std::optional<CorpusGuess> shards(const fs::path& folder) {
  for (const char* ending : {".tar", ".zip"}) {
    const Texts names = names_in(folder);
    const auto is_one = [&](const std::string& name) { return name.ends_with(ending); };
    if (std::any_of(names.begin(), names.end(), is_one))
      return archives((folder / (std::string("*") + ending)).string());
  }
  return std::nullopt;
}

constexpr decltype(&kaldi) kOfLists[] = {&kaldi,     &lj_speech, &common_voice, &speech_commands,
                                         &vox_celeb, &vctk,      &libri_speech, &audio_set,
                                         &lhotse,    &tables};

std::optional<CorpusGuess> of_lists(const fs::path& folder) {
  for (const auto guess : kOfLists)
    if (auto found = guess(folder)) return found;
  return std::nullopt;
}

// Where the lists are in a folder below, it should be given.
void note_lists_below(const fs::path& folder, CorpusGuess& out) {
  for (const std::string& name : names_in(folder)) {
    std::error_code error;
    if (!fs::is_directory(folder / name, error)) continue;
    if (const auto below = of_lists(folder / name))
      out.remarks.push_back(fmt::format("{0} has {1}, which is not used; to use it: --from {0}",
                                        (folder / name).string(), below->what));
  }
}

// Why a table cannot be used by itself, and what to write.
std::string without_paths(const fs::path& list) {
  const std::unique_ptr<TableReader> table = open_table(list.string(), {});
  try {
    table->next();  // lines of JSON have no head
  } catch (const BadLine&) {
  }
  const Texts& columns = table->columns();
  return fmt::format(
      "{}: no column has paths of files that are there, from the folder of the table or the one "
      "above it; its columns are {}. Write the pipeline by hand: root: FOLDER, manifest: {}, "
      "columns_are: {{path: COLUMN}}, where paths lack a folder or an ending columns_are: {{path: "
      "\"wavs/{{COLUMN}}.wav\"}}; if that is its first row, header: [NAME, ...] too "
      "(docs/corpora.md)",
      list.string(), columns.empty() ? "none" : some_of(columns), list.string());
}

// A list, given itself. Its paths may start in its folder, or in the one above it.
std::optional<CorpusGuess> list(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (KaldiFolder::is_one(file.string())) return kaldi(folder);
  const std::string name = yaml((folder / file.filename()).string());
  for (const auto guess :
       {&lj_speech, &common_voice, &speech_commands, &vox_celeb, &vctk, &audio_set})
    if (auto found = guess(folder))
      for (const auto& [option, value] : found->options)
        if (value.find(name) != value.npos) return found;
  if (is_table(file.string())) {
    if (auto guess = lhotse_of({file.filename()}, folder)) return guess;
    for (const fs::path& root : {folder, folder / ".."})
      if (auto table = of_table(root.lexically_normal(), file)) return with_columns(*table);
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
          {{"root", yaml(root.lexically_normal().string())}, {"manifest", yaml(file.string())}},
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
  return out;
}

}  // namespace melflow
