#include "stages/recording_groups.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/base/problem.h"
#include "pipeline/base/text.h"
#include "pipeline/stage/stage.h"

namespace melflow {

std::vector<std::string_view> listed_texts(const RunContext& run, const std::string& name,
                                           const std::string& option) {
  const ManifestSource* listed = manifest_source(run);
  std::vector<std::string> there;
  std::vector<std::string_view> out;
  if (listed != nullptr) {
    const Manifest& manifest = listed->manifest();
    there = manifest.text_names();
    const auto at = std::find(there.begin(), there.end(), name);
    const auto from = [&](const auto& text) {
      out.reserve(manifest.size());
      for (std::size_t i = 0; i < manifest.size(); ++i) out.push_back(text(i));
      return out;
    };
    const auto named = [&](const std::vector<std::string>& names, int number) {
      return number < 0 ? std::string_view() : names[static_cast<std::size_t>(number)];
    };
    if (at != there.end())
      return from([&, which = static_cast<std::size_t>(at - there.begin())](std::size_t i) {
        return manifest.text(i, which);
      });
    if (name == "label" && manifest.has_label_sets())
      throw RunError(option + ": recordings may have several labels; name a column of the list");
    if (name == "label" && !manifest.label_names().empty())
      return from([&](std::size_t i) { return named(manifest.label_names(), manifest.label(i)); });
    if (name == "split" && !manifest.split_names().empty())
      return from([&](std::size_t i) { return named(manifest.split_names(), manifest.split(i)); });
  }
  throw RunError(fmt::format(
      "{}: the list has no column '{}'{}; name one that file_list.columns reads", option,
      excerpt(name), there.empty() ? "" : fmt::format(", there are {}", fmt::join(there, ", "))));
}

RecordingGroups::RecordingGroups(const std::vector<std::string_view>& texts) : names_(texts) {
  std::sort(names_.begin(), names_.end());
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
  if (!names_.empty() && names_.front().empty()) names_.erase(names_.begin());
  names_.shrink_to_fit();
  of_.reserve(texts.size());
  for (const std::string_view text : texts)
    of_.push_back(text.empty()
                      ? -1
                      : static_cast<std::int32_t>(
                            std::lower_bound(names_.begin(), names_.end(), text) - names_.begin()));
}

}  // namespace melflow
