#include "stages/corpus/corpus_guess.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/value.h"
#include "stages/containers/archive.h"
#include "stages/corpus/archive_names.h"
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
    return CorpusGuess{
        fmt::format("VCTK ({}/SPEAKER; speaker-info.txt)", name),
        {{"root", yaml((folder / name).string())},
         {"labels", "top_dir"},
         {"columns", has_letters ? "{speaker: top_dir}" : "{speaker: '^[a-z]*([^/]+)/'}"},
         {"join",
          fmt::format("{{table: {}, delimiter: \" \", comment: ID, header: [id, age, gender, "
                      "accent], on: speaker, columns: [gender, accent]}}",
                      yaml(list.string()))}}};
  }
  return std::nullopt;
}

// The best of these lists in the folder.
std::optional<CorpusGuess> lhotse_of(const Texts& names, const fs::path& folder) {
  std::optional<std::pair<int, std::string>> best;  // cuts before supervisions before recordings
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

// Counts sound files by their paths.
class Recordings {
 public:
  void add(std::string_view folder) {
    const auto above = std::count(folder.begin(), folder.end(), '/');
    depth_ = count_++ == 0 ? above : std::min(depth_, above);
    top_.emplace(first_folder(std::string(folder) + "x"));
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  // `what`: "a folder".
  [[nodiscard]] CorpusGuess guess(const std::string& what, const std::string& root) const {
    const bool are_splits =
        depth_ > 0 && top_.size() > 1 && std::all_of(top_.begin(), top_.end(), is_known_split);
    const bool has_labels = depth_ > (are_splits ? 1 : 0);
    CorpusGuess out{
        fmt::format(
            "{} of {} sound file{}{}{}", what, count_, count_ == 1 ? "" : "s",
            are_splits ? fmt::format(", in one for each split ({})", fmt::join(top_, ", ")) : "",
            has_labels ? ", with labels from the names of folders" : ""),
        {{"root", yaml(root)}}};
    if (are_splits) out.options.emplace_back("splits", "top_dir");
    if (has_labels) out.options.emplace_back("labels", "top_dir");
    return out;
  }

 private:
  std::size_t count_ = 0;
  std::ptrdiff_t depth_ = -1;  // the least number of folders above a file
  std::set<std::string> top_;
};

std::optional<CorpusGuess> folders(const fs::path& folder) {
  Recordings recordings;
  FolderScan({folder.string(), FileListOptions{}.include, {}, false})
      .run([&](const FolderScan::Found& found) {
        if (!found.is_folder && found.error == 0) recordings.add(found.folder);
      });
  if (recordings.count() == 0) return std::nullopt;
  return recordings.guess("a folder", folder.string());
}

// `root`: an archive, or a pattern of several, of which the first is looked at.
std::optional<CorpusGuess> archives(const std::string& root) {
  const Texts names = archives_of(root);
  const std::string& first = names.front();
  const auto archive = archive_at(first.empty() ? root : archive_base(root) + '/' + first);
  const FolderScan sound({"", FileListOptions{}.include, {}, false});
  Recordings recordings;
  std::set<std::string> stems, texts, labels;  // the paths before the endings
  for (std::size_t i = 0; i < archive->size(); ++i) {
    const std::string name(archive->name(i));
    const std::string stem = name.substr(0, name.rfind('.'));
    if (name.ends_with(".txt")) texts.insert(stem);
    if (name.ends_with(".cls")) labels.insert(stem);
    if (!sound.wanted(name)) continue;
    recordings.add(name.substr(0, name.rfind('/') + 1));
    stems.insert(stem);
  }
  if (recordings.count() == 0) return std::nullopt;
  CorpusGuess out = recordings.guess(
      first.empty() ? "an archive" : fmt::format("{} archives, the first", names.size()), root);
  const auto are_beside = [&](const std::set<std::string>& beside) {
    return std::any_of(stems.begin(), stems.end(),
                       [&](const std::string& stem) { return beside.contains(stem); });
  };
  Texts endings;
  if (are_beside(labels)) {
    std::erase_if(out.options, [](const auto& option) { return option.first == "labels"; });
    out.options.emplace_back("labels", ".cls");
    endings.emplace_back(".cls");
  }
  if (are_beside(texts)) {
    out.options.emplace_back("columns", "{text: .txt}");
    endings.emplace_back(".txt");
  }
  if (!endings.empty()) out.what += fmt::format(", with {} beside them", fmt::join(endings, ", "));
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

// A list, given itself. Its paths may start in its folder, or in the one above it.
std::optional<CorpusGuess> list(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (KaldiFolder::is_one(file.string())) return kaldi(folder);
  const std::string name = yaml((folder / file.filename()).string());
  for (const auto guess : {&lj_speech, &common_voice, &speech_commands, &vox_celeb, &vctk})
    if (auto found = guess(folder))
      for (const auto& [option, value] : found->options)
        if (value.find(name) != value.npos) return found;
  if (is_table(file.string())) {
    if (auto guess = lhotse_of({file.filename()}, folder)) return guess;
    for (const fs::path& root : {folder, folder / ".."})
      if (auto guess = of_table(root.lexically_normal(), file)) return guess;
    return std::nullopt;
  }
  std::error_code error;
  std::string line;
  for (TextLines lines(file.string()); lines.next(line);)
    if (!line.empty() && !line.starts_with('#')) break;
  for (const fs::path& root : {folder, folder / ".."})
    if (!line.empty() && fs::is_regular_file(root / line, error))
      return CorpusGuess{
          "a list of paths",
          {{"root", yaml(root.lexically_normal().string())}, {"manifest", yaml(file.string())}}};
  return std::nullopt;
}

}  // namespace

std::optional<CorpusGuess> guess_corpus(const std::string& given) {
  fs::path path = fs::path(given).lexically_normal();
  if (!path.has_filename() && path.has_parent_path()) path = path.parent_path();
  if (names_archives(path.string())) return archives(path.string());
  std::error_code error;
  if (fs::is_regular_file(path, error)) return list(path);
  for (const auto guess : {&kaldi, &lj_speech, &common_voice, &speech_commands, &vox_celeb, &vctk,
                           &libri_speech, &lhotse, &tables, &folders, &shards})
    if (auto found = guess(path)) return found;
  return std::nullopt;
}

}  // namespace melflow
