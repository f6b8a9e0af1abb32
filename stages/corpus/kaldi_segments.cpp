#include "stages/corpus/kaldi_segments.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"

namespace melflow {
namespace {

constexpr std::size_t kOthers = 5;  // the first column that comes from another file

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

}  // namespace

// Kaldi's validate_data_dir.sh has the same rule.
void KaldiSegments::Ids::add(const std::string& id, const std::string& path, int line) {
  const auto [it, is_new] = lines_.try_emplace(id, line);
  if (!is_new)
    throw RunError(
        fmt::format("{}:{}: {} is in line {} already; an id has one line, so remove one of them",
                    path, line, excerpt(id), it->second));
}

bool KaldiSegments::is_one(std::string_view path) {
  return std::filesystem::path(path).filename() == "segments";
}

KaldiSegments::KaldiSegments(const std::string& path, const std::vector<std::string>& required)
    : lines_(path), columns_{"path", "start", "end", "utterance", "recording"} {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  read_scp((folder / "wav.scp").string());
  for (const auto& [file, column] : {std::pair("utt2spk", "speaker"), std::pair("text", "text")}) {
    const std::string other = (folder / file).string();
    if (std::error_code error; !std::filesystem::exists(other, error)) continue;
    columns_.emplace_back(column);
    others_.push_back({other, {}, {}});
    Ids ids;
    for_each_line(TextLines(other),
                  [&](const std::string& name, const std::string& rest, int line) {
                    ids.add(name, other, line);
                    require_utf8(rest, other, line);
                    others_.back().texts[name] = rest;
                  });
  }
  row_.resize(columns_.size());
  for (const std::string& name : required)
    if (column(name) < 0)
      throw RunError(fmt::format("{}: there is no column '{}'; there are {}", path, excerpt(name),
                                 fmt::join(columns_, ", ")));
}

void KaldiSegments::read_scp(const std::string& scp) {
  Ids ids;
  for_each_line(TextLines(scp, "; it says which files the recordings of segments are"),
                [&](const std::string& name, const std::string& rest, int line) {
                  ids.add(name, scp, line);
                  if (!rest.empty() && !rest.ends_with('|')) {
                    paths_[name] = rest;
                    return;
                  }
                  unusable_[name] = fmt::format(
                      "{}:{}: {} is {}; files are read here and no commands run, so write its "
                      "output to a file and name that",
                      scp, line, excerpt(name),
                      rest.empty() ? "without a file" : "a command (" + excerpt(rest) + ")");
                });
}

int KaldiSegments::column(std::string_view name) const {
  const auto it = std::find(columns_.begin(), columns_.end(), name);
  return it == columns_.end() ? -1 : static_cast<int>(it - columns_.begin());
}

bool KaldiSegments::next() {
  std::string line;
  do {
    if (!lines_.next(line)) return false;
  } while (first_and_rest(line).first.empty());
  std::istringstream words(line);
  std::string utterance, recording, start, end, more;
  words >> utterance >> recording >> start >> end;
  const bool is_complete = !end.empty() && (words >> more).fail();
  if (end.starts_with('-')) end.clear();  // means the end of the recording
  row_ = {"", "", "", utterance, recording};
  for (const Other& other : others_) {
    const auto it = other.texts.find(utterance);
    row_.push_back(it == other.texts.end() ? "" : it->second);
  }
  if (!is_complete)
    throw BadLine(fmt::format(
        "{}:{}: '{}' is not a line of segments, which is: utterance, recording, start, end",
        lines_.path(), this->line(), excerpt(line)));
  ids_.add(utterance, lines_.path(), this->line());
  const auto path = paths_.find(recording);
  const bool is_known = path != paths_.end();
  row_[0] = is_known ? path->second : recording;
  row_[1] = start;
  row_[2] = end;
  ++utterances_;
  for (Other& other : others_)
    if (!other.texts.contains(utterance)) other.missing.add(utterance);
  if (is_known) return true;
  const auto why = unusable_.find(recording);
  throw BadLine(why != unusable_.end()
                    ? why->second
                    : fmt::format("{}:{}: the recording '{}' is not in the wav.scp beside it",
                                  lines_.path(), this->line(), excerpt(recording)));
}

std::vector<std::string> KaldiSegments::remarks(const std::vector<int>& used) const {
  std::vector<std::string> out;
  for (std::size_t o = 0; o < others_.size(); ++o) {
    const MissingCells& missing = others_[o].missing;
    if (missing.count() > 0 &&
        std::find(used.begin(), used.end(), static_cast<int>(kOthers + o)) != used.end())
      out.push_back(fmt::format(
          "{}: {} of {} utterances have no line there ({}); {} is empty for them", others_[o].path,
          missing.count(), utterances_, missing.first(), columns_[kOthers + o]));
  }
  return out;
}

}  // namespace melflow
