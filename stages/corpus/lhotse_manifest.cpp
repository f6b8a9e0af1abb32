#include "stages/corpus/lhotse_manifest.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "stages/containers/file_channel.h"
#include "stages/python_json.h"
#include "stages/shallow_json.h"

namespace melflow {
namespace {

using Json = nlohmann::json;

// The text of a value, "" where there is none.
std::string text_at(const Json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || it->is_null()) return "";
  if (it->is_string()) return it->get<std::string>();
  return it->dump(-1, ' ', false, Json::error_handler_t::replace);  // of texts with other bytes
}

constexpr double kMostChannels = 1 << 16;

double number_at(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_number() ? it->get<double>() : 0;
}

// The channels of an entry, ascending: a number or a list of numbers.
std::vector<int> channels_at(const Json& object, const char* name) {
  const auto it = object.find(name);
  std::vector<int> out;
  if (it == object.end()) return out;
  for (const Json& one : it->is_array() ? *it : Json::array({*it})) {
    if (one.is_null()) continue;
    const double number = one.is_number() ? one.get<double>() : -1;
    // -1, which no file has, stands for anything that is no number of a channel.
    out.push_back(std::trunc(number) == number
                      ? static_cast<int>(std::clamp(number, -1.0, kMostChannels))
                      : -1);
  }
  std::sort(out.begin(), out.end());
  return out;
}

const Json& list_at(const Json& object, const char* name) {
  static const Json none = Json::array();
  const auto it = object.find(name);
  return it != object.end() && it->is_array() ? *it : none;
}

bool is_recording(const Json& object) {
  return object.contains("sources") && object.contains("sampling_rate");
}
bool is_supervision(const Json& object) {
  return object.contains("recording_id") && object.contains("start") && object.contains("duration");
}
bool is_cut(const Json& object) {
  const std::string type = text_at(object, "type");
  return type.ends_with("Cut") || object.contains("tracks") ||
         (object.contains("recording") && object.contains("supervisions"));
}

Json parsed(const std::string& line) {
  Json object = parse_shallow(line);
  if (object.is_discarded())
    if (const auto standard = standard_json(line)) {
      object = parse_shallow(*standard);
      restore_all_bytes(object);
    }
  return object.is_object() ? object : Json();
}

bool next_line(TextLines& lines, std::string& line) {
  while (lines.next(line))
    if (line.find_first_not_of(" \t") != std::string::npos) return true;
  return false;
}

// Adds a value to those of other supervisions, unless it is one of them.
void add_other(std::string& cell, const std::string& value) {
  if (value.empty() || (", " + cell + ", ").find(", " + value + ", ") != std::string::npos) return;
  cell += (cell.empty() ? "" : ", ") + value;
}

}  // namespace

bool LhotseManifest::is_one(const std::string& path) {
  if (std::error_code error; !std::filesystem::is_regular_file(path, error)) return false;
  TextLines lines(path);
  std::string line;
  if (!next_line(lines, line)) return false;
  const Json first = parsed(line);
  return is_recording(first) || is_supervision(first) || is_cut(first);
}

LhotseManifest::LhotseManifest(const std::string& path, const std::vector<std::string>& required)
    : lines_(path),
      columns_{"path",    "start", "duration", "utterance", "recording",
               "channel", "text",  "speaker",  "language",  "gender"},
      row_(columns_.size()) {
  for (const std::string& name : required)
    if (column(name) < 0)
      throw RunError(fmt::format("{}: there is no column '{}'; a manifest of Lhotse has {}", path,
                                 excerpt(name), fmt::join(columns_, ", ")));
  TextLines lines(path);
  std::string line;
  if (next_line(lines, line) && is_supervision(parsed(line))) read_recordings(path);
}

LhotseManifest::Recording LhotseManifest::recording_of(const Json& json) {
  Recording out;
  const Json& sources = list_at(json, "sources");
  if (sources.size() != 1) {
    out.problem = fmt::format("has {} sources; a recording is one file here", sources.size());
  } else if (const std::string type = text_at(sources.front(), "type"); type != "file") {
    out.problem =
        fmt::format("has a source of type {}, which is not read; save it as a file", excerpt(type));
  } else if (!list_at(json, "transforms").empty()) {
    out.problem = "has transforms, which are not applied; save the changed audio";
  } else {
    out.path = text_at(sources.front(), "source");
    out.channels = channels_at(sources.front(), "channels");
  }
  out.declared = {number_at(json, "duration"), number_at(json, "sampling_rate")};
  return out;
}

void LhotseManifest::read_recordings(const std::string& supervisions) {
  constexpr std::string_view kHere = "supervisions";
  const std::filesystem::path file(supervisions);
  std::string name = file.filename();
  if (const std::size_t at = name.rfind(kHere); at != name.npos)
    name.replace(at, kHere.size(), "recordings");
  std::filesystem::path other = file.parent_path() / name;
  std::error_code error;
  if (!std::filesystem::exists(other, error))
    other = file.parent_path() /
            (name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name + ".gz");
  if (!std::filesystem::exists(other, error) || std::filesystem::equivalent(other, file, error))
    throw RunError(
        fmt::format("{}: these are supervisions, which need the list of their recordings beside "
                    "them, and {} is not there",
                    supervisions, (file.parent_path() / name).string()));
  TextLines lines(other.string());
  for (std::string line; next_line(lines, line);) {
    require_utf8(line, other.string(), lines.number());
    const Json json = parsed(line);
    if (is_recording(json)) recordings_[text_at(json, "id")] = recording_of(json);
  }
}

int LhotseManifest::column(std::string_view name) const {
  const auto it = std::find(columns_.begin(), columns_.end(), name);
  return it == columns_.end() ? -1 : static_cast<int>(it - columns_.begin());
}

bool LhotseManifest::next() {
  std::string line;
  if (!next_line(lines_, line)) return false;
  row_.assign(columns_.size(), "");
  declared_ = {};
  require_utf8(line, lines_.path(), lines_.number());
  const Json object = parsed(line);
  std::string problem =
      object.is_null() ? "is no JSON object; one per line is expected" : take(object);
  for (std::string& cell : row_)
    if (cell.find('\0') != cell.npos) {
      cell.clear();
      problem = "has a zero byte, which cannot be stored; take it out";
    }
  if (problem.empty()) return true;
  if (row_[kPath].empty()) row_[kPath] = row_[kUtterance];
  throw BadLine(fmt::format("{}{} {}", where(), row_[kUtterance].empty() ? ": this" : "", problem));
}

// Takes the cells of an entry; returns the problem with it, or "".
std::string LhotseManifest::take(const Json& object) {
  row_[kUtterance] = text_at(object, "id");
  if (is_recording(object)) {
    row_[kRecording] = row_[kUtterance];
    const Recording of = recording_of(object);
    row_[kPath] = of.path;
    row_[kChannel] = fmt::format("{}", fmt::join(of.channels, ", "));
    declared_ = of.declared;
    return of.problem;
  }
  if (is_supervision(object)) {
    row_[kRecording] = text_at(object, "recording_id");
    take_supervisions(Json::array({object}));
    const auto it = recordings_.find(row_[kRecording]);
    if (it != recordings_.end()) return take_part(object, it->second);
    return fmt::format("is in the recording '{}', which the recordings lack",
                       excerpt(row_[kRecording]));
  }
  const std::string type = text_at(object, "type");
  take_supervisions(list_at(object, "supervisions"));
  if (object.contains("tracks") || type == "MixedCut" || type == "PaddingCut")
    return fmt::format(
        "is a {}, which is no part of one file; save its audio (save_audio) and "
        "name that",
        type.empty() ? "MixedCut" : type);
  const auto of = object.find("recording");
  if (of == object.end() || !of->is_object())
    return "has no recording, so that there is no audio to be read";
  row_[kRecording] = text_at(*of, "id");
  return take_part(object, recording_of(*of));
}

// Takes a part of a recording: its times and channels.
std::string LhotseManifest::take_part(const Json& part, const Recording& of) {
  if (!of.problem.empty()) return fmt::format("is of a recording that {}", of.problem);
  row_[kPath] = of.path;
  declared_ = of.declared;
  row_[kStart] = text_at(part, "start");
  row_[kDuration] = text_at(part, "duration");
  constexpr double kSame = 1e-6;  // [s]; Lhotse rounds to 8 digits
  if (number_at(part, "start") == 0 &&
      std::abs(number_at(part, "duration") - of.declared.seconds) < kSame) {
    row_[kStart].clear();
    row_[kDuration].clear();
  }
  has_parts_ = has_parts_ || !row_[kDuration].empty();
  std::vector<int> channels = channels_at(part, "channel");
  if (channels.empty()) channels = of.channels;
  row_[kChannel] = fmt::format("{}", fmt::join(channels, ", "));
  if (channels == of.channels) return "";
  if (!channels.empty() && (channels.front() < 0 || channels.back() >= kMostChannels))
    row_[kChannel] = text_at(part, "channel");
  const auto at = std::find(of.channels.begin(), of.channels.end(), channels.front());
  if (channels.size() == 1 && at != of.channels.end()) {
    row_[kPath] = channel_path(of.path, static_cast<int>(at - of.channels.begin()) + 1);
    return "";
  }
  return fmt::format(
      "is channel {} of a file with the channels {}; save that channel as a file "
      "and name it",
      row_[kChannel], fmt::join(of.channels, ", "));
}

void LhotseManifest::take_supervisions(const Json& list) {
  for (const Json& one : list) {
    if (!one.is_object()) continue;
    const std::string words = text_at(one, "text");
    row_[kText] += (row_[kText].empty() || words.empty() ? "" : " ") + words;
    add_other(row_[kSpeaker], text_at(one, "speaker"));
    add_other(row_[kLanguage], text_at(one, "language"));
    add_other(row_[kGender], text_at(one, "gender"));
  }
}

std::vector<std::string> LhotseManifest::remarks(const std::vector<int>& used) const {
  if (!has_parts_ || std::find(used.begin(), used.end(), int{kStart}) != used.end()) return {};
  return {lines_.path() +
          ": the whole recording is taken for each entry; for its part write utterances: {}"};
}

}  // namespace melflow
