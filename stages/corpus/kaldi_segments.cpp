#include "stages/corpus/kaldi_segments.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/problem.h"
#include "pipeline/text.h"

namespace melflow {
namespace {

std::ifstream opened(const std::string& path, const char* why) {
  std::ifstream in(path);
  if (!in) throw RunError(fmt::format("{}: cannot be read: {}{}", path, std::strerror(errno), why));
  return in;
}

// The first word of a line, and the rest of it without the blanks around.
std::pair<std::string, std::string> first_and_rest(const std::string& line) {
  constexpr const char* kBlanks = " \t\r";
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::size_t begin = std::min(line.find_first_not_of(kBlanks, end), line.size());
  const std::size_t last = line.find_last_not_of(kBlanks);
  return {line.substr(0, end), begin < line.size() ? line.substr(begin, last + 1 - begin) : ""};
}

template <class F>
void for_each_line(const std::string& path, const char* why, F&& take) {
  std::ifstream in = opened(path, why);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto [name, rest] = first_and_rest(line);
    if (!name.empty()) take(name, rest, number);
  }
  if (in.bad()) throw RunError(fmt::format("{}: cannot be read to its end", path));
}

}  // namespace

bool KaldiSegments::is_one(std::string_view path) {
  return std::filesystem::path(path).filename() == "segments";
}

KaldiSegments::KaldiSegments(const std::string& path, const std::vector<std::string>& required)
    : path_(path),
      in_(opened(path, "")),
      columns_{"path", "start", "end", "utterance", "recording"} {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string scp = (folder / "wav.scp").string();
  for_each_line(scp, "; it says which files the recordings of segments are",
                [&](const std::string& name, const std::string& rest, int line) {
                  if (rest.empty() || rest.ends_with('|'))
                    throw RunError(fmt::format(
                        "{}:{}: {} is {}; files are read here and no commands run, so write its "
                        "output to a file and name that",
                        scp, line, excerpt(name),
                        rest.empty() ? "without a file" : "a command (" + excerpt(rest) + ")"));
                  paths_[name] = rest;
                });
  for (const auto& [file, column] : {std::pair("utt2spk", "speaker"), std::pair("text", "text")}) {
    const std::string other = (folder / file).string();
    if (std::error_code error; !std::filesystem::exists(other, error)) continue;
    columns_.emplace_back(column);
    Map& map = others_.emplace_back();
    for_each_line(other, "",
                  [&](const std::string& name, const std::string& rest, int) { map[name] = rest; });
  }
  for (const std::string& name : required)
    if (column(name) < 0)
      throw RunError(fmt::format("{}: there is no column '{}'; there are {}", path, excerpt(name),
                                 fmt::join(columns_, ", ")));
}

int KaldiSegments::column(std::string_view name) const {
  const auto it = std::find(columns_.begin(), columns_.end(), name);
  return it == columns_.end() ? -1 : static_cast<int>(it - columns_.begin());
}

bool KaldiSegments::next() {
  std::string line;
  do {
    if (!std::getline(in_, line)) {
      if (in_.bad()) throw RunError(path_ + ": cannot be read to its end");
      return false;
    }
    ++line_;
  } while (first_and_rest(line).first.empty());
  std::istringstream words(line);
  std::string utterance, recording, start, end, more;
  words >> utterance >> recording >> start >> end;
  if (end.empty() || (words >> more && !words.fail()))
    throw RunError(fmt::format(
        "{}:{}: '{}' is not a line of segments, which is: utterance, recording, start, end", path_,
        line_, excerpt(line)));
  const auto path = paths_.find(recording);
  if (path == paths_.end())
    throw RunError(fmt::format("{}:{}: the recording '{}' is not in the wav.scp beside it", path_,
                               line_, excerpt(recording)));
  if (end.starts_with('-')) end.clear();  // the end of the recording
  row_ = {path->second, start, end, utterance, recording};
  for (const Map& other : others_) {
    const auto it = other.find(utterance);
    row_.push_back(it == other.end() ? "" : it->second);
  }
  return true;
}

}  // namespace melflow
