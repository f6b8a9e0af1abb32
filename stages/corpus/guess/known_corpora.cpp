#include "stages/corpus/guess/known_corpora.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stages/corpus/folder_scan.h"
#include "stages/corpus/guess/corpus_contents.h"
#include "stages/corpus/kaldi_folder.h"
#include "stages/corpus/lhotse_manifest.h"
#include "stages/corpus/split_name.h"
#include "stages/corpus/table_reader.h"
#include "stages/corpus/text_lines.h"

namespace melflow::guesses {

namespace fs = std::filesystem;

namespace {

// Remarks that the lists `names` are not used, as their names make no splits.
void note_no_splits(const Texts& names, CorpusGuess& out) {
  if (!names.empty())
    out.remarks.push_back(
        fmt::format("not used, since no split of its own can be called so: {}", some_of(names)));
}

// The columns of a data folder that most use.
Listed columns_of_kaldi(const std::string& folder) {
  const KaldiFolder table(folder, {});
  Listed out{folder, {"utterance"}};
  for (const char* name : {"speaker", "text"})
    if (table.column(name) >= 0) out.columns.emplace_back(name);
  return out;
}

}  // namespace

std::optional<CorpusGuess> kaldi(const fs::path& folder) {
  for (const fs::path& parent : {folder, folder / "data"}) {
    if (has(parent / "wav.scp")) {
      Texts files;
      for (const char* name : {"wav.scp", "segments", "utt2spk", "text"})
        if (has(parent / name)) files.emplace_back(name);
      CorpusGuess out{fmt::format("a data folder of Kaldi ({})", fmt::join(files, ", ")),
                      {{"manifest", text(parent.string())}}};
      if (has(parent / "segments")) out.options.emplace_back("utterances", map({}));
      take_columns({columns_of_kaldi(parent.string())}, out);
      return out;
    }
    Texts splits, unused;
    SplitLists lists;
    std::vector<Listed> columns;
    bool has_segments = false;
    for (const std::string& name : names_in(parent)) {
      if (!has(parent / name / "wav.scp")) continue;
      if (!split_name_problem(name).empty()) {
        unused.push_back(name);
        continue;
      }
      splits.push_back(name);
      lists.emplace_back(name, (parent / name).string());
      columns.push_back(columns_of_kaldi(lists.back().second));
      has_segments = has_segments || has(parent / name / "segments");
    }
    if (splits.empty()) continue;
    CorpusGuess out{fmt::format("data folders of Kaldi, each a split ({})", some_of(splits)),
                    {{"manifest", map_of(lists)}}};
    if (has_segments) out.options.emplace_back("utterances", map({}));
    take_columns(columns, out);
    note_no_splits(unused, out);
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
  return CorpusGuess{
      "LJSpeech (metadata.csv with |, wavs/ID.wav)",
      {{"root", text(folder.string())},
       {"manifest", text(list.string())},
       {"delimiter", text("|")},
       {"header", bars == 2 ? words({"id", "text", "normalized"}) : words({"id", "text"})},
       {"columns_are", map({{"path", text("wavs/{id}.wav")}})},
       {"columns", bars == 2 ? map({{"text", word("normalized")}}) : words({"text"})}}};
}

std::optional<CorpusGuess> common_voice(const fs::path& folder) {
  if (!has(folder / "clips")) return std::nullopt;
  Texts names;
  SplitLists lists;
  for (const char* name : {"train", "dev", "test"}) {
    const fs::path list = folder / (name + std::string(".tsv"));
    if (!has(list) || first_line(list).find("\tsentence") == std::string::npos) continue;
    names.push_back(list.filename());
    lists.emplace_back(name, list.string());
  }
  if (lists.empty()) return std::nullopt;
  return CorpusGuess{
      fmt::format("Common Voice ({}, clips)", fmt::join(names, ", ")),
      {{"root", text(folder.string())},
       {"manifest", map_of(lists)},
       {"columns_are", map({{"path", text("clips/{path}")}})},
       {"columns", map({{"text", word("sentence")}, {"speaker", word("client_id")}})}}};
}

std::optional<CorpusGuess> speech_commands(const fs::path& folder) {
  const fs::path validation = folder / "validation_list.txt", test = folder / "testing_list.txt";
  if (!has(validation) || !has(test)) return std::nullopt;
  const bool has_noise = has(folder / "_background_noise_");
  CorpusGuess out{
      fmt::format("Speech Commands (validation_list.txt, testing_list.txt, all others for "
                  "training; labels from the names of folders{})",
                  has_noise ? "; without _background_noise_" : ""),
      {{"root", text(folder.string())},
       {"manifest", map({{"train", word("rest")},
                         {"validation", text(validation.string())},
                         {"test", text(test.string())}})},
       {"labels", word("parent_dir")},
       {"columns", map({{"speaker", text("/([^/_]+)_nohash_")}})}}};
  if (has_noise) out.options.emplace_back("exclude", words({"_background_noise_"}));
  return out;
}

std::optional<CorpusGuess> libri_speech(const fs::path& folder) {
  // The pattern of the lists begins with the folder, in which * would be one, too.
  if (folder.string().find_first_of("*?") != std::string::npos) return std::nullopt;
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
                  {{"root", text(folder.string())},
                   {"manifest", text((folder / "**/*.trans.txt").string())},
                   {"header", words({"id", "text"})},
                   {"delimiter", text(" ")},
                   {"columns_are", map({{"path", text("{folder}{id}" + ending)}})},
                   {"columns", map({{"text", word("text")},
                                    {"speaker", text("([0-9]+)-[0-9]+-[0-9]+[.][a-z]+$")}})}}};
  if (has_splits) out.options.emplace_back("splits", word("top_dir"));
  if (const fs::path speakers = folder / "SPEAKERS.TXT"; has(speakers))
    out.options.emplace_back("join",
                             map({{"table", text(speakers.string())},
                                  {"delimiter", text("|")},
                                  {"comment", text(";")},
                                  {"header", words({"id", "sex", "subset", "minutes", "name..."})},
                                  {"on", word("speaker")},
                                  {"columns", words({"sex"})}}));
  return out;
}

std::optional<CorpusGuess> vox_celeb(const fs::path& folder) {
  const fs::path list = folder / "vox1_meta.csv";
  if (!has(list) || !has(folder / "wav")) return std::nullopt;
  return CorpusGuess{
      "VoxCeleb1 (wav/SPEAKER/VIDEO; vox1_meta.csv has splits and speakers)",
      {{"root", text((folder / "wav").string())},
       {"labels", word("top_dir")},
       {"columns", map({{"speaker", word("top_dir")}, {"video", word("parent_dir")}})},
       {"join", map({{"table", text(list.string())},
                     {"delimiter", text("\t")},
                     {"on", word("speaker")},
                     {"key", text("VoxCeleb1 ID")},
                     {"columns", map({{"gender", word("Gender")}})},
                     {"split", word("Set")}})}}};
}

std::optional<CorpusGuess> vctk(const fs::path& folder) {
  const fs::path list = folder / "speaker-info.txt";
  for (const char* name : {"wav48_silence_trimmed", "wav48"}) {
    if (!has(list) || !has(folder / name)) continue;
    std::string line;
    TextLines lines(list.string());
    for (int n = 0; n < 2; ++n) lines.next(line);
    // The list of the first release says 225 for the folder p225.
    const bool has_letters = !line.empty() && (line.front() == 'p' || line.front() == 's');
    // In the second release two microphones share a text, which no rule can express.
    const bool has_texts = has(folder / "txt") && name == std::string("wav48");
    Entries columns{
        {"speaker", has_letters ? word("parent_dir") : text("(?:^|/)[a-z]*([^/]+)/[^/]+$")}};
    if (has_texts) columns.emplace_back("text", text("txt/{parent_dir}/{name}.txt"));
    CorpusGuess out{
        fmt::format("VCTK ({}/SPEAKER; {}speaker-info.txt)", name, has_texts ? "txt; " : ""),
        {{"root", text((has_texts ? folder : folder / name).string())},
         {"labels", word("parent_dir")},
         {"columns", map(columns)},
         {"join", map({{"table", text(list.string())},
                       {"delimiter", text(" ")},
                       {"comment", word("ID")},
                       {"header", words({"id", "age", "gender", "accent"})},
                       {"on", word("speaker")},
                       {"columns", words({"gender"})}})}}};
    if (has(folder / "txt") && !has_texts)
      out.remarks.emplace_back(
          "the texts in txt are not used: their names lack the _mic1 or _mic2 of the recordings");
    return out;
  }
  return std::nullopt;
}

namespace {

// The template of AudioSet's paths, from the first one that contains an id of the table; "": none.
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
      if (path.find_first_of("{}") != path.npos) return "";  // it would be a template of its own
      return path.substr(0, at) + "{ytid}" + rest;
    }
  return "";
}

}  // namespace

std::optional<CorpusGuess> audio_set(const fs::path& folder) {
  std::optional<CorpusContents> contents;
  SplitLists lists;  // by split
  Texts names, unused;
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
    const std::string split = name.substr(0, std::min(name.find("_segments"), name.find('.')));
    const auto is_it = [&](const auto& one) { return one.first == split; };
    if (!split_name_problem(split).empty() || std::any_of(lists.begin(), lists.end(), is_it)) {
      unused.push_back(name);
      continue;
    }
    path = its;
    names.push_back(name);
    lists.emplace_back(split, list);
  }
  if (lists.empty()) return std::nullopt;
  CorpusGuess out{
      fmt::format("AudioSet ({})", some_of(names)),
      {{"root", text(folder.string())},
       {"manifest", lists.size() > 1 ? map_of(lists) : text(lists.front().second)},
       {"delimiter", text(", ")},
       {"comment", text("#")},
       {"header", words({"ytid", "start", "end", "labels"})},
       {"columns_are", map({{"path", text(path)}, {"label", word("labels")}})},
       {"labels", word("manifest")},
       {"label_separator", text(",")},
       {"utterances", map({})}},
      {"the files are taken for whole videos, and the segments for parts of them; where the files "
       "are the segments themselves, remove utterances"}};
  if (const fs::path classes = folder / "class_labels_indices.csv"; has(classes))
    out.options.emplace_back("join", map({{"table", text(classes.string())},
                                          {"on", word("label")},
                                          {"key", word("mid")},
                                          {"label", word("display_name")}}));
  note_no_splits(unused, out);
  return out;
}

// Describes the best of these lists in the folder, or all of them if they are splits.
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
                                     some_of(taken)),
        {{"manifest", splits.empty() ? text(first) : map_of(splits)},
         {"utterances", map({})},
         {"columns", rank == 2 ? words({"utterance"}) : words({"utterance", "text", "speaker"})}}};
  }
  return std::nullopt;
}

std::optional<CorpusGuess> lhotse(const fs::path& folder) {
  return lhotse_of(names_in(folder), folder);
}

}  // namespace melflow::guesses
