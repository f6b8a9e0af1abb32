#include "stages/corpus/kaldi_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/containers/file_channel.h"

namespace melflow {
namespace {

constexpr const char* kCommands =
    "flac -dc FILE |, sph2pipe -f wav [-c N] FILE |, sox FILE -t wav - remix N | and cat FILE | "
    "stand for FILE, or its channel N; others are run only where commands: allow is written";

// Returns the first word of a line, and the rest of it without the blanks around it.
std::pair<std::string, std::string> first_and_rest(const std::string& line) {
  constexpr const char* kBlanks = " \t";
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::size_t begin = std::min(line.find_first_not_of(kBlanks, end), line.size());
  const std::size_t last = line.find_last_not_of(kBlanks);
  return {line.substr(0, end), begin < line.size() ? line.substr(begin, last + 1 - begin) : ""};
}

template <class F>
void for_each_line(TextLines lines, F&& take) {
  for (std::string line; lines.next(line);)
    if (const auto [name, rest] = first_and_rest(line); !name.empty())
      take(name, rest, lines.number());
}

// Splits a command into words as a shell does; nullopt where a shell would do more than that.
std::optional<std::vector<std::string>> words_of(std::string_view command) {
  std::vector<std::string> out;
  bool is_in_word = false;
  char quote = 0;
  for (const char c : command) {
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      if (!is_in_word) out.emplace_back();
      is_in_word = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      is_in_word = false;
    } else if (quote != '\'' &&
               std::string_view(quote == 0 ? "$`\\|&;<>()*?[]{}~#!" : "$`\\!").find(c) !=
                   std::string_view::npos) {
      return std::nullopt;
    } else {
      if (!is_in_word) out.emplace_back();
      is_in_word = true;
      out.back() += c;
    }
  }
  if (quote != 0) return std::nullopt;
  return out;
}

// Whether all letters of an option such as -dcs are among these.
bool has_only(const std::string& option, std::string_view letters) {
  return option.size() > 1 && option.front() == '-' &&
         option.find_first_not_of(letters, 1) == option.npos;
}

// A file, or a channel of it, counted from 1; a mono file has no channel to choose.
std::optional<std::string> file_or_channel(const std::string& file, const std::string& channel) {
  if (channel.empty()) return file;
  int number = 0;
  const auto [end, error] =
      std::from_chars(channel.data(), channel.data() + channel.size(), number);
  if (error != std::errc() || end != channel.data() + channel.size() || number < 1 ||
      number > FileChannel::kMost)
    return std::nullopt;
  return channel_path(file, number);
}

// A place in an archive: raw.ark:1234.
bool is_in_archive(const std::string& path) {
  const std::size_t colon = path.rfind(':');
  return colon != path.npos && colon + 1 < path.size() &&
         path.find_first_not_of("0123456789", colon + 1) == path.npos;
}

}  // namespace

std::optional<std::string> file_of_command(std::string_view command) {
  if (!command.ends_with('|')) return std::nullopt;
  auto words = words_of(command.substr(0, command.size() - 1));
  if (!words || words->size() < 2) return std::nullopt;
  const std::string program = std::filesystem::path(words->front()).filename();
  static constexpr std::string_view kRemix[] = {"-t", "wav", "-", "remix"};
  if (program == "sox" && words->size() == 7 &&
      std::equal(std::begin(kRemix), std::end(kRemix), words->begin() + 2))
    return file_or_channel((*words)[1], (*words)[6]);
  std::string file, channel;
  bool decodes = false;
  for (std::size_t i = 1; i < words->size(); ++i) {
    const std::string& word = (*words)[i];
    const bool is_option = word.starts_with('-');
    if (!is_option && !file.empty()) return std::nullopt;
    if (!is_option) {
      file = word;
    } else if (program == "flac" && (has_only(word, "dcs") || word == "--decode" ||
                                     word == "--stdout" || word == "--silent")) {
      decodes = decodes || word == "--decode" || (word[1] != '-' && word.find('d') != word.npos);
    } else if (program == "sph2pipe" && word == "-f" && i + 1 < words->size()) {
      const std::string& format = (*words)[++i];
      if (format != "wav" && format != "rif" && format != "sph" && format != "aif")
        return std::nullopt;
    } else if (program == "sph2pipe" && word == "-c" && i + 1 < words->size()) {
      channel = (*words)[++i];
    } else if (program != "sph2pipe" || word != "-p") {
      return std::nullopt;  // -t and -s are a part of the file
    }
  }
  const bool is_known = program == "cat" || program == "sph2pipe" || (program == "flac" && decodes);
  return is_known && !file.empty() ? file_or_channel(file, channel) : std::nullopt;
}

// Kaldi's validate_data_dir.sh has the same rule.
void KaldiFolder::Ids::add(const std::string& id, const std::string& path, int line) {
  const auto [it, is_new] = lines_.try_emplace(id, line);
  if (!is_new)
    throw RunError(
        fmt::format("{}:{}: {} is in line {} already; an id has one line, so remove one of them",
                    path, line, excerpt(id), it->second));
}

bool KaldiFolder::is_one(const std::string& path) {
  const std::filesystem::path file(path);
  std::error_code error;
  return file.filename() == "segments" || file.filename() == "wav.scp" ||
         (!path.empty() && std::filesystem::exists(file / "wav.scp", error));
}

std::vector<std::string> KaldiFolder::files_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file(path);
  const auto folder = std::filesystem::is_directory(file, error) ? file : file.parent_path();
  std::vector<std::string> out;
  for (const char* name :
       {"wav.scp", "segments", "text", "utt2spk", "spk2utt", "utt2lang", "reco2dur", "utt2dur"})
    out.push_back((folder / name).string());
  return out;
}

KaldiFolder::KaldiFolder(const std::string& path, const std::vector<std::string>& required,
                         OtherCommands commands)
    : keeps_commands_(commands == OtherCommands::keep),
      columns_{"path", "start", "end", "utterance", "recording"} {
  const std::filesystem::path file(path);
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(file, error);
  const std::filesystem::path folder = is_folder ? file : file.parent_path();
  has_segments_ = is_folder ? std::filesystem::exists(folder / "segments", error)
                            : file.filename() == "segments";
  const std::string segments = (folder / "segments").string();
  scp_ = (folder / "wav.scp").string();
  if (has_segments_) lines_.emplace(segments);
  read_scp(scp_, commands);
  if (!has_segments_) lines_.emplace(scp_);
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name, error); };
  const auto read = [&](const char* name, const char* column, bool by_speaker, bool of_recording) {
    if (!has(name)) return;
    columns_.emplace_back(column);
    others_.push_back(read_other((folder / name).string(), by_speaker, of_recording));
  };
  const bool has_speakers = has("utt2spk");
  read(has_speakers ? "utt2spk" : "spk2utt", "speaker", !has_speakers, false);
  read("text", "text", false, false);
  read("utt2lang", "language", false, false);
  read("reco2dur", "recording_duration", false, true);
  row_.resize(columns_.size());
  if (!has_segments_ && has("utt2dur") && !has("reco2dur"))
    durations_ = read_other((folder / "utt2dur").string(), false, true);
  for (const std::string& name : required)
    if (column(name) < 0)
      throw RunError(fmt::format("{}: there is no column '{}'; there are {}", path, excerpt(name),
                                 fmt::join(columns_, ", ")));
}

KaldiFolder::Other KaldiFolder::read_other(const std::string& path, bool is_by_speaker,
                                           bool is_of_recording) {
  Other other;
  other.path = path;
  other.is_of_recording = is_of_recording;
  Ids ids;
  for_each_line(TextLines(path), [&](const std::string& name, const std::string& rest, int line) {
    require_utf8(name, path, line);
    require_utf8(rest, path, line);
    if (!is_by_speaker) {
      ids.add(name, path, line);
      if (is_of_recording && seconds_in(rest) == 0)
        other.unlike.add(fmt::format("line {}: {}", line, excerpt(rest)));
      other.texts[name] = {rest, line};
      return;
    }
    std::istringstream utterances(rest);
    for (std::string utterance; utterances >> utterance;) {
      ids.add(utterance, path, line);
      other.texts[utterance] = {name, line};
    }
  });
  return other;
}

void KaldiFolder::read_scp(const std::string& scp, OtherCommands commands) {
  Ids ids;
  for_each_line(
      TextLines(scp, "; it says which files the recordings are"),
      [&](const std::string& name, const std::string& rest, int line) {
        if (has_segments_) ids.add(name, scp, line);
        const bool is_empty = rest.find_first_not_of(" \t|") == rest.npos;
        const bool is_command = !is_empty && rest.ends_with('|');
        const auto file = file_of_command(rest);
        // A kept command is known by the '|' at its end.
        if (file && (commands == OtherCommands::fail || !file->ends_with('|')))
          paths_[name] = *file;
        else if (is_command ? commands == OtherCommands::keep : !is_empty && !is_in_archive(rest))
          paths_[name] = rest;
        else
          unusable_[name] = fmt::format(
              "{}:{}: {} {}", scp, line, excerpt(name),
              is_command ? fmt::format("is a command ({}); {}", excerpt(rest), kCommands)
              : is_empty ? "is without a file; name one, or remove the line"
                         : fmt::format("is in an archive ({}); write its recordings to files "
                                       "(wav-copy) and name these",
                                       excerpt(rest)));
      });
}

int KaldiFolder::column(std::string_view name) const {
  const auto it = std::find(columns_.begin(), columns_.end(), name);
  return it == columns_.end() ? -1 : static_cast<int>(it - columns_.begin());
}

const KaldiFolder::Other::Text* KaldiFolder::text_of(const Other& other) const {
  const auto it = other.texts.find(row_[other.is_of_recording ? kRecording : kUtterance]);
  return it == other.texts.end() ? nullptr : &it->second;
}

TableReader::Place KaldiFolder::place(int column) const {
  if (column >= kOthers) {
    const Other& other = others_[static_cast<std::size_t>(column - kOthers)];
    if (const Other::Text* text = text_of(other)) return {other.path, text->line};
  }
  return {lines_->path(), lines_->number()};
}

DeclaredAudio KaldiFolder::declared(bool) const {
  if (const int c = column("recording_duration"); c >= 0) return {.seconds = seconds_in(cell(c))};
  const Other::Text* text = durations_ ? text_of(*durations_) : nullptr;
  return {.seconds = text == nullptr ? 0 : seconds_in(text->text)};
}

bool KaldiFolder::next() {
  std::string line;
  do {
    if (!lines_->next(line)) return false;
  } while (first_and_rest(line).first.empty());
  std::istringstream words(line);
  std::string utterance, recording, start, end, channel, more;
  bool is_complete = true;
  if (has_segments_) {
    words >> utterance >> recording >> start >> end >> channel;
    is_complete = !end.empty() && (words >> more).fail();
    if (end.starts_with('-')) end.clear();  // means the end of the recording
  } else {
    words >> utterance;
    recording = utterance;
  }
  row_ = {"", "", "", utterance, recording};
  for (const Other& other : others_) {
    const Other::Text* const text = text_of(other);
    row_.push_back(text == nullptr ? "" : text->text);
  }
  if (!is_complete)
    throw BadLine(fmt::format(
        "{}: '{}' is not a line of segments, which is: utterance, recording, start, end, and maybe "
        "the channel, from 0",
        where(), excerpt(line)));
  ids_.add(utterance, lines_->path(), this->line());
  const auto path = paths_.find(recording);
  const bool is_known = path != paths_.end();
  row_[kPath] = is_known ? path->second : recording;
  row_[kStart] = start;
  row_[kEnd] = end;
  ++utterances_;
  for (Other& other : others_)
    if (text_of(other) == nullptr) other.missing.add(utterance);
  if (is_known && !channel.empty()) row_[kPath] = of_channel(path->second, channel);
  if (is_known) return true;
  const auto why = unusable_.find(recording);
  throw BadLine(why != unusable_.end()
                    ? why->second
                    : fmt::format("{}: the recording '{}' is not in the wav.scp beside it", where(),
                                  excerpt(recording)));
}

// The path of a recording's channel, which a line of segments names, counted from 0.
std::string KaldiFolder::of_channel(const std::string& path, const std::string& channel) const {
  const auto bad = [&](const std::string& why) {
    throw BadLine(fmt::format("{}: {}", where(), why));
  };
  int number = -1;
  const auto [end, error] =
      std::from_chars(channel.data(), channel.data() + channel.size(), number);
  if (error != std::errc() || end != channel.data() + channel.size() || number < 0 ||
      number >= FileChannel::kMost)
    bad(fmt::format("the channel is '{}', which is not a number from 0 to {}", excerpt(channel),
                    FileChannel::kMost - 1));
  if (keeps_commands_)  // there a recording has its id as path
    bad("the channel of a line of segments does not go with commands: allow; choose it in wav.scp");
  if (number == 0 && channel_of(path)) return path;
  if (channel_of(path))
    bad(fmt::format("names a channel of {}, which wav.scp names already; write it in one of them",
                    excerpt(path)));
  return channel_path(path, number + 1);
}

std::vector<std::string> KaldiFolder::remarks(const std::vector<int>& used) const {
  std::vector<std::string> out;
  const auto is_used = [&](std::size_t column) {
    return std::find(used.begin(), used.end(), static_cast<int>(column)) != used.end();
  };
  for (std::size_t o = 0; o < others_.size(); ++o)
    if (const MissingCells& missing = others_[o].missing;
        missing.count() > 0 && is_used(kOthers + o))
      out.push_back(fmt::format(
          "{}: {} of {} utterances have no line there ({}); {} is empty for them", others_[o].path,
          missing.count(), utterances_, missing.first(), columns_[kOthers + o]));
  const auto tell_unlike = [&](const Other& other) {
    if (other.unlike.count() > 0)
      out.push_back(
          fmt::format("{}: {} of {} lengths are not numbers of seconds above 0 ({}); these "
                      "recordings are not compared "
                      "with their length",
                      other.path, other.unlike.count(), other.texts.size(), other.unlike.first()));
  };
  for (const Other& other : others_) tell_unlike(other);
  if (durations_) tell_unlike(*durations_);
  if (has_segments_ && !is_used(1))
    out.push_back(lines_->path() +
                  ": the whole recording is taken for each utterance; for its part write "
                  "utterances: {}");
  return out;
}

}  // namespace melflow
