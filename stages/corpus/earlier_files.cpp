#include "stages/corpus/earlier_files.h"

#include <utility>

#include <fmt/format.h>

#include "pipeline/base/text.h"

namespace melflow {

EarlierFiles together(const std::vector<std::shared_ptr<const EarlierFiles>>& outputs,
                      std::function<void(const std::string&)> tell) {
  EarlierFiles out;
  out.recover = [outputs](RunContext& run) {
    for (const auto& output : outputs) output->announce(run);
    outputs.front()->recover(run);
  };
  // Each of several sources calls visit(); warnings are given once.
  const auto is_told = std::make_shared<bool>(false);
  out.visit = [outputs, is_told, tell = std::move(tell)](const std::vector<std::string>& splits,
                                                         const EarlierFiles::Visit& visit) {
    if (outputs.size() == 1) return outputs.front()->visit(splits, visit);
    EarlierSplits before;  // of the outputs before the present one
    std::size_t count = 0;
    std::string example;
    for (const auto& output : outputs) {
      EarlierSplits own;
      output->visit(splits, [&](std::string_view path, std::string_view split) {
        const auto other = before.find(path);
        if (other == before.end() || other->second.empty()) {
          own.emplace(path, split);
        } else if (!split.empty() && split != other->second && count++ == 0) {
          example = fmt::format("{} ({} and {})", excerpt(path), other->second, split);
        }
        visit(path, split);
      });
      for (const auto& [path, split] : own) before[path] = split;
    }
    if (count > 0 && !std::exchange(*is_told, true))
      tell(
          fmt::format("{} files are in another split in one output than in the other, such as {}; "
                      "they are in the first of these in both now",
                      count, example));
  };
  return out;
}

}  // namespace melflow
