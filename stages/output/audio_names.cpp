#include "stages/output/audio_names.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/stage/stage.h"
#include "stages/manifest.h"

namespace melflow {
namespace {

constexpr std::size_t kLongestName = 255;   // longest file name that all usual file systems allow
constexpr std::size_t kNumberAndPart = 16;  // space in it for a window's number and ".part"

bool is_folder_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos &&
         name.size() <= kLongestName;
}

// The recording's path below the listed folder, or below '/' if it is absolute, as in archives;
// with several sources it begins with a folder named after the source.
std::filesystem::path own_path(const RunContext& run, std::size_t recording) {
  const ManifestSource* listed = manifest_source(run);
  return std::filesystem::path(listed != nullptr ? listed->manifest().recorded_path(recording)
                                                 : run.source.name(recording))
      .lexically_normal()
      .relative_path();
}

// Distinguishes the utterances of a recording: "-12.5-15".
std::string span_text(const RunContext& run, std::size_t recording) {
  const ManifestSource* listed = manifest_source(run);
  if (listed == nullptr || !listed->manifest().has_spans()) return "";
  const Manifest::Span& span = listed->manifest().span(recording);
  return span.has_end() ? fmt::format("-{}-{}", span.start, span.end)
                        : fmt::format("-{}", span.start);
}

}  // namespace

AudioNames::AudioNames(AudioNamesOptions options, const RunContext& run)
    : options_(std::move(options)), run_(run) {
  check_folders();
  std::unordered_set<std::size_t> doubles;
  find_doubles([&](std::size_t a, std::size_t b) { doubles.insert({a, b}); });
  if (doubles.empty()) return;
  keep_ending_ = std::move(doubles);
  find_doubles([this](std::size_t a, std::size_t b) {
    throw RunError(
        fmt::format("{}: both {} and {} would be written there; list each recording once", path(a),
                    run_.source.name(a), run_.source.name(b)));
  });
}

std::string AudioNames::problem(std::size_t recording) const {
  const std::filesystem::path own = own_path(run_, recording);
  if (own.empty() || own.filename().empty() || *own.begin() == ".." || own == ".")
    return fmt::format("its name leads out of the folder {}; list it by its whole path",
                       options_.folder);
  if (own.filename().string().size() + span_text(run_, recording).size() + options_.ending.size() +
          kNumberAndPart >
      kLongestName)
    return "its name is too long to be that of a written file";
  return "";
}

std::string AudioNames::folder_by(FolderOf by, std::size_t recording) const {
  const Manifest& manifest = manifest_source(run_)->manifest();
  if (by == FolderOf::split) {
    const std::string split = manifest.split_name(manifest.split(recording));
    return split.empty() ? "no_split" : split;
  }
  const auto labels = manifest.labels(recording);
  return labels.empty() ? "no_label"
                        : manifest.label_names()[static_cast<std::size_t>(labels.front())];
}

std::string AudioNames::stem(std::size_t recording) const {
  std::filesystem::path out = options_.folder;
  for (const FolderOf by : options_.by) out /= folder_by(by, recording);
  out /= own_path(run_, recording);
  return (keep_ending_.contains(recording) ? out : out.replace_extension()).string() +
         span_text(run_, recording);
}

std::string AudioNames::path(std::size_t recording, std::int64_t window) const {
  const std::string number = window < 0 ? "" : fmt::format("-{:05}", window);
  return fmt::format("{}{}.{}", stem(recording), number, options_.ending);
}

void AudioNames::check_folders() const {
  if (options_.by.empty()) return;
  const ManifestSource* listed = manifest_source(run_);
  if (listed == nullptr)
    throw RunError("audio_write.by: the source of this run has neither splits nor labels");
  const Manifest& m = listed->manifest();
  for (const FolderOf by : options_.by) {
    const bool is_split = by == FolderOf::split;
    const char* what = is_split ? "split" : "label";
    const std::vector<std::string>& names = is_split ? m.split_names() : m.label_names();
    if (names.empty())
      throw RunError(
          fmt::format("audio_write.by: no file has a {}; see the options of file_list", what));
    for (const std::string& name : names)
      if (!is_folder_name(name))
        throw RunError(fmt::format("audio_write.by: the {} '{}' is not a name for a folder", what,
                                   excerpt(name)));
  }
  if (std::find(options_.by.begin(), options_.by.end(), FolderOf::label) == options_.by.end())
    return;
  for (std::size_t i = 0; i < m.size(); ++i)
    if (m.labels(i).size() > 1)
      throw RunError(fmt::format("audio_write.by: {} has {} labels, and goes into one folder",
                                 m.name(i), m.labels(i).size()));
}

// Calls found(a, b) for recordings whose files would have the same name. Compares hashes first: the
// names of a million files would take much memory.
template <class Found>
void AudioNames::find_doubles(const Found& found) const {
  const std::size_t count = run_.source.count();
  std::vector<std::pair<std::size_t, std::size_t>> hashes;  // hash and index of each recording
  hashes.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    if (problem(i).empty()) hashes.emplace_back(std::hash<std::string>{}(path(i)), i);
  std::sort(hashes.begin(), hashes.end());
  for (std::size_t i = 1; i < hashes.size(); ++i) {
    const std::size_t a = hashes[i - 1].second, b = hashes[i].second;
    if (hashes[i - 1].first == hashes[i].first && path(a) == path(b)) found(a, b);
  }
}

}  // namespace melflow
