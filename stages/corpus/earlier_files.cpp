#include "stages/corpus/earlier_files.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {

std::vector<EarlierFile> joined(std::vector<std::vector<EarlierFile>>& outputs,
                                const std::function<void(const std::string&)>& tell) {
  if (outputs.empty()) return {};
  std::vector<EarlierFile> out = std::move(outputs.front());
  EarlierSplits before;  // of the outputs before the present one
  const auto note = [&before](const std::vector<EarlierFile>& files) {
    for (const auto& [path, split] : files) {
      const auto [it, is_new] = before.emplace(path, split);
      if (!is_new && it->second.empty()) it->second = split;
    }
  };
  if (outputs.size() > 1) note(out);
  std::size_t count = 0;
  std::string example;
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    for (const auto& [path, split] : outputs[i]) {
      const auto other = before.find(path);
      if (other == before.end() || other->second.empty() || split.empty() ||
          split == other->second || count++ > 0)
        continue;
      example = fmt::format("{} ({} and {})", excerpt(path), other->second, split);
    }
    note(outputs[i]);
    out.insert(out.end(), outputs[i].begin(), outputs[i].end());
  }
  if (count > 0)
    tell(
        fmt::format("{} files are in another split in one output than in the other, such as {}; "
                    "they are in the first of these in both now",
                    count, example));
  outputs.clear();
  return out;
}

}  // namespace melflow
